"""Passwords: argon2 hashes, a check that takes as long for unknown users, and a bound on the memory it takes."""

from __future__ import annotations

import threading

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from paddlecloud.model.errors import InvalidError

_LENGTH = 1024
_AT_ONCE = 2


class Passwords:
    def __init__(self) -> None:
        self._hasher = PasswordHasher()
        # Each hash takes 64 MiB; a flood of logins waits here instead of taking all memory.
        self._turns = threading.BoundedSemaphore(_AT_ONCE)

    def hash(self, password: str) -> str:
        if not password or len(password) > _LENGTH:
            raise InvalidError(f"a password has 1 to {_LENGTH} characters", field="password")
        try:
            password.encode()
        except UnicodeEncodeError:
            raise InvalidError("the password is not valid Unicode", field="password") from None
        with self._turns:
            return self._hasher.hash(password)

    def fits(self, password: str, stored: str | None) -> bool:
        """Whether the password is the one stored; with none stored it takes as long, and never is."""
        if len(password) > _LENGTH:
            return False
        given = password.encode(errors="replace")
        with self._turns:
            if stored is None:
                self._hasher.hash(given)
                return False
            try:
                return self._hasher.verify(stored, given)
            except (VerificationError, InvalidHashError):
                return False

    def outdated(self, stored: str) -> bool:
        """Whether the hash was made with weaker settings than today's."""
        return self._hasher.check_needs_rehash(stored)
