"""The one thread that empties the outbox: it makes letters of wishes and, if there is a mail server, sends them.

A mail server that is down delays a letter; one that it will never have is given up. A letter is removed only when it
was taken, so after a kill -9 in between it comes twice, never not at all.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from functools import partial

from paddlecloud.server.mail import LaterError, RefusedError, Smtp
from paddlecloud.server.outbox import Ask, Outbox

log = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 600.0
_STOP_SECONDS = 1.0


class Postman:
    def __init__(
        self,
        outbox: Outbox,
        smtp: Smtp | None,
        *,
        write: Callable[[Ask], EmailMessage | None],
        on_sent: Callable[[EmailMessage], None],
        on_refused: Callable[[EmailMessage, str], None],
    ) -> None:
        self._outbox = outbox
        self._smtp = smtp
        self._write = write
        self._on_sent = on_sent
        self._on_refused = on_refused
        self._tries: dict[str, _Tries] = {}
        self._stopped = False
        # A mail server that does not answer must not hold the process back at its end.
        self._thread = threading.Thread(target=self._run, name="postman", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._outbox.changed.set()
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopped:
            self._outbox.changed.clear()
            self._go_round()
            self._outbox.changed.wait(self._pause(time.monotonic()))

    def _go_round(self) -> None:
        asks = dict(self._outbox.asks())
        for name, ask in asks.items():
            self._try(name, partial(self._answer, name, ask))
        letters = self._outbox.letters() if self._smtp else []
        for name in letters:
            self._try(name, partial(self._send, name))
        self._tries = {name: tries for name, tries in self._tries.items() if name in asks or name in letters}

    def _try(self, name: str, act: Callable[[], None]) -> None:
        tries = self._tries.get(name, _Tries())
        if self._stopped or tries.next_at > time.monotonic():
            return
        try:
            act()
        except Exception as error:
            self._tries[name] = tries.after_failure(time.monotonic())
            expected = isinstance(error, LaterError)
            log.warning(
                "%s in the outbox is tried again in %.0f s: %s",
                name,
                self._tries[name].pause_seconds,
                error,
                exc_info=None if expected else error,
            )
        else:
            self._tries.pop(name, None)

    def _answer(self, name: str, ask: Ask) -> None:
        self._outbox.answer(name, self._write(ask))

    def _send(self, name: str) -> None:
        letter = self._outbox.read(name)
        if letter is None or self._smtp is None:
            return
        try:
            self._smtp.send(letter)
        except RefusedError as error:
            log.warning("%s in the outbox is given up: %s", name, error)
            self._on_refused(letter, str(error))
            self._outbox.remove(name)
        else:
            self._outbox.remove(name)
            self._on_sent(letter)

    def _pause(self, now: float) -> float:
        soonest = min((tries.next_at for tries in self._tries.values()), default=now + _LONGEST_PAUSE_SECONDS)
        return max(soonest - now, 0.0)


@dataclass(frozen=True, slots=True)
class _Tries:
    pause_seconds: float = 0.0
    next_at: float = 0.0

    def after_failure(self, now: float) -> _Tries:
        pause = min(max(self.pause_seconds * 2, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
        return _Tries(pause, now + pause)
