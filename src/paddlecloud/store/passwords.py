"""Hashes and checks passwords with argon2, with bounded memory.

Invariant: checking a password takes as long for an unknown user as for a known one.
"""

from __future__ import annotations

import threading

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from paddlecloud.model.errors import InvalidError

_MAX_LENGTH = 1024
_CONCURRENT_HASHES = 2


class Passwords:
    def __init__(self) -> None:
        self._hasher = PasswordHasher()
        # Each hash takes 64 MiB; a flood of logins waits here instead of exhausting memory.
        self._slots = threading.BoundedSemaphore(_CONCURRENT_HASHES)

    def hash(self, password: str) -> str:
        if not password or len(password) > _MAX_LENGTH:
            raise InvalidError(f"invalid password: use 1 to {_MAX_LENGTH} characters", field="password")
        try:
            password.encode()
        except UnicodeEncodeError:
            raise InvalidError("invalid password: it is not valid Unicode", field="password") from None
        with self._slots:
            return self._hasher.hash(password)

    def fits(self, password: str, stored: str | None) -> bool:
        """Whether the password matches the stored hash; without a hash it takes as long and returns False."""
        if len(password) > _MAX_LENGTH:
            return False
        given = password.encode(errors="replace")
        with self._slots:
            if stored is None:
                self._hasher.hash(given)
                return False
            try:
                return self._hasher.verify(stored, given)
            except (VerificationError, InvalidHashError):
                return False

    def outdated(self, stored: str) -> bool:
        """Whether the hash was made with weaker settings than the current ones."""
        return self._hasher.check_needs_rehash(stored)
