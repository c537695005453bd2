"""Sentences about who one is to a server: why a config does not say it, and where a key that was refused came from."""

from __future__ import annotations

from pathlib import Path

from paddlecloud.model.errors import PaddleCloudError, UnauthenticatedError
from paddlecloud.sdk.clientconf import why_no_key
from paddlecloud.sdk.profile import Profile

_GEN_TOKEN = "paddlecloud gen_token --email=you@example.com"
# Of what a server refuses with 401, this is for the holder of the key to mend; a clock or a disabled account is not.
_ABOUT_THE_KEY = ("is not known here", "the signature is wrong", "expired at", "wrong user name or password")


def why_nobody(profile: Profile) -> str:
    """What a profile lacks to be somebody at its server, and what to do."""
    login = f"paddlecloud login --server {profile.server}"
    file = Path(profile.client_conf)
    if not file.is_file():
        return f"nothing says who you are at {profile.server}: {login}, or set PADDLECLOUD_TOKEN"
    return (
        f"{file} does not say who you are at {profile.server}: {why_no_key(file)}. Write those of your mail there, or "
        f"have a key sent: {_GEN_TOKEN}; or log in otherwise: {login}"
    )


def with_source(refusal: PaddleCloudError, profile: Profile) -> PaddleCloudError:
    """A refusal; of a key, token or password that a file or the environment names, with that place and what to do."""
    kind = next((name for name in ("token", "ak") if getattr(profile, name)), "password")
    source = profile.sources.get(kind)
    about_key = type(refusal) is UnauthenticatedError and any(part in refusal.message for part in _ABOUT_THE_KEY)
    if source is None or profile.embedded or not about_key:
        return refusal
    return UnauthenticatedError(f"{refusal.message}. {_where(profile, kind, source)}", field=refusal.field)


def _where(profile: Profile, kind: str, source: str) -> str:
    if source == profile.client_conf:
        return f"The key is in {source}: correct it there, or have another sent: {_GEN_TOKEN}"
    if kind == "password":
        return f"User name and password are in {source}: correct them there"
    if kind == "ak":
        return f"The key is in {source}: log in with another: paddlecloud login --server {profile.server} --ak AK"
    return f"The token is in {source}: log in again: paddlecloud login --server {profile.server}"
