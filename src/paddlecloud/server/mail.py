"""A mail server as this one uses it: who it is, and whether it has a letter, will have it later, or never."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from paddlecloud.model.errors import ConfigError
from paddlecloud.server.settings import MailSettings

_PORTS = {"smtp": 25, "starttls": 587, "smtps": 465}
_ANSWER_SECONDS = 20.0
_TROUBLES = (OSError, smtplib.SMTPException, UnicodeError)  # smtplib logs in by ASCII alone


class RefusedError(Exception):
    """The mail server will not have this letter, now or later."""


class LaterError(Exception):
    """The letter could not be sent now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smtp:
    """A mail server, and who this one is to it."""

    scheme: str
    host: str
    port: int
    user: str = ""
    password_file: Path | None = None
    context: ssl.SSLContext | None = None

    def send(self, letter: EmailMessage) -> None:
        taken = False
        try:
            with self._session() as server:
                _hand_over(server, letter)
                taken = True
        except _TROUBLES as error:
            if not taken:  # how a server that has it says goodbye changes nothing
                raise _meaning(error) from None

    def greet(self) -> None:
        """Connect and log in, and send nothing; LaterError says what keeps it from that."""
        try:
            with self._session() as server:
                server.noop()
        except _TROUBLES as error:
            raise LaterError(_told(error)) from None

    @contextmanager
    def _session(self) -> Iterator[smtplib.SMTP]:
        with self._connect() as server:
            server.ehlo()
            if self.scheme == "starttls":
                server.starttls(context=self._trust())
                server.ehlo()
            if self.user:
                server.login(self.user, self._password())
            yield server

    def _connect(self) -> smtplib.SMTP:
        if self.scheme == "smtps":
            return smtplib.SMTP_SSL(self.host, self.port, timeout=_ANSWER_SECONDS, context=self._trust())
        return smtplib.SMTP(self.host, self.port, timeout=_ANSWER_SECONDS)

    def _trust(self) -> ssl.SSLContext:
        return self.context or ssl.create_default_context()

    def _password(self) -> str:
        # Read for each letter, so that a new password needs no restart.
        return "" if self.password_file is None else self.password_file.read_text("utf-8").strip("\r\n")


def configured(settings: MailSettings) -> Smtp | None:
    """The mail server that the settings name; None: mail stays in the outbox."""
    if not settings.smtp:
        return None
    parts = urlsplit(settings.smtp)
    try:
        port = parts.port or _PORTS[parts.scheme]
    except (KeyError, ValueError):
        port = 0
    if not port or not parts.hostname or parts.path.strip("/") or parts.username:
        raise ConfigError(
            f"mail.smtp = {settings.smtp!r} is no mail server: write smtp://host:25, starttls://host:587 or "
            "smtps://host:465; user and password have settings of their own",
            field="mail.smtp",
        )
    found = Smtp(
        scheme=parts.scheme, host=parts.hostname, port=port, user=settings.user, password_file=settings.password_file
    )
    _check_login(found)
    return found


def _check_login(server: Smtp) -> None:
    if not server.user:
        return
    if server.scheme == "smtp" and not _is_loopback(server.host):
        raise ConfigError(
            "mail.user: a password would travel unencrypted by smtp://; use starttls:// or smtps://", field="mail.smtp"
        )
    if server.password_file is None:
        raise ConfigError("mail.user needs mail.password_file, which holds the password", field="mail.password_file")
    try:
        ascii_alone = server.password_file.read_bytes().isascii() and server.user.isascii()
    except OSError as error:
        raise ConfigError(
            f"mail.password_file {server.password_file} cannot be read: {error.strerror}", field="mail.password_file"
        ) from None
    if not ascii_alone:
        raise ConfigError("mail.user and its password must be ASCII", field="mail.user")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _hand_over(server: smtplib.SMTP, letter: EmailMessage) -> None:
    sender, to = str(letter["From"]), str(letter["To"])
    options = ["BODY=8BITMIME"] if server.has_extn("8bitmime") else []
    policy = SMTP if options else SMTP.clone(cte_type="7bit")
    if not (sender + to).isascii():
        if not server.has_extn("smtputf8"):
            raise LaterError(
                f"the mail server takes no address such as {to} (it has no SMTPUTF8): hand the letter over by another "
                "way and delete it, or name a mail server that does"
            )
        options, policy = [*options, "SMTPUTF8"], SMTPUTF8
    server.sendmail(sender, [to], letter.as_bytes(policy=policy), options)


def _meaning(error: Exception) -> Exception:
    """What a failure means for a letter: of its recipient and of itself a mail server may refuse it for good."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code, text = next(iter(error.recipients.values()))
        error = smtplib.SMTPDataError(code, text)
    if isinstance(error, smtplib.SMTPDataError) and error.smtp_code >= 500:
        return RefusedError(_told(error))
    return LaterError(_told(error))


def _told(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        text = error.smtp_error
        return f"{error.smtp_code} {text.decode(errors='replace') if isinstance(text, bytes) else text}"
    return str(error) or type(error).__name__
