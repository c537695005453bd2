"""The client against a real server, whose tasks end when a test says so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from paddlecloud import Client
from paddlecloud.model import paths, wire
from paddlecloud.model.errors import (
    ConfigError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TooLargeError,
    UnreachableError,
)
from paddlecloud.model.job import JobSpec, RoleSpec
from paddlecloud.model.state import JobState
from paddlecloud.model.user import Quota, Role, Scope
from paddlecloud.model.views import JobPage
from paddlecloud.sdk.profile import Profile
from tests.unit.cli.records import a_job
from tests.unit.sdk.answering import Answer, Asked, web
from tests.unit.server.running import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server") / "data") as made:
        yield made


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with client_of(server, server.ann) as made:
        yield made


def client_of(server: Running, token: str) -> Client:
    return Client(Profile(server=server.url, token=token))


def test_a_folder_and_a_command_become_a_job(client: Client, server: Running, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("echo hello\n")
    job = client.submit(tmp_path, command="sh run.sh", name="mine", wall_time="00:10:00", env={"A": "b"})
    assert (job.spec.name, job.spec.wall_time_seconds, job.spec.env) == ("mine", 600, {"A": "b"})
    assert job.spec.tree is not None
    assert client.submit(tmp_path, command="go on").spec.tree == job.spec.tree
    server.reaches(job.id, "running")
    server.finish(job.id)
    assert client.wait(job.id).state is JobState.SUCCESS


def test_what_to_submit_is_said_by_keywords_or_by_a_spec_and_not_by_both(client: Client) -> None:
    spec = JobSpec(roles=(RoleSpec(name="trainer", count=1, command="go on"),))
    assert client.submit(spec=spec).spec.roles == spec.roles
    with pytest.raises(InvalidError):
        client.submit()
    with pytest.raises(InvalidError):
        client.submit(spec=spec, command="go on")


def test_a_submit_with_the_same_key_is_the_same_job(client: Client) -> None:
    spec = JobSpec(roles=(RoleSpec(name="trainer", count=1, command="go on"),))
    first = client.submit(spec=spec, idempotency_key="k1")
    assert client.submit(spec=spec, idempotency_key="k1").id == first.id
    with pytest.raises(ConflictError):
        client.submit(command="false", idempotency_key="k1")


def test_pservers_stand_beside_trainers_where_they_are_asked_for(client: Client) -> None:
    job = client.submit(command="go on", nodes=2, distribute="PSERVER")
    assert [(role.name, role.count) for role in job.spec.roles] == [("pserver", 2), ("trainer", 2)]
    assert job.spec.distribute == "PSERVER"


def test_a_job_is_found_by_its_id_the_beginning_of_it_and_its_name(client: Client) -> None:
    job = client.submit(command="go on", name="findable")
    digits = job.id.removeprefix("job-")
    for ref in (job.id, job.id[:12], digits[:8], digits, "findable"):
        assert client.resolve(ref) == job.id


def test_a_name_means_the_live_job_and_else_the_newest(client: Client, server: Running) -> None:
    live = client.submit(command="go on", name="twice").id
    ended = client.submit(command="go on", name="twice").id
    server.reaches(ended, "running")
    server.finish(ended)
    client.wait(ended)
    assert client.resolve("twice") == live
    server.finish(live)
    client.wait(live)
    assert client.resolve("twice") == ended


def test_a_name_that_several_live_jobs_have_is_told_to_a_reader_and_refused_to_a_kill(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    older, newer = (client.submit(command="go on", name="namesake").id for _ in range(2))
    assert client.resolve("namesake") == newer
    assert caplog.messages == [f"2 live jobs are called 'namesake': this is the newest, {newer}"]
    with pytest.raises(ConflictError, match=f"2 live jobs are called 'namesake': {newer}, {older}; name one by its id"):
        client.kill("namesake")
    assert all(client.get(job).job.stop is None for job in (older, newer))
    client.kill(older)
    client.wait(older)
    assert client.kill("namesake").id == newer


def test_a_name_or_a_beginning_is_looked_for_in_few_requests() -> None:
    def endless(asked: Asked) -> Answer:
        query = parse_qs(urlsplit(asked.path).query)
        if query.get("name"):
            return Answer(body=b'{"items": []}')
        jobs = [a_job(id=paths.job_id(os.urandom(16))) for _ in range(int(query["limit"][0]))]
        return Answer(body=wire.encode(JobPage(items=tuple(jobs), next_cursor="more")))

    with web(endless) as server, Client(server.profile) as client:
        with pytest.raises(NotFoundError):
            client.resolve("job-" + "0" * 31)
        assert len(server.asked) < 10


def test_what_the_server_would_refuse_is_refused_before_the_folder_is_read_or_sent(
    server: Running, client: Client, tmp_path: Path
) -> None:
    (tmp_path / "fifo").mkdir()
    os.mkfifo(tmp_path / "fifo" / "unreadable")  # whoever reads the folder is refused for that
    jobs = len(client.list())
    for wrong in (
        JobSpec(roles=(RoleSpec(name="trainer", count=1, command="x"),), cluster="nowhere"),
        JobSpec(roles=(RoleSpec(name="trainer", count=1, command="x"),), job_type="gpu"),
    ):
        with pytest.raises(InvalidError, match=r"nowhere|no GPUs"):
            client.submit(tmp_path / "fifo", wrong)
    right = JobSpec(roles=(RoleSpec(name="trainer", count=1, command="x"),))
    with pytest.raises(InvalidError, match="FIFO"):
        client.submit(tmp_path / "fifo", right)
    assert client.check(right).spec.job_type == "cpu"
    assert len(client.list()) == jobs


def test_a_folder_over_the_servers_limit_is_refused_before_it_is_read(client: Client, tmp_path: Path) -> None:
    limit = client.check(JobSpec(roles=(RoleSpec(name="trainer", count=1, command="x"),))).upload_limit_bytes
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(limit + 1)
    with pytest.raises(TooLargeError, match="sparse"):
        client.submit(tmp_path, command="x")


def test_text_that_is_not_utf_8_is_refused_and_no_fault_of_ours(client: Client, tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="name is not UTF-8"):
        client.submit(command="x", name="\udcff")
    for call in (client.resolve, client.get, client.quota):
        with pytest.raises(InvalidError, match="not UTF-8"):
            call("\udcff")
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    odd.mkdir()
    assert client.submit(odd, command="go on").spec.folder == paths.text_of(b"caf\xe9")


def test_a_beginning_that_several_ids_have_is_not_taken(client: Client) -> None:
    ids = [client.submit(command="go on").id for _ in range(3)]
    assert client.resolve(ids[0][:20]) == ids[0]
    with pytest.raises(NotFoundError, match="paddlecloud ls"):
        client.resolve("job-abc")  # three digits are too few to be the beginning of an id
    with pytest.raises(NotFoundError):
        client.resolve("no such name")


def test_lists_are_whole_over_pages_and_keep_to_the_limit(client: Client) -> None:
    ids = [client.submit(command="go on", name="page").id for _ in range(5)]
    assert [job.id for job in client.list(name="page")] == ids[::-1]
    assert [job.id for job in client.list(name="page", limit=2)] == ids[:2:-1]
    assert all(job.state is JobState.SUCCESS for job in client.list(states=[JobState.SUCCESS]))


def test_a_kill_stops_the_job_and_wait_sees_the_end(client: Client, server: Running) -> None:
    job = client.submit(command="go on").id
    server.reaches(job, "running")
    with ThreadPoolExecutor() as threads:
        end = threads.submit(client.wait, job)
        assert client.kill(job).state is JobState.KILLING
        assert end.result(timeout=20).state is JobState.KILLED
    with pytest.raises(ConflictError, match="has ended already"):
        client.kill(job)


def test_wait_gives_up_after_its_timeout_with_the_record_as_it_is(client: Client, server: Running) -> None:
    job = client.submit(command="go on").id
    server.reaches(job, "running")
    assert client.wait(job, timeout=0.2).state is JobState.RUNNING


def test_logs_are_followed_to_the_end_of_the_job(client: Client, server: Running) -> None:
    job = client.submit(command="go on", nodes=2, distribute="NCCL2").id
    server.reaches(job, "running")
    server.say(job, "trainer-0", b"one\ntwo\n")
    assert "".join(piece.text for piece in client.logs(job)) == "one\ntwo\n"
    pieces = client.logs(job, follow=True)
    assert next(pieces).text == "one\ntwo\n"
    server.say(job, "trainer-1", "zwölf\n".encode())
    assert next(pieces).task == "trainer-1"
    server.finish(job)
    assert list(pieces) == []
    assert "".join(piece.text for piece in client.logs(job, task="trainer-0", tail=1)) == "two\n"


def test_events_of_a_job_end_with_it_and_go_on_after_the_last_one_seen(client: Client, server: Running) -> None:
    job = client.submit(command="go on").id
    server.reaches(job, "running")
    server.finish(job)
    moves = list(client.events(job, follow=True))
    assert [move.to_state for move in moves][-2:] == [JobState.RUNNING, JobState.SUCCESS]
    assert list(client.events(job, after=moves[-2].seq)) == moves[-1:]
    assert {move.job for move in client.events()} >= {job}


def test_results_are_listed_and_brought_back_into_a_new_folder(client: Client, server: Running, tmp_path: Path) -> None:
    job = client.submit(command="go on").id
    server.reaches(job, "running")
    (server.results(job) / "rank-0").mkdir(parents=True, exist_ok=True)
    (server.results(job) / "rank-0" / "model").write_text("weights")
    server.finish(job)
    client.wait(job)
    assert f"output/{job}/rank-0/model" in [entry.path for entry in client.files(job)]
    brought = client.download(job, tmp_path / "new")
    assert (tmp_path / "new" / job / "rank-0" / "model").read_text() == "weights"
    assert brought.size >= 7
    with pytest.raises(InvalidError, match="new"):
        client.download(job, tmp_path / "new")


def test_another_users_job_is_not_there(client: Client, server: Running) -> None:
    job = client.submit(command="go on").id
    with client_of(server, server.bob) as bob:
        with pytest.raises(NotFoundError):
            bob.get(job)
        with pytest.raises(ForbiddenError):
            bob.list(everyone=True)


def test_an_admin_looks_after_users_keys_and_quotas(server: Running) -> None:
    with client_of(server, server.root) as root:
        made = root.accounts.add_user("dora@example.com", Role.USER, "correct horse")
        root.accounts.change_user(made.name, quota=Quota(running_jobs=2), quotas={"local": Quota(instances=3)})
        use = root.quota(made.name)
        assert (use.overall.quota, use.clusters["local"].quota) == (Quota(running_jobs=2), Quota(instances=3))
        assert root.accounts.change_user(made.name, quotas={"local": None}).quotas == {}
        assert made.name in [user.name for user in root.accounts.users()]
        key = root.accounts.create_key(made.name)
        with Client(Profile(server=server.url, ak=key.key.ak, sk=key.sk)) as dora:
            assert dora.accounts.me().name == made.name
            token = dora.accounts.create_token("ci", Scope.READ, 3600)
            assert [one.id for one in dora.accounts.tokens()] == [token.token.id]
            dora.accounts.revoke_token(token.token.id)
            dora.accounts.revoke_key(key.key.ak)
            with pytest.raises(Exception, match=r"revoked|not known"):
                dora.accounts.me()
        with Client(Profile(server=server.url, user=made.name, password="correct horse")) as dora:
            assert dora.accounts.me().name == made.name
        root.accounts.change_user(made.name, disabled=True)
        assert root.accounts.user(made.name).disabled


def test_clusters_are_listed(client: Client) -> None:
    assert [cluster.name for cluster in client.clusters()] == ["local"]
    assert not client.has_gpus("default")


def test_a_program_without_a_server_is_told_to_start_one() -> None:
    with pytest.raises(UnreachableError, match="paddlecloud up"):
        Client(Profile(embedded=True))


def test_a_key_without_a_server_is_answered_with_where_to_name_one() -> None:
    with pytest.raises(ConfigError, match=r"^/home/x/client.conf has an access key but names no server: add .*openapi"):
        Client(Profile(ak="a", sk="s", sources={"ak": "/home/x/client.conf"}))
