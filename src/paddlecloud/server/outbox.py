"""The outbox: a folder that keeps what was promised until it is done, over kill -9 and power cuts.

What somebody asked for lies here as `<name>.ask` until a letter takes its place, and that as `<name>.eml` until a mail
server has it. A letter holds a secret key, so the folder is for its owner alone.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from email import message_from_bytes
from email.message import EmailMessage
from pathlib import Path

from paddlecloud.files import disk
from paddlecloud.model import wire
from paddlecloud.model.errors import InvalidError
from paddlecloud.server.letters import POLICY

log = logging.getLogger(__name__)

_ASK, _LETTER = ".ask", ".eml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Somebody's wish for an access key, and where it came from."""

    email: str
    address: str
    request_id: str


class Outbox:
    """`changed` is set whenever something is put in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.changed = threading.Event()
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        for unfinished in folder.glob(f"{disk.NEW}*"):
            unfinished.unlink()

    def ask(self, ask: Ask, now: datetime) -> None:
        """Keep a wish; it is durable when this returns."""
        name = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        self._write(name + _ASK, wire.encode(ask))
        self.changed.set()

    def asks(self) -> Iterator[tuple[str, Ask]]:
        """Wishes that no letter answers yet, oldest first."""
        for name in self._names(_ASK):
            if (self._folder / (name + _LETTER)).exists():
                self._remove(name + _ASK)
                continue
            try:
                yield name, wire.decode(Ask, (self._folder / (name + _ASK)).read_bytes())
            except (OSError, InvalidError) as error:
                log.error("the outbox has %s%s, which is not understood (%s); remove it", name, _ASK, error)

    def answer(self, name: str, letter: EmailMessage | None) -> None:
        """Put a letter in the place of the wish of this name; None: it gets none."""
        if letter is not None:
            self._write(name + _LETTER, letter.as_bytes())
        self._remove(name + _ASK)

    def letters(self) -> list[str]:
        """The names of letters that are still to be sent, oldest first."""
        return self._names(_LETTER)

    def read(self, name: str) -> EmailMessage | None:
        """A letter; None: it is gone, as when the operator has handed it over."""
        try:
            return message_from_bytes((self._folder / (name + _LETTER)).read_bytes(), policy=POLICY)
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """A letter has been sent, or never will be."""
        self._remove(name + _LETTER)

    def _names(self, ending: str) -> list[str]:
        return sorted(file.name.removesuffix(ending) for file in self._folder.glob(f"*{ending}"))

    def _write(self, name: str, body: bytes) -> None:
        with disk.room_for("mail"):
            disk.write_all(str(self._folder), [(name, body)], 0o600)

    def _remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)
        disk.sync(str(self._folder))
