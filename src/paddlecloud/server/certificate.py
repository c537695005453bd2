"""The server's certificate: checked before anything is served with it, and taken up anew when its files are renewed.

A handshake is shown the newest chain and key that went together, so a renewal that is half written, or wrong, changes
nothing. The key's file must be closed to others, by the rule that PostgreSQL has for its own.
"""

from __future__ import annotations

import logging
import os
import ssl
import stat
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from paddlecloud.model.errors import ConfigError
from paddlecloud.server.settings import ServerSettings

log = logging.getLogger(__name__)

SOON = timedelta(days=14)
_REMIND = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A chain and its key as they were when they were read; `fingerprint` is the SHA-256 of the server's own part."""

    context: ssl.SSLContext
    fingerprint: str
    not_before: datetime
    not_after: datetime

    def trouble(self, now: datetime) -> str:
        """What is wrong with its dates, or soon will be; "" if they are good for a while."""
        if now < self.not_before:
            return f"the certificate is not valid before {self.not_before:%Y-%m-%d %H:%M} UTC, and clients refuse it"
        if now >= self.not_after:
            return f"the certificate expired at {self.not_after:%Y-%m-%d %H:%M} UTC, and clients refuse it"
        left = self.not_after - now
        return f"the certificate expires in {left.days} days" if left < SOON else ""


class Certificate:
    """What the server shows in a handshake: `context` is to be listened with, `renew` to be called now and then."""

    def __init__(self, chain: Path, key: Path, clock: Callable[[], datetime]) -> None:
        self._chain, self._key = chain, key
        self._clock = clock
        self._seen = self._look()
        self.pair = read(chain, key)
        self.on_renewal: Callable[[], None] = lambda: None
        self._reminded_at: datetime | None = None
        self._remind()
        self.context = _context()
        self.context.sni_callback = self._show

    def renew(self) -> None:
        """Take up files that have changed since the last look."""
        seen = self._look()
        if seen != self._seen:
            self._seen = seen
            self._read_again()
        self._remind()

    def _read_again(self) -> None:
        try:
            self.pair = read(self._chain, self._key)
        except ConfigError as error:
            log.warning("the changed certificate is not used, the one before it stays in use: %s", error)
            return
        log.info("the certificate was renewed and is valid until %s", self.pair.not_after.isoformat())
        self._reminded_at = None
        self.on_renewal()

    def _show(self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        # OpenSSL asks this in every handshake, whether the client names a host or not.
        connection.context = self.pair.context

    def _look(self) -> tuple[tuple[int, ...], ...]:
        return tuple(_identity(file) for file in (self._chain, self._key))

    def _remind(self) -> None:
        """Say what is wrong with its dates, once a day. It is served all the same: jobs want to be scheduled too."""
        now = self._clock()
        trouble = self.pair.trouble(now)
        if trouble and (self._reminded_at is None or now - self._reminded_at >= _REMIND):
            self._reminded_at = now
            log.error("%s; put a new one into %s, it is taken up without a restart", trouble, self._chain)


def certificate(server: ServerSettings, clock: Callable[[], datetime]) -> Certificate | None:
    """What the settings name, or None; ConfigError says what is wrong with it."""
    if server.certificate is None or server.certificate_key is None:
        return None
    return Certificate(server.certificate, server.certificate_key, clock)


def read(chain: Path, key: Path) -> Pair:
    """A chain and a key that go together; ConfigError says what is wrong with them."""
    first = _first(chain)
    _refuse_open(key)
    context = _context()

    def no_passphrase() -> str:
        raise ConfigError(
            f"server.certificate_key: {key} is encrypted by a passphrase, and nobody is there to type it: write it "
            f"without one (openssl pkey -in {key} -out NEW) into a file of mode 0600",
            field="server.certificate_key",
        )

    try:
        context.load_cert_chain(chain, key, password=no_passphrase)
    except ssl.SSLError as error:
        raise ConfigError(
            f"server.certificate_key: {key} is not the private key of {chain} ({error.reason or error}): "
            "name the key that the certificate was made with",
            field="server.certificate_key",
        ) from None
    except OSError as error:
        raise _unreadable("certificate_key", key, error) from None
    return Pair(
        context=context,
        fingerprint=first.fingerprint(hashes.SHA256()).hex(),
        not_before=first.not_valid_before_utc,
        not_after=first.not_valid_after_utc,
    )


def _context() -> ssl.SSLContext:
    """TLS 1.2 and newer, with the ciphers that Python allows, which all keep past traffic closed (forward secrecy)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context


def _first(chain: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(chain.read_bytes())[0]
    except OSError as error:
        raise _unreadable("certificate", chain, error) from None
    except ValueError:
        raise ConfigError(
            f"server.certificate: {chain} holds no certificate in PEM: name the file of the whole chain",
            field="server.certificate",
        ) from None


def _refuse_open(key: Path) -> None:
    try:
        found = key.stat()
    except OSError as error:
        raise _unreadable("certificate_key", key, error) from None
    if found.st_uid not in (0, os.geteuid()):
        raise ConfigError(
            f"server.certificate_key: {key} belongs to user id {found.st_uid}, who could change it: give it to root or "
            f"to the server's account ({os.geteuid()})",
            field="server.certificate_key",
        )
    # A key of root's may be lent to a group, as Debian lends its own to ssl-cert.
    closed = 0o037 if found.st_uid == 0 else 0o077
    if found.st_mode & closed:
        raise ConfigError(
            f"server.certificate_key: {key} is open to others (mode {stat.S_IMODE(found.st_mode):04o}): "
            f"run chmod {0o666 & ~closed:04o} {key}",
            field="server.certificate_key",
        )


def _unreadable(setting: str, file: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"server.{setting}: {file} cannot be read by the server's account: {error.strerror}", field=f"server.{setting}"
    )


def _identity(file: Path) -> tuple[int, ...]:
    """Changes with the file's content, also where a link is turned to another file; () where there is none."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
