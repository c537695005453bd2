"""Who a client of WebHDFS speaks for: the secret in its address, or a name that is believed only from some places."""

from __future__ import annotations

import asyncio
import http.client
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import urllib3

from paddlecloud.model.errors import UnauthenticatedError
from paddlecloud.model.user import Role, Scope
from paddlecloud.server import config
from paddlecloud.server.app import utc_now
from paddlecloud.server.audit import Origin
from paddlecloud.server.certificate import Certificate
from paddlecloud.server.hdfs_callers import Claim
from paddlecloud.server.logs import masked
from paddlecloud.server.secret_paths import without_secret
from paddlecloud.server.seen import Seen
from tests.certificates import Authority
from tests.unit.server.hdfscalls import Hdfs, good, refusal
from tests.unit.server.running import Running, running
from tests.waiting import wait_until

NOW = datetime(2026, 1, 2, tzinfo=UTC)
PASSWORD = "correct horse"
LOGIN = "/rest-server/api/v2/authn/basic/login"
PLAIN = "/webhdfs/v1/?op=GETHOMEDIRECTORY&user.name="


@pytest.fixture
def by_login(tmp_path: Path) -> Iterator[Running]:
    plain = {"clusters": {"local": {"policy": "open"}}, "webhdfs": {"plain": "logins"}}
    with running(tmp_path / "data", plain) as made:
        for name in ("ann", "bob"):
            made.users.change(name, password=PASSWORD)
        yield made


def log_in(server: Running, name: str, password: str = PASSWORD, **headers: str) -> int:
    """As OpenPAI's clients do."""
    sent = {"username": name, "password": password}
    return server.pool.request("POST", server.url + LOGIN, json=sent, headers=headers).status


def asked(server: Running, path: str, **headers: str) -> tuple[int, str]:
    answer = server.pool.request("GET", server.url + path, headers=headers)
    return (answer.status, "") if answer.status == 200 else (refusal(answer)[0], refusal(answer)[2])


def test_the_address_is_the_same_each_time_and_ends_with_all_that_its_user_came_in_by(server: Running) -> None:
    token = server.add_user("eve")
    first = server.ask("GET", "/v1/webhdfs", token=token).json()
    assert first == server.ask("GET", "/v1/webhdfs", token=token).json()
    assert (first["user"], first["plain"]) == ("eve", "tasks")
    assert asked(server, f"{first['path']}/webhdfs/v1/eve?op=GETFILESTATUS&user.name=eve")[0] == 200
    assert server.ask("DELETE", "/v1/users/eve/old-clients", token=token).status == 204
    status, message = asked(server, f"{first['path']}/webhdfs/v1/eve?op=GETFILESTATUS&user.name=eve")
    assert (status, "`paddlecloud webhdfs` prints the address" in message) == (401, True)
    assert server.ask("GET", "/v1/webhdfs", token=token).json()["path"] != first["path"]


def test_the_address_of_a_disabled_user_is_nobodys(server: Running) -> None:
    fay = Hdfs(server, server.add_user("fay"), "fay")
    assert fay.names("/user") == ["fay"]
    server.users.change("fay", disabled=True)
    assert refusal(fay.ask("GET", "/", "LISTSTATUS"))[:2] == (401, "SecurityException")


def test_who_may_only_read_is_not_shown_an_address_to_write_by(server: Running) -> None:
    assert server.ask("GET", "/v1/webhdfs", token=server.token("ann", Scope.READ)).status == 403


def test_an_admin_is_a_user_like_others_by_it(server: Running) -> None:
    root = Hdfs(server, server.root, "root-of-all")
    assert refusal(root.ask("PUT", "/pfs/public/x", "MKDIRS"))[:2] == (403, "AccessControlException")


def test_a_name_beside_the_secret_must_be_that_of_its_user(server: Running) -> None:
    ann = Hdfs(server, server.ann, "ann")
    top = f"{ann.top}/?op=LISTSTATUS"
    assert asked(server, top)[0] == asked(server, f"{top}&user.name=ann&user.name=ann")[0] == 200
    for names in ("user.name=bob", "user.name=ann&user.name=bob", "User.Name=bob", "user.name=ann&doas=bob"):
        status, message = asked(server, f"{top}&{names}")
        assert status == 401
        assert message.startswith("this address is that of ann, and user.name says another: `paddlecloud webhdfs`")


def test_a_secret_that_is_nobodys_is_refused_and_many_of_them_are_held_up(server: Running) -> None:
    ann = Hdfs(server, server.ann, "ann")
    wrong = [asked(server, f"/t/{secret}/webhdfs/v1/?op=LISTSTATUS") for secret in ("x", "pcw_" + "0" * 40)]
    assert [status for status, _ in wrong] == [401, 401]
    many = {asked(server, "/t/x/webhdfs/v1/?op=LISTSTATUS")[0] for _ in range(120)}
    assert many == {401, 429}
    assert ann.names("/user") == ["ann"]


def test_a_stranger_is_told_what_to_do(server: Running) -> None:
    for name in ("ann", "nobody", "", "ann&user.name=bob"):
        answer = server.pool.request("GET", server.url + PLAIN + name)
        status, exception, message = refusal(answer)
        assert (status, exception) == (401, "SecurityException")
        assert "`paddlecloud webhdfs` prints the address to use instead" in message
        if name in ("ann", "nobody"):
            host = urlsplit(server.url).netloc
            assert f'"webhdfs_uri": "{host}/t/<your secret>/webhdfs/v1"' in message
            assert f"http://{host}/" in message
            assert 'plain = "logins" below [webhdfs]' in message


def test_a_name_is_believed_from_where_it_has_just_logged_in_if_the_operator_says_so(by_login: Running) -> None:
    assert asked(by_login, PLAIN + "ann")[0] == 401
    assert log_in(by_login, "bob", "wrong") == 400
    assert log_in(by_login, "ann") == 200
    assert asked(by_login, PLAIN + "ann")[0] == 200
    assert asked(by_login, PLAIN + "bob")[0] == 401
    # Behind a proxy everybody has the address of the proxy.
    assert asked(by_login, PLAIN + "ann", **{"X-Forwarded-For": "10.0.0.1"})[0] == 401


def test_it_is_believed_on_an_encrypted_connection_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    files = authority.issue()
    plain = {"clusters": {"local": {"policy": "open"}}, "webhdfs": {"plain": "logins"}}
    with running(tmp_path / "data", plain, certificate=Certificate(files.chain, files.key, utc_now)) as server:
        server.pool = urllib3.PoolManager(retries=False, timeout=30.0, ca_certs=str(authority.file))
        server.users.change("ann", password=PASSWORD)
        assert log_in(server, "ann") == 200
        assert asked(server, PLAIN + "ann")[0] == 200


def test_no_name_is_believed_from_where_two_users_have_logged_in(by_login: Running) -> None:
    assert log_in(by_login, "ann") == 200
    assert asked(by_login, PLAIN + "ann")[0] == 200
    assert log_in(by_login, "bob") == 200
    assert [asked(by_login, PLAIN + name)[0] for name in ("ann", "bob")] == [401, 401]


def test_a_login_counts_no_longer_once_all_that_its_user_came_in_by_has_ended(by_login: Running) -> None:
    assert log_in(by_login, "ann") == 200
    assert asked(by_login, PLAIN + "ann")[0] == 200
    by_login.users.end_epoch("ann")
    assert asked(by_login, PLAIN + "ann")[0] == 401
    assert log_in(by_login, "ann") == 200
    assert asked(by_login, PLAIN + "ann")[0] == 200


def test_a_call_waits_for_the_login_that_is_under_way_at_its_address(by_login: Running) -> None:
    """As the VS Code client sends them to a server that was started anew."""
    turns = by_login.services.accounts._users._passwords._slots
    with ThreadPoolExecutor() as threads, ExitStack() as held:
        for _ in range(2):
            held.enter_context(turns)  # no password is checked until these are given back
        login = threads.submit(log_in, by_login, "ann")
        wait_until(lambda: by_login.services.hdfs_callers._pending, "the login is under way")
        call = threads.submit(asked, by_login, PLAIN + "ann")
        with pytest.raises(TimeoutError):
            call.result(3)
        held.close()
        assert (login.result(), call.result()[0]) == (200, 200)
    assert not by_login.services.hdfs_callers._pending
    assert asked(by_login, PLAIN + "bob")[0] == 401


def test_only_a_login_through_openpais_api_counts(by_login: Running) -> None:
    for path, name in (("/v1/login", "name"), ("/api-token-auth/", "username"), ("/login.html", "")):
        sent = {"json": {name: "ann", "password": PASSWORD}} if name else {"fields": {"username": "ann"}}
        by_login.pool.request("POST", by_login.url + path, **sent)
        assert asked(by_login, PLAIN + "ann")[0] == 401


def test_what_a_page_has_a_browser_send_is_not_believed_by_its_address(by_login: Running) -> None:
    """A page of anybody's may have the browser of who has just logged in send a POST, and not read the answer."""
    assert log_in(by_login, "ann") == 200
    assert asked(by_login, PLAIN + "ann")[0] == 200
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert asked(by_login, PLAIN + "ann", **headers)[0] == 401


def test_who_hangs_up_on_this_machine_before_they_are_looked_for_is_not_believed(by_login: Running) -> None:
    """A task of another may send a call under the name of who has logged in here, and close its end at once."""
    callers = by_login.services.hdfs_callers
    for address in ("127.0.0.1", "127.0.0.9", "10.0.0.1"):
        callers.logged_in(by_login.user("ann"), Origin(address=address, request_id="", passed_on=False))
    gone = [a_claim("ann", address) for address in ("127.0.0.1", "127.0.0.9", "10.0.0.1")]
    assert [believed(by_login, claim) for claim in gone] == [False, False, True]


def test_a_connection_that_was_closed_during_the_look_up_is_not_believed(by_login: Running) -> None:
    origin = Origin(address="10.0.0.1", request_id="", passed_on=False)
    by_login.services.hdfs_callers.logged_in(by_login.user("ann"), origin)
    assert believed(by_login, a_claim("ann", "10.0.0.1"))
    assert not believed(by_login, a_claim("ann", "10.0.0.1", is_established=False))


def test_a_login_by_way_of_a_proxy_is_none_from_the_proxys_address(by_login: Running) -> None:
    """Else whoever is on the proxy's machine, as tasks of others may be, would be believed."""
    assert log_in(by_login, "ann", **{"X-Forwarded-For": "10.0.0.1"}) == 200
    assert asked(by_login, PLAIN + "ann")[0] == 401


def test_callers_that_are_refused_too_often_are_told_so_and_others_go_on(by_login: Running) -> None:
    """Known connections of the same machine are not held up; nor are tasks, in tests/hostile/test_forged_callers.py."""
    assert log_in(by_login, "ann") == 200
    url = urlsplit(by_login.url)
    with closing(http.client.HTTPConnection(url.hostname or "", url.port)) as known:

        def ask(name: str) -> http.client.HTTPResponse:
            known.request("GET", PLAIN + name)
            answer = known.getresponse()
            answer.read()
            return answer

        assert ask("ann").status == 200
        answers = [ask("bob") for _ in range(110)]
        assert {answer.status for answer in answers} == {401, 429}
        assert int(answers[-1].headers["Retry-After"]) >= 1
        assert ask("ann").status == 200


@pytest.mark.parametrize(("embedded", "plain"), [(True, "logins"), (False, "tasks")])
def test_a_persons_own_server_believes_logins_and_a_shared_one_tasks(embedded: bool, plain: str) -> None:
    assert config.parse({}, embedded=embedded).believed_names == plain
    assert config.parse({"webhdfs": {"plain": "off"}}, embedded=embedded).believed_names == "off"


def test_no_name_is_believed_where_that_is_off(tmp_path: Path) -> None:
    plain = {"clusters": {"local": {"policy": "open"}}, "webhdfs": {"plain": "off"}}
    with running(tmp_path / "data", plain) as server:
        server.users.change("ann", password=PASSWORD)
        assert log_in(server, "ann") == 200
        assert asked(server, PLAIN + "ann")[0] == 401


def test_who_was_seen_is_forgotten_after_a_while_and_of_too_many_the_first() -> None:
    seen = Seen(timedelta(minutes=1), most=2)
    seen.note("ann", "10.0.0.1", NOW)
    assert seen.lately("ann", "10.0.0.1", NOW + timedelta(seconds=60))
    assert not seen.lately("ann", "10.0.0.1", NOW + timedelta(seconds=61))
    assert not seen.lately("ann", "10.0.0.1", NOW - timedelta(seconds=61))
    assert not seen.lately("ann", "10.0.0.2", NOW)
    assert not seen.lately("bob", "10.0.0.1", NOW)
    seen.note("bob", "10.0.0.1", NOW)
    seen.note("ann", "10.0.0.1", NOW)
    seen.note("cat", "10.0.0.1", NOW)
    assert [seen.lately(name, "10.0.0.1", NOW) for name in ("ann", "bob", "cat")] == [True, False, True]
    assert len(seen) == 2


def test_one_user_alone_at_an_address_is_told_from_several() -> None:
    seen = Seen(timedelta(minutes=1), most=3)
    assert seen.only("10.0.0.1", NOW) is None
    seen.note("ann", "10.0.0.1", NOW)
    assert (seen.only("10.0.0.1", NOW), seen.only("10.0.0.2", NOW)) == ("ann", None)
    seen.note("bob", "10.0.0.1", NOW + timedelta(seconds=30))
    assert seen.only("10.0.0.1", NOW + timedelta(seconds=30)) is None
    assert seen.only("10.0.0.1", NOW + timedelta(seconds=61)) == "bob"
    for name in ("cat", "dan"):
        seen.note(name, "10.0.0.2", NOW + timedelta(seconds=30))
    assert seen.only("10.0.0.1", NOW + timedelta(seconds=30)) == "bob"


def test_the_secret_is_in_no_line_of_the_log_in_no_metric_and_in_no_record(
    server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    ann = Hdfs(server, server.ann, "ann")
    secret = ann.secret.removeprefix("/t/")
    encoded = "".join(f"%{ord(letter):02x}" for letter in secret)
    with caplog.at_level(logging.INFO):
        ann.write("/ann/f", b"1")
        ann.ask("GET", "/ann/nothing", "OPEN")
        for path in (
            f"{ann.top}/ann?op=LISTSTATUS",
            f"/t/{encoded}/webhdfs/v1/ann?op=LISTSTATUS",
            f"/%74/{secret}/webhdfs/v1/ann/x?op=LISTSTATUS",
            f"/t/{secret}",
            f"/t/{secret}/webhdfs/v2",
            f"//t/{secret}/webhdfs/v1/",
            f"/webhdfs/t/{encoded}",
        ):
            answer = ann.raw("GET", path)
            assert secret.encode() not in answer.data
    # uvicorn's own log of requests goes nowhere (listening.py), but pytest catches it all the same.
    records = [record for record in caplog.records if record.name != "uvicorn.access"]
    lines = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in records)
    assert "/t/…/webhdfs/v1/ann/f" in lines
    assert secret not in lines
    assert encoded not in lines
    assert secret not in server.pool.request("GET", server.url + "/metrics").data.decode()
    audited = str(server.get("/v1/audit?limit=500", server.root))
    assert "webhdfs.show" in audited
    assert secret not in audited


def test_the_secret_has_the_shape_that_every_log_leaves_out() -> None:
    secret = "pcw_" + "ab" * 20
    assert masked(f"failed for http://box/t/{secret}/webhdfs/v1/x?op=OPEN") == "failed for http://box/t/pcw_…"
    assert without_secret(f"/t/{secret}/webhdfs/v1/t/x") == "/t/…/webhdfs/v1/t/x"
    assert without_secret(f"/x/{secret}") == "/x/…"


def test_what_nobody_foresaw_is_told_in_the_shape_that_clients_read(
    server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    gil = Hdfs(server, server.add_user("gil", Role.USER), "gil")
    good(gil.ask("PUT", "/gil", "MKDIRS"))
    pfs = server.services.pfs
    stores = dict(pfs._stores)
    pfs._stores = {"local": None}  # type: ignore[dict-item]
    try:
        status, exception, message = refusal(gil.ask("GET", "/gil", "LISTSTATUS"))
    finally:
        pfs._stores = stores
    assert (status, exception) == (500, "RuntimeException")
    assert "its log has it under request id" in message
    assert gil.secret not in caplog.text


def test_a_machine_that_a_task_has_just_called_from_is_believed_for_as_long_as_it_runs(server: Running) -> None:
    """As a node of Slurm does that shares no disk with the server; nothing on it can be told apart from here."""
    callers, job = server.services.hdfs_callers, server.run()
    assert not believed(server, a_claim("ann", "10.0.0.5"))
    callers.task_called(server.services.records.get(job), "10.0.0.5")
    assert believed(server, a_claim("ann", "10.0.0.5"))
    assert not believed(server, a_claim("ann", "10.0.0.6"))
    assert not believed(server, a_claim("bob", "10.0.0.5"))
    assert not believed(server, a_claim("ann", "10.0.0.5", passed_on=True))
    server.finish(job)
    server.reaches(job, "success")
    assert not believed(server, a_claim("ann", "10.0.0.5"))


def test_a_login_at_a_node_that_runs_tasks_is_not_believed(by_login: Running) -> None:
    callers = by_login.services.hdfs_callers
    node, desk, other = "10.0.0.5", "10.0.0.6", "10.0.0.7"
    callers._runs_tasks_at = lambda address: address == node
    for address in (node, desk, other):
        callers.logged_in(by_login.user("ann"), Origin(address=address))
    assert [believed(by_login, a_claim("ann", address)) for address in (node, desk, other)] == [False, True, True]
    job = by_login.run(token=by_login.token("bob", Scope.WRITE))
    callers.task_called(by_login.services.records.get(job), other)
    assert not believed(by_login, a_claim("ann", other)), "a task of another user has just called from there"


def a_claim(name: str, address: str, *, passed_on: bool = False, is_established: bool = True) -> Claim:
    return Claim(
        secret=None,
        names=[name],
        client=(address, 1),
        server=("127.0.0.1", 2),
        host="box:8642",
        passed_on=passed_on,
        is_established=lambda: is_established,
    )


def believed(server: Running, claim: Claim) -> bool:
    try:
        return asyncio.run(server.services.hdfs_callers.identify(claim)).user.name == claim.names[0]
    except UnauthenticatedError:
        return False
