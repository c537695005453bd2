"""Passes: texts that say who may do what and until when, signed by this server and kept nowhere.

Clients that come in every few seconds would leave a row each time; a pass leaves none. It ends at its time, with the
epoch of its user (a new password, or an admin's word), when its user is disabled, or when it is ended by name. It is
written as a JSON Web Token, which some clients look into; only this one header is ever accepted.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

from paddlecloud.model.errors import NotFoundError, UnauthenticatedError
from paddlecloud.model.user import User
from paddlecloud.store.passes import EndedPasses
from paddlecloud.store.users import Users

_HEADER = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=").decode()
_PURPOSE = "passes"
_LETTERS = 4096
_INVALID = "this pass is not valid: it has expired, was ended, or is of another server; log in again"


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass says. `use` is what it was made for, and it is good for nothing else; `about` is a part of that."""

    username: str
    use: str
    jti: str
    iat: float
    exp: float
    epoch: int
    about: str = ""
    application: bool = False  # read by clients that look into it

    @property
    def expires_at(self) -> datetime:
        return datetime.fromtimestamp(self.exp, UTC)

    @property
    def made_at(self) -> datetime:
        return datetime.fromtimestamp(self.iat, UTC)


_WORDS = msgspec.json.Decoder(Words)


class Passes:
    def __init__(self, users: Users, ended: EndedPasses, sign: Callable[[str, str], str]) -> None:
        self._users = users
        self._ended = ended
        self._sign = sign

    def make(self, user: str, use: str, *, lasting: timedelta, now: datetime, about: str = "") -> str:
        """A new pass of this user, who is known and not disabled."""
        words = Words(
            username=user,
            use=use,
            jti=secrets.token_hex(8),
            iat=now.timestamp(),
            exp=(now + lasting).timestamp(),
            epoch=self._users.in_epoch(user)[1],
            about=about,
        )
        return self._signed(f"{_HEADER}.{_encoded(msgspec.json.encode(words))}")

    def check(self, text: str, use: str, now: datetime) -> tuple[User, Words]:
        """Whose pass this is and what it says; one that is not good for this use now is refused."""
        words = self._read(text)
        if words is None or words.use != use or now >= words.expires_at:
            raise UnauthenticatedError(_INVALID)
        try:
            user, epoch = self._users.in_epoch(words.username)
        except NotFoundError:
            raise UnauthenticatedError(_INVALID) from None
        if epoch != words.epoch or self._ended.ended(user.name, words.jti, words.made_at):
            raise UnauthenticatedError(_INVALID)
        return user, words

    def end(self, words: Words, now: datetime) -> None:
        self._ended.end(words.username, words.jti, expires_at=words.expires_at, now=now)

    def mark(self, words: Words, use: str) -> str:
        """A text that only this server can make for the bearer of this pass: what a form must bring back."""
        return self._sign(f"{words.username} {words.jti} {use}", f"{_PURPOSE}: marks")

    def _read(self, text: str) -> Words | None:
        """What is signed in the text; None: nothing is."""
        head, _, _ = text.rpartition(".")
        if len(text) > _LETTERS or not text.isascii() or not head.startswith(f"{_HEADER}."):
            return None
        if not hmac.compare_digest(self._signed(head), text):
            return None
        try:
            return _WORDS.decode(_decoded(head.rpartition(".")[2]))
        except (msgspec.DecodeError, binascii.Error):
            return None  # of a version of this program that said other things

    def _signed(self, head: str) -> str:
        return f"{head}.{_encoded(bytes.fromhex(self._sign(head, _PURPOSE)))}"


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
