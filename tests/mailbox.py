"""A real mail server on a loopback port that keeps what it is sent, and refuses what it is told to."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTPUTF8
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword

from tests.ports import free_port

HOST = "127.0.0.1"


@dataclass
class Mailbox:
    """`answers` are what it says to recipients, such as "550 no such mailbox"; `login` is who may send."""

    port: int = 0
    login: tuple[str, str] | None = None
    answers: dict[str, str] = field(default_factory=dict)
    envelopes: list[Envelope] = field(default_factory=list)

    @property
    def letters(self) -> list[EmailMessage]:
        sent = [(one.original_content or b"").replace(b"\r\n", b"\n") for one in self.envelopes]
        return [message_from_bytes(content, policy=SMTPUTF8) for content in sent]

    @property
    def texts(self) -> list[str]:
        return [letter.get_content() for letter in self.letters]

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:  # noqa: N802
        said = self.answers.get(address, "250 OK")
        if said.startswith("250"):
            envelope.rcpt_tos.append(address)
        return said

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:  # noqa: N802
        self.envelopes.append(envelope)
        return "250 OK"

    def authenticate(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        given = (data.login.decode(), data.password.decode()) if isinstance(data, LoginPassword) else None
        return AuthResult(success=given == self.login, handled=False)


@contextmanager
def served(
    mailbox: Mailbox, *, tls: ssl.SSLContext | None = None, tls_at_once: bool = False, utf8: bool = True
) -> Iterator[Mailbox]:
    """The mail server while it runs, on the mailbox's port, which is a free one at first."""
    starttls = tls is not None and not tls_at_once
    mailbox.port = mailbox.port or a_free_port()
    controller = Controller(
        mailbox,
        hostname=HOST,
        port=mailbox.port,
        enable_SMTPUTF8=utf8,
        ssl_context=tls if tls_at_once else None,
        tls_context=tls if starttls else None,
        require_starttls=starttls,
        authenticator=mailbox.authenticate if mailbox.login else None,
        auth_required=mailbox.login is not None,
        auth_require_tls=starttls,
    )
    with warnings.catch_warnings():
        # aiosmtpd does not see that a connection is encrypted from its beginning.
        warnings.filterwarnings("ignore", "Requiring AUTH while not requiring TLS")
        controller.start()
        try:
            yield mailbox
        finally:
            controller.stop()


def key_in(text: str) -> tuple[str, str]:
    """The ak and the sk that a letter brings."""
    found = [
        line.removeprefix(f"{name}: ") for name in ("ak", "sk") for line in text.splitlines() if f"{name}: " in line
    ]
    ak, sk = found
    return ak, sk


def a_free_port() -> int:
    return free_port()
