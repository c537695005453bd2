"""How a request is signed with an access key: pure, and the same for who signs and who checks.

`Authorization: PC1-HMAC-SHA256 Credential=<ak>, Signature=<hex>`, where the signature is HMAC-SHA256, with the secret
key, of six lines: method, path and query exactly as sent, the body's SHA-256, the date and the nonce. No part may
hold a line break, so no two requests have the same six lines.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from paddlecloud.model.errors import InvalidError, UnauthenticatedError

SCHEME = "PC1-HMAC-SHA256"
DATE_HEADER = "X-PC-Date"
NONCE_HEADER = "X-PC-Nonce"
BODY_HASH_HEADER = "X-PC-Content-SHA256"
WINDOW = timedelta(minutes=5)
NONCE_BYTES = 16
EMPTY_BODY_HASH = hashlib.sha256(b"").hexdigest()

_AUTHORIZATION = re.compile(r"Credential=([0-9A-Za-z_-]{1,128}), ?Signature=([0-9a-f]{64})")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_NONCE = re.compile(r"[0-9a-f]{32}")
_BODY_HASH = re.compile(r"[0-9a-f]{64}")
_METHOD = re.compile(r"[A-Z]+")
_RAW = re.compile(r"[!-~]*")  # what an HTTP request line can hold: ASCII that prints, no space


class SignedRequest(Struct, frozen=True, kw_only=True):
    """What a signature covers, as it goes over the wire. `query` comes without its question mark."""

    method: str
    path: str
    query: str
    body_hash: str
    date: str
    nonce: str


class Credential(Struct, frozen=True, kw_only=True):
    """Who says to have signed, and the signature."""

    ak: str
    signature: str


def headers(
    ak: str, sk: str, method: str, path: str, query: str, body_hash: str, date: datetime, nonce: str
) -> dict[str, str]:
    """The headers that sign a request."""
    request = SignedRequest(
        method=method, path=path, query=query, body_hash=body_hash, date=format_date(date), nonce=nonce
    )
    return {
        "Authorization": f"{SCHEME} Credential={ak}, Signature={sign(sk, request)}",
        DATE_HEADER: request.date,
        NONCE_HEADER: nonce,
        BODY_HASH_HEADER: body_hash,
    }


def sign(secret: str, request: SignedRequest) -> str:
    return hmac.digest(secret.encode(), string_to_sign(request).encode("ascii"), "sha256").hex()


def fits(secret: str, request: SignedRequest, signature: str) -> bool:
    """Whether the signature is this request's; takes as long whatever is wrong with it."""
    return hmac.compare_digest(sign(secret, request).encode(), signature.encode(errors="replace"))


def string_to_sign(request: SignedRequest) -> str:
    parts = (
        ("method", request.method, _METHOD),
        ("path", request.path, _RAW),
        ("query", request.query, _RAW),
        (BODY_HASH_HEADER, request.body_hash, _BODY_HASH),
        (DATE_HEADER, request.date, _DATE),
        (NONCE_HEADER, request.nonce, _NONCE),
    )
    for name, value, form in parts:
        if not form.fullmatch(value):
            raise InvalidError(f"{name} {value!r} cannot be signed: it is not in the form it is sent in", field=name)
    return "\n".join(value for _, value, _ in parts)


def parse_authorization(header: str) -> Credential:
    """Who signed, from the Authorization header."""
    scheme, _, rest = header.strip().partition(" ")
    if scheme != SCHEME:
        raise UnauthenticatedError(f"Authorization scheme {scheme!r} is not known: use {SCHEME} or Bearer")
    found = _AUTHORIZATION.fullmatch(rest.strip())
    if found is None:
        raise UnauthenticatedError(
            f"the Authorization header is not in the form {SCHEME} Credential=<ak>, Signature=<64 hex digits>"
        )
    return Credential(ak=found[1], signature=found[2])


def format_date(date: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    if date.tzinfo is None:
        raise ValueError(f"{date!r} has no time zone")
    return date.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def parse_date(text: str) -> datetime:
    try:
        if _DATE.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise UnauthenticatedError(f"{DATE_HEADER} {text!r} is not a date like 2020-05-17T10:15:28.000Z")
