"""Who sends a request: every way to be refused, and that one signature is good once."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from paddlecloud.model import signature
from paddlecloud.model.errors import ForbiddenError, StaleError, UnauthenticatedError
from paddlecloud.model.signature import EMPTY_BODY_HASH, WINDOW
from paddlecloud.model.user import Role, Scope
from paddlecloud.server.auth import Authenticator, Identity
from paddlecloud.store.db import Database
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.migrated import migrated

START = datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=UTC)
MOMENT = timedelta(milliseconds=1)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def forward(self, by: timedelta) -> None:
        self.now += by


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def users(tmp_path: Path) -> Iterator[Users]:
    database = Database.open(migrated(tmp_path / "paddlecloud.db"))
    made = Users(database, Cipher(tmp_path / "key"))
    made.add("ann", Role.USER, None, START)
    yield made
    database.close()


@pytest.fixture
def authenticator(users: Users, clock: Clock) -> Authenticator:
    made = Authenticator(users, clock)
    clock.forward(timedelta(hours=1))
    return made


class Signer:
    """Signs as a client of ann's would."""

    def __init__(self, users: Users, clock: Clock) -> None:
        self._clock = clock
        key, self.sk = users.add_key("ann", START)
        self.ak = key.ak

    def headers(
        self, *, path: str = "/v1/jobs", query: str = "limit=1", late: timedelta = timedelta(0), sk: str | None = None
    ) -> dict[str, str]:
        nonce = secrets.token_hex(signature.NONCE_BYTES)
        date = self._clock.now - late
        return signature.headers(self.ak, sk or self.sk, "GET", path, query, EMPTY_BODY_HASH, date, nonce)


@pytest.fixture
def signer(users: Users, clock: Clock) -> Signer:
    return Signer(users, clock)


Identify = Callable[[dict[str, str]], Identity]


@pytest.fixture
def identify(authenticator: Authenticator) -> Identify:
    return lambda headers: authenticator.identify("GET", "/v1/jobs", "limit=1", headers)


def test_a_signed_request_is_its_users_with_all_rights_and_names_its_body(
    identify: Identify, signer: Signer, users: Users
) -> None:
    found = identify(signer.headers())
    assert found == Identity(user=users.get("ann"), scope=Scope.ADMIN, body_hash=EMPTY_BODY_HASH)


def test_names_of_headers_are_read_in_any_case(identify: Identify, signer: Signer) -> None:
    assert identify({name.lower(): value for name, value in signer.headers().items()}).user.name == "ann"
    assert identify({name.upper(): value for name, value in signer.headers().items()}).user.name == "ann"


def test_a_request_that_says_nothing_is_refused(identify: Identify) -> None:
    for headers in ({}, {"Authorization": ""}, {"Authorization": "  "}):
        with pytest.raises(UnauthenticatedError, match="does not say who sends it"):
            identify(headers)


def test_an_unknown_way_to_identify_is_refused(identify: Identify) -> None:
    with pytest.raises(UnauthenticatedError, match="scheme 'Basic' is not known"):
        identify({"Authorization": "Basic YW5uOnNlY3JldA=="})


@pytest.mark.parametrize("missing", ["X-PC-Date", "X-PC-Nonce", "X-PC-Content-SHA256"])
def test_a_signature_without_one_of_its_headers_is_refused(identify: Identify, signer: Signer, missing: str) -> None:
    headers = signer.headers()
    del headers[missing]
    with pytest.raises(UnauthenticatedError, match=missing) as refused:
        identify(headers)
    assert refused.value.field == missing


def test_a_header_given_twice_is_refused(identify: Identify, signer: Signer) -> None:
    headers = signer.headers()
    with pytest.raises(UnauthenticatedError, match="twice"):
        identify(headers | {"x-pc-date": headers["X-PC-Date"]})


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("X-PC-Date", "yesterday"),
        ("X-PC-Nonce", "short"),
        ("X-PC-Nonce", "00" * 16),
        ("X-PC-Content-SHA256", hashlib.sha256(b"other").hexdigest()),
        ("X-PC-Content-SHA256", "UNSIGNED"),
    ],
)
def test_a_header_that_was_changed_is_refused(identify: Identify, signer: Signer, header: str, value: str) -> None:
    with pytest.raises(UnauthenticatedError):
        identify(signer.headers() | {header: value})


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("POST", "/v1/jobs", "limit=1"),
        ("GET", "/v1/jobs/", "limit=1"),
        ("GET", "/v1/jobs", "limit=2"),
        ("GET", "/v1/jobs", ""),
        ("GET", "/v1/job%73", "limit=1"),
    ],
)
def test_a_signature_is_for_one_method_path_and_query(
    authenticator: Authenticator, signer: Signer, method: str, path: str, query: str
) -> None:
    with pytest.raises(UnauthenticatedError, match="signature is wrong"):
        authenticator.identify(method, path, query, signer.headers())


def test_a_wrong_secret_key_is_refused(identify: Identify, signer: Signer) -> None:
    with pytest.raises(UnauthenticatedError, match=f"signature is wrong for access key {signer.ak}"):
        identify(signer.headers(sk="0" * 64))


def test_an_unknown_access_key_is_refused(identify: Identify, signer: Signer) -> None:
    signer.ak = "f" * 32
    with pytest.raises(UnauthenticatedError, match="'f+' is not known"):
        identify(signer.headers())


def test_a_revoked_access_key_is_refused_from_the_next_request_on(
    identify: Identify, signer: Signer, users: Users
) -> None:
    identify(signer.headers())
    users.revoke_key(signer.ak, "ann")
    with pytest.raises(UnauthenticatedError, match="not known"):
        identify(signer.headers())


def test_a_disabled_user_is_refused_by_key_and_token(identify: Identify, signer: Signer, users: Users) -> None:
    _, secret = users.add_token("ann", "laptop", Scope.READ, None, START)
    users.change("ann", disabled=True)
    for headers in (signer.headers(), {"Authorization": f"Bearer {secret}"}):
        with pytest.raises(UnauthenticatedError, match="ann is disabled"):
            identify(headers)


@pytest.mark.parametrize("late", [WINDOW, -WINDOW, timedelta(0), timedelta(minutes=4, seconds=59)])
def test_a_date_within_five_minutes_is_good(identify: Identify, signer: Signer, clock: Clock, late: timedelta) -> None:
    clock.now = clock.now.replace(microsecond=0)
    assert identify(signer.headers(late=late)).user.name == "ann"


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (WINDOW + MOMENT, "5 min behind"),
        (timedelta(minutes=42), "42 min behind this server's clock"),
        (-WINDOW - 2 * MOMENT, "5 min ahead of"),
        (-timedelta(days=400), "400 days ahead of"),
    ],
)
def test_a_date_outside_the_window_says_how_far_the_clocks_are_apart(
    identify: Identify, signer: Signer, late: timedelta, said: str
) -> None:
    with pytest.raises(UnauthenticatedError, match=said) as refused:
        identify(signer.headers(late=late))
    assert refused.value.field == "X-PC-Date"


def test_a_date_before_the_servers_start_is_refused(users: Users, clock: Clock, signer: Signer) -> None:
    authenticator = Authenticator(users, clock)
    clock.forward(timedelta(minutes=2))
    before = signer.headers(late=timedelta(minutes=2) + MOMENT)
    with pytest.raises(UnauthenticatedError, match="before this server's start"):
        authenticator.identify("GET", "/v1/jobs", "limit=1", before)
    at_start = signer.headers(late=timedelta(minutes=2))
    assert authenticator.identify("GET", "/v1/jobs", "limit=1", at_start).user.name == "ann"


def test_a_clock_that_is_set_back_refuses_only_what_may_have_been_sent_before(
    users: Users, clock: Clock, signer: Signer
) -> None:
    authenticator = Authenticator(users, clock)
    used = signer.headers()
    authenticator.identify("GET", "/v1/jobs", "limit=1", used)
    clock.forward(-timedelta(hours=2))
    fresh = signer.headers()
    assert authenticator.identify("GET", "/v1/jobs", "limit=1", fresh).user.name == "ann"
    with pytest.raises(StaleError):
        authenticator.identify("GET", "/v1/jobs", "limit=1", signer.headers(late=MOMENT))
    clock.forward(timedelta(hours=2))
    for sent in (used, fresh):
        with pytest.raises(UnauthenticatedError):
            authenticator.identify("GET", "/v1/jobs", "limit=1", sent)


def test_a_request_dated_ahead_is_not_good_again_after_a_restart(users: Users, clock: Clock, signer: Signer) -> None:
    sent = signer.headers(late=-timedelta(minutes=4))
    Authenticator(users, clock).identify("GET", "/v1/jobs", "limit=1", sent)
    clock.forward(timedelta(seconds=2))
    restarted = Authenticator(users, clock)
    for _ in range(9):
        with pytest.raises(UnauthenticatedError):
            restarted.identify("GET", "/v1/jobs", "limit=1", sent)
        clock.forward(timedelta(minutes=1))
    clock.now = START + timedelta(seconds=4)
    fresh = signer.headers(late=-timedelta(minutes=4))
    assert restarted.identify("GET", "/v1/jobs", "limit=1", fresh).user.name == "ann"


def test_a_replay_is_refused_as_long_as_its_date_is_good(identify: Identify, signer: Signer, clock: Clock) -> None:
    sent = signer.headers(late=-timedelta(minutes=4))
    identify(sent)
    for _ in range(9):
        with pytest.raises(UnauthenticatedError, match="was sent before"):
            identify(sent)
        clock.forward(timedelta(minutes=1))
        identify(signer.headers())
    clock.forward(MOMENT)
    with pytest.raises(UnauthenticatedError, match="behind this server's clock"):
        identify(sent)


def test_two_keys_may_use_the_same_nonce(authenticator: Authenticator, users: Users, clock: Clock) -> None:
    for _ in range(2):
        key, sk = users.add_key("ann", START)
        headers = signature.headers(key.ak, sk, "GET", "/", "", EMPTY_BODY_HASH, clock.now, "00" * 16)
        assert authenticator.identify("GET", "/", "", headers).user.name == "ann"


def test_a_request_that_was_refused_may_be_sent_again_rightly(identify: Identify, signer: Signer) -> None:
    """A stranger who saw a nonce cannot use it up."""
    good = signer.headers()
    with pytest.raises(UnauthenticatedError):
        identify(good | {"Authorization": f"{signature.SCHEME} Credential={signer.ak}, Signature={'0' * 64}"})
    assert identify(good).user.name == "ann"


def test_of_many_sent_at_once_one_is_accepted(identify: Identify, signer: Signer) -> None:
    sent = signer.headers()

    def accepted(_: int) -> bool:
        try:
            identify(sent)
        except UnauthenticatedError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(accepted, range(16))) == 1


def test_a_flood_narrows_its_own_window_and_still_nothing_is_accepted_twice(users: Users, clock: Clock) -> None:
    authenticator = Authenticator(users, clock, nonces_of_a_key=10)
    flooding, calm = Signer(users, clock), Signer(users, clock)

    def identify(headers: dict[str, str]) -> None:
        authenticator.identify("GET", "/v1/jobs", "limit=1", headers)

    early = calm.headers()
    sent = []
    for _ in range(30):
        clock.forward(timedelta(seconds=1))
        sent.append(flooding.headers())
        identify(sent[-1])
    for headers in sent:
        with pytest.raises(UnauthenticatedError, match="was sent before|too many requests"):
            identify(headers)
    with pytest.raises(UnauthenticatedError, match=f"{flooding.ak} has sent too many requests"):
        identify(flooding.headers(late=timedelta(seconds=25)))
    identify(flooding.headers())
    identify(early)


def test_what_is_out_of_the_window_takes_no_memory(
    identify: Identify, authenticator: Authenticator, users: Users, clock: Clock
) -> None:
    first, second = Signer(users, clock), Signer(users, clock)
    for _ in range(50):
        identify(first.headers())
    clock.forward(2 * WINDOW + MOMENT)
    identify(second.headers())
    assert authenticator.nonces_remembered() == 1


def test_a_bearer_token_has_its_own_scope(identify: Identify, users: Users) -> None:
    for scope in Scope:
        _, secret = users.add_token("ann", "laptop", scope, None, START)
        for scheme in ("Bearer", "bearer"):
            found = identify({"Authorization": f"{scheme} {secret}"})
            assert found == Identity(user=users.get("ann"), scope=scope, body_hash=None)


def test_an_unknown_revoked_or_expired_token_is_refused(identify: Identify, users: Users, clock: Clock) -> None:
    token, secret = users.add_token("ann", "laptop", Scope.READ, clock.now + WINDOW, clock.now)
    headers = {"Authorization": f"Bearer {secret}"}
    identify(headers)
    clock.forward(WINDOW)
    with pytest.raises(UnauthenticatedError, match="'laptop' expired"):
        identify(headers)
    users.revoke_token(token.id, "ann")
    for wrong in (headers, {"Authorization": "Bearer"}, {"Authorization": "Bearer pct_unknown"}):
        with pytest.raises(UnauthenticatedError, match="not known"):
            identify(wrong)


def test_a_scope_allows_itself_and_less(users: Users) -> None:
    reader = Identity(user=users.get("ann"), scope=Scope.READ)
    reader.need(Scope.READ)
    with pytest.raises(ForbiddenError, match="has the scope read, and write is needed"):
        reader.need(Scope.WRITE)


def test_an_admin_needs_both_the_role_and_the_scope(users: Users) -> None:
    root = users.add("root", Role.ADMIN, None, START)
    full = Identity(user=root, scope=Scope.ADMIN)
    full.need_admin()
    assert full.admin
    for identity, said in (
        (Identity(user=root, scope=Scope.WRITE), "admin is needed"),
        (Identity(user=users.get("ann"), scope=Scope.ADMIN), "ann is none"),
    ):
        assert not identity.admin
        with pytest.raises(ForbiddenError, match=said):
            identity.need_admin()
