"""Encrypts and signs data with the server's key file.

A request's signature can only be verified with the secret key itself, so secret keys are stored, but encrypted.
Invariant: a copy of the database alone reveals no key. The file must belong to the server's user, with no access for
others.
"""

from __future__ import annotations

import base64
import hmac
import os
import secrets
import stat
import threading
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from paddlecloud.model.errors import ConfigError

_KEY_BYTES = 32
_NONCE_BYTES = 12
ACCESS_KEYS = "access keys"


class Cipher:
    """AES-256-GCM with a key derived from the file for each purpose; `bound_to` ties a text to its record, so that rows
    cannot be swapped."""

    def __init__(self, key_file: Path) -> None:
        self._file = key_file
        self._lock = threading.Lock()
        self._keys: dict[str, bytes] = {}

    def encrypt(self, text: str, bound_to: str, purpose: str = ACCESS_KEYS) -> str:
        """Encrypt a text. The first use creates the key file."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = AESGCM(self._key(purpose, create=True)).encrypt(nonce, text.encode(), bound_to.encode())
        return base64.b64encode(nonce + sealed).decode()

    def decrypt(self, sealed: str, bound_to: str, purpose: str = ACCESS_KEYS) -> str:
        raw = base64.b64decode(sealed)
        aead = AESGCM(self._key(purpose, create=False))
        try:
            text = aead.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], bound_to.encode())
        except InvalidTag:
            raise ConfigError(
                f"key file {self._file} does not match this database's {purpose}: "
                "restore it from the same backup as the database"
            ) from None
        return text.decode()

    def sign(self, text: str, purpose: str) -> str:
        """Return a signature that only this server can make, valid for one purpose."""
        return hmac.digest(self._key(purpose, create=True), text.encode(), "sha256").hex()

    def _key(self, purpose: str, *, create: bool) -> bytes:
        """Derive the key of a purpose from the file."""
        with self._lock:
            if purpose not in self._keys:
                if create and not os.path.lexists(self._file):
                    _make(self._file)
                self._keys[purpose] = hmac.digest(_read(self._file), f"paddlecloud: {purpose}".encode(), "sha256")
            return self._keys[purpose]


def read_key(file: Path) -> str:
    """The key file's content, as stored in a backup."""
    return _read(file).hex()


def is_key(text: str) -> bool:
    """Whether the text is a valid content of a key file."""
    return _parsed(text.encode(errors="replace")) is not None


def replace_key(file: Path, key: str) -> None:
    """Atomically replace the file's key with that of a backup."""
    _write(file, key, os.replace)


def _make(file: Path) -> None:
    """Create the key file atomically; if another process was faster, keep its file."""
    try:
        _write(file, secrets.token_hex(_KEY_BYTES), os.link)
    except FileExistsError:
        return


def _write(file: Path, key: str, publish: Callable[[Path, Path], None]) -> None:
    part = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            with open(descriptor, "w", encoding="ascii") as opened:
                opened.write(f"{key}\n")
                opened.flush()
                os.fsync(opened.fileno())
            publish(part, file)
        finally:
            part.unlink(missing_ok=True)
        _sync(file.parent)
    except FileExistsError:
        raise
    except OSError as error:
        raise ConfigError(f"key file {file} cannot be created: {error.strerror}") from None


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _read(file: Path) -> bytes:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ConfigError(
            f"key file {file} is missing, and access keys are encrypted with it: restore it from a backup"
        ) from None
    except OSError as error:
        raise ConfigError(f"key file {file} cannot be read: {error.strerror}") from None
    try:
        _check_permissions(file, os.fstat(descriptor))
        text = os.read(descriptor, 1024)
    finally:
        os.close(descriptor)
    if (key := _parsed(text)) is None:
        raise ConfigError(f"key file {file} is damaged: restore it from a backup")
    return key


def _parsed(text: bytes) -> bytes | None:
    try:
        key = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        return None
    return key if len(key) == _KEY_BYTES else None


def _check_permissions(file: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"key file {file} is not a regular file: put the key itself there")
    if found.st_uid != os.geteuid():
        raise ConfigError(
            f"key file {file} belongs to user {found.st_uid}, not to this server's user {os.geteuid()}: "
            "run the server as that user, or change the owner with chown"
        )
    if found.st_mode & 0o077:
        raise ConfigError(
            f"key file {file} is open to others (mode {stat.S_IMODE(found.st_mode):04o}): run chmod 600 {file}"
        )
