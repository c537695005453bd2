"""Signatures: the six lines, and that a change of any part of a request breaks them."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from paddlecloud.model import signature
from paddlecloud.model.errors import InvalidError, UnauthenticatedError
from paddlecloud.model.signature import Credential, SignedRequest

DATE = datetime(2020, 5, 17, 10, 15, 28, 120999, tzinfo=UTC)
AK, SK, NONCE, BODY = "a" * 32, "s" * 64, "0f" * 16, hashlib.sha256(b"{}").hexdigest()
REQUEST = SignedRequest(
    method="POST", path="/v1/jobs", query="a=1&b=%20", body_hash=BODY, date="2020-05-17T10:15:28.120Z", nonce=NONCE
)

_hex = "0123456789abcdef"
_requests = st.builds(
    SignedRequest,
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    path=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=12).map("/".__add__),
    query=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=12),
    body_hash=st.text(_hex, min_size=64, max_size=64),
    date=st.datetimes(timezones=st.just(UTC)).map(signature.format_date),
    nonce=st.text(_hex, min_size=32, max_size=32),
)
_secrets = st.text(min_size=1, max_size=20).filter(str.isprintable)


def test_the_signature_is_the_hmac_of_six_lines() -> None:
    lines = f"POST\n/v1/jobs\na=1&b=%20\n{BODY}\n2020-05-17T10:15:28.120Z\n{NONCE}"
    assert signature.string_to_sign(REQUEST) == lines
    assert signature.sign(SK, REQUEST) == hmac.new(SK.encode(), lines.encode(), hashlib.sha256).hexdigest()


def test_the_signature_of_a_known_request_never_changes() -> None:
    """Old clients must be understood by new servers: this value is part of the protocol."""
    assert signature.sign(SK, REQUEST) == "1a1255b2351580dfb0c56b02f50a950bd204dfbc7fbdfb26fe6c39ce9caf0048"


def test_headers_say_all_that_is_needed_to_check_them() -> None:
    sent = signature.headers(AK, SK, "POST", "/v1/jobs", "a=1&b=%20", BODY, DATE, NONCE)
    assert sent == {
        "Authorization": f"PC1-HMAC-SHA256 Credential={AK}, Signature={signature.sign(SK, REQUEST)}",
        "X-PC-Date": "2020-05-17T10:15:28.120Z",
        "X-PC-Nonce": NONCE,
        "X-PC-Content-SHA256": BODY,
    }
    credential = signature.parse_authorization(sent["Authorization"])
    assert credential == Credential(ak=AK, signature=signature.sign(SK, REQUEST))
    assert signature.fits(SK, REQUEST, credential.signature)


@given(request=_requests, secret=_secrets)
def test_a_signature_fits_the_request_it_was_made_for(request: SignedRequest, secret: str) -> None:
    assert signature.fits(secret, request, signature.sign(secret, request))


@given(request=_requests, other=_requests, part=st.sampled_from([part.name for part in fields(SignedRequest)]))
def test_any_other_part_breaks_the_signature(request: SignedRequest, other: SignedRequest, part: str) -> None:
    changed = replace(request, **{part: getattr(other, part)})
    assume(changed != request)
    assert not signature.fits(SK, changed, signature.sign(SK, request))


@given(request=_requests, secret=_secrets, other=_secrets)
def test_any_other_secret_breaks_the_signature(request: SignedRequest, secret: str, other: str) -> None:
    assume(secret != other)
    assert not signature.fits(other, request, signature.sign(secret, request))


@given(request=_requests, data=st.data())
def test_any_other_digit_breaks_the_signature(request: SignedRequest, data: st.DataObject) -> None:
    good = signature.sign(SK, request)
    place = data.draw(st.integers(0, 63))
    digit = data.draw(st.sampled_from(_hex).filter(lambda digit: digit != good[place]))
    assert not signature.fits(SK, request, good[:place] + digit + good[place + 1 :])
    assert not signature.fits(SK, request, good[:place])


@given(request=_requests, shift=st.integers(1, 8))
def test_what_moves_from_path_to_query_breaks_the_signature(request: SignedRequest, shift: int) -> None:
    whole = request.path + request.query
    at = (len(request.path) + shift) % (len(whole) + 1)
    moved = replace(request, path=whole[:at], query=whole[at:])
    assume(moved != request)
    assert not signature.fits(SK, moved, signature.sign(SK, request))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("method", "get"),
        ("method", "GET\n"),
        ("path", "/v1/a b"),
        ("path", "/v1\n"),
        ("path", "/é"),
        ("query", "a\nb"),
        ("query", "a\r"),
        ("body_hash", BODY.upper()),
        ("body_hash", ""),
        ("date", "2020-05-17T10:15:28Z"),
        ("date", "2020-05-17T10:15:28.120+00:00"),
        ("nonce", NONCE + "00"),
        ("nonce", "0F" * 16),
    ],
)
def test_a_part_that_cannot_be_sent_so_is_not_signed(part: str, value: str) -> None:
    with pytest.raises(InvalidError, match="cannot be signed"):
        signature.sign(SK, replace(REQUEST, **{part: value}))


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("Basic YW5u", "scheme 'Basic' is not known"),
        ("pc1-hmac-sha256 Credential=a, Signature=b", "scheme 'pc1-hmac-sha256'"),
        ("", "scheme ''"),
        ("PC1-HMAC-SHA256", "not in the form"),
        ("PC1-HMAC-SHA256 Credential=ak", "not in the form"),
        (f"PC1-HMAC-SHA256 Credential=, Signature={'a' * 64}", "not in the form"),
        (f"PC1-HMAC-SHA256 Credential=ak, Signature={'a' * 63}", "not in the form"),
        (f"PC1-HMAC-SHA256 Credential=ak, Signature={'A' * 64}", "not in the form"),
        (f"PC1-HMAC-SHA256 Credential=a\0k, Signature={'a' * 64}", "not in the form"),
        (f"PC1-HMAC-SHA256 Signature={'a' * 64}, Credential=ak", "not in the form"),
        (f"PC1-HMAC-SHA256 Credential=ak, Signature={'a' * 64}, Signature={'b' * 64}", "not in the form"),
    ],
)
def test_an_authorization_header_of_another_form_is_refused(header: str, said: str) -> None:
    with pytest.raises(UnauthenticatedError, match=said):
        signature.parse_authorization(header)


def test_spaces_around_the_parts_of_the_header_do_no_harm() -> None:
    expected = Credential(ak="ak", signature="a" * 64)
    for parts in (f"Credential=ak,Signature={'a' * 64}", f" Credential=ak, Signature={'a' * 64} "):
        assert signature.parse_authorization(f"PC1-HMAC-SHA256 {parts}") == expected


@given(
    date=st.datetimes(timezones=st.sampled_from([UTC, timezone(-timedelta(hours=8))])).filter(lambda at: at.year < 9999)
)
def test_a_date_comes_back_to_the_millisecond(date: datetime) -> None:
    assert timedelta(0) <= date - signature.parse_date(signature.format_date(date)) < timedelta(milliseconds=1)


def test_a_date_without_a_zone_is_no_date() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        signature.format_date(DATE.replace(tzinfo=None))


@pytest.mark.parametrize(
    "text", ["", "now", "2020-05-17", "2020-05-17T10:15:28Z", "2020-13-17T10:15:28.000Z", "2020-05-17T25:15:28.000Z"]
)
def test_a_date_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UnauthenticatedError, match="is not a date like"):
        signature.parse_date(text)
