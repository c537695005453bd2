"""Seed 001 by its original client: the recorded protocol against the real server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.goclient import EMPTY, GoClient, RefusedError
from tests.flow.lab import Lab
from tests.waiting import wait_until

MIB = 1024 * 1024
PASSWORD = "correct horse"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One for all stories: each has users of its own."""
    lab = Lab(tmp_path_factory.mktemp("cloud"))
    lab.configure(
        "[clusters.local]\ncpus = 16\nmemory = '32Gi'\npolicy = 'open'\n[jobs]\ngrace = '1s'\npserver_wait = '0s'\n"
    )
    lab.type("up")
    yield lab
    lab.close()


@pytest.fixture
def ann(server: Lab) -> GoClient:
    return joined(server, "ann")


@pytest.fixture
def bob(server: Lab) -> GoClient:
    return joined(server, "bob")


def joined(server: Lab, name: str) -> GoClient:
    name = f"{name}{next(NUMBERS)}@lab.example"
    server.type("user", "add", name, "--password", stdin=f"{PASSWORD}\n")
    return GoClient(server.server["url"], name, PASSWORD)


def ended(client: GoClient, name: str) -> dict[str, object]:
    return wait_until(
        lambda: row if (row := client.jobs().get(name, {})).get("active") is None and row.get("start") else None,
        f"{name} ends",
    )


def test_a_token_is_the_same_for_ever_and_ends_with_the_password(server: Lab, ann: GoClient) -> None:
    first = ann.token
    assert len(first) == 40
    again = GoClient(server.server["url"], ann.user, PASSWORD)
    assert again.token == first
    server.type("down")
    server.type("up")
    assert GoClient(server.server["url"], ann.user, PASSWORD).token == first
    stale = GoClient(server.server["url"], ann.user, PASSWORD)
    assert stale.token == first
    server.type("user", "passwd", ann.user, stdin="another horse\n")
    with pytest.raises(RefusedError, match="401 Unauthorized"):
        stale.jobs()


def test_who_is_not_known_is_told_so_as_the_old_server_did(server: Lab, ann: GoClient) -> None:
    url = server.server["url"]
    with pytest.raises(RefusedError, match="server error: 400 Bad Request"):
        _ = GoClient(url, ann.user, "wrong").token
    for body, status, said in (
        (b'{"username": "x"}', "400", {"password": ["This field is required."]}),
        (
            b'{"username": "x", "password": "y"}',
            "400",
            {"non_field_errors": ["Unable to log in with provided credentials."]},
        ),
        (b"{", "400", None),
    ):
        got, answer = ann.send("POST", "api-token-auth/", body, authorized=False)
        assert got.startswith(status)
        assert said is None or json.loads(answer) == said
    status, answer = ann.send("GET", "api/v1/jobs/", authorized=False)
    assert (status, json.loads(answer)) == (
        "401 Unauthorized",
        {"detail": "Authentication credentials were not provided."},
    )
    ann._token = "0" * 40
    with pytest.raises(RefusedError, match="401"):
        ann.jobs()
    with pytest.raises(RefusedError, match="get username error:server error: 401 Unauthorized"):
        ann.ls(ann.home)
    with pytest.raises(RefusedError, match="non-200 status: 401"):
        ann.get_chunk(f"{ann.home}/x", 0, 4096)


def test_a_package_is_sent_and_runs_as_seed_001_has_it(server: Lab, ann: GoClient) -> None:
    server.folder(
        "package",
        train_py="import os\n"
        "role = os.environ['TRAINING_ROLE']\n"
        "print(role, os.getcwd(), os.environ['PADDLE_INIT_NUM_PASSES'], os.environ['TRAINERS'], flush=True)\n"
        "open(os.environ['OUTPUT_PATH'] + '/model', 'w').write('weights')\n",
    )
    assert ann.jobs() == {}
    ann.submit(
        str(server.work / "package"), name="my-job", parallelism=2, pservers=1, passes=7, entry="python train.py"
    )
    row = ended(ann, "my-job")
    assert (row["succeeded"], row["failed"], row["ps_total"]) == (2, None, 1)
    assert row["comp"] is not None
    log = ann.logs("my-job")
    first, second = [worker["name"] for worker in ann.workers("my-job")]
    line = f"TRAINER {ann.home}/jobs/my-job 7 2\n"
    assert log == f"{'=' * 26}{first}{'=' * 26}\n{line}{'=' * 26}{second}{'=' * 26}\n{line}"
    assert ann.logs("my-job", slash="/") == log
    assert ann.logs("my-job", worker=second) == line
    assert ann.logs("my-job", n=0, worker=second) == ""
    assert ann.list_files(f"{ann.home}/jobs/my-job") == ["train.py"]
    outputs = [entry["Path"] for entry in ann.ls(f"{ann.home}/output", recursive=True)]
    assert any(path.endswith("/rank-1/model") for path in outputs), outputs


def test_workers_are_shown_from_pending_to_their_last_words(server: Lab, ann: GoClient) -> None:
    server.folder("package", run_sh="kill -SEGV $$\n")
    ann.submit(str(server.work / "package"), name="crash", pservers=0, entry="sh run.sh")
    row = ended(ann, "crash")
    assert (row["failed"], row["succeeded"]) == (1, None)
    (worker,) = ann.workers("crash")
    assert worker["status"] == "Failed"
    assert (worker["exit_code"], worker["message"]) == (139, "Segmentation Fault")
    ann.submit(str(server.work / "package"), name="waits", parallelism=15, pservers=1, entry="sleep 100")
    ann.submit(str(server.work / "package"), name="waits-too", parallelism=2, pservers=0, entry="sleep 100")
    pending = wait_until(lambda: ann.workers("waits-too"), "workers are listed")
    assert {(one["status"], one["start"]) for one in pending} == {("Pending", None)}
    assert ann.kill("waits-too") == ""
    assert ann.kill("waits") == ""


def test_a_name_is_free_again_after_kill_and_a_clash_is_said_in_words(
    server: Lab, ann: GoClient, bob: GoClient
) -> None:
    package = str(server.folder("package", run_sh="sleep 100\n"))
    ann.submit(package, name="again", pservers=0, entry="sh run.sh")
    with pytest.raises(RefusedError, match=r"^error submiting job: job 'again' already exists .*kill it first"):
        ann.submit(package, name="again", pservers=0, entry="sh run.sh")
    assert "again" not in bob.jobs()
    assert "no job 'again' of yours" in bob.kill("again")
    assert ann.kill("again") == ""
    wait_until(lambda: "again" not in ann.jobs(), "the killed job is gone from the list")
    ann.submit(package, name="again", pservers=0, entry="true")
    assert ended(ann, "again")["succeeded"] == 1
    assert ann.kill("again") == "", "a finished job leaves the list"
    assert "again" not in ann.jobs()
    assert ann.kill("") == "must specify jobname"
    assert "no job" in ann.kill("never-was")
    status, body = ann.send("DELETE", "api/v1/jobs/", b'{"jobname": "a"b"}')
    assert status == "200 OK"
    assert json.loads(body)["code"] == 500


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"entry": ""}, "no topology or entry specified"),
        ({"datacenter": ""}, "no datacenter specified"),
        ({"name": "under_score"}, "jobname 'under_score' must be letters"),
        ({"parallelism": 0}, "1 or more"),
        ({"parallelism": -1}, "parallelism must be a whole number"),
        ({"memory": "lots"}, "lots"),
        ({"cpu": "two"}, "cpu must be a whole number"),
        ({"parallelism": 100}, "can never run"),
        ({"gpu": 1}, "no"),
        ({"jobPackage": "/pfs/local/home/another/x", "name": "other"}, "not yours"),
        ({"jobPackage": "{home}/none", "name": "other"}, "package not exist in cloud"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(
    server: Lab, ann: GoClient, asked: dict[str, object], said: str
) -> None:
    ann.put_file(b"true", "run.sh", f"{ann.home}/jobs/refused/run.sh")
    package = str(asked.get("jobPackage", "elsewhere")).format(home=ann.home)
    with pytest.raises(RefusedError, match="error submiting job") as refused:
        ann.submit(package, **({"name": "refused", "entry": "sh run.sh"} | asked | {"jobPackage": package}))
    assert said in str(refused.value)
    assert ann.jobs() == {}


def test_a_package_of_the_pfs_runs_where_it_is(server: Lab, ann: GoClient) -> None:
    ann.put_file(b"echo here >> seen; pwd\n", "run.sh", f"{ann.home}/ctr_demo_package/run.sh")
    ann.submit(f"{ann.home}/ctr_demo_package", name="in-place", pservers=0, entry="sh run.sh")
    ended(ann, "in-place")
    assert ann.logs("in-place").endswith(f"\n{ann.home}/ctr_demo_package\n")
    assert ann.get_file(f"{ann.home}/ctr_demo_package/seen") == b"here\n"


def test_old_clients_send_less_and_newer_ones_more(server: Lab, ann: GoClient) -> None:
    ann.put_file(b"true", "run.sh", f"{ann.home}/jobs/first/run.sh")
    oldest = {"name": "first", "jobPackage": "x", "parallelism": 1, "cpu": 1, "gpu": 0, "memory": "1Gi"}
    oldest |= {"pservers": 1, "pscpu": 1, "psmemory": "1Gi", "topology": "", "datacenter": "local", "passes": 1}
    body = json.dumps(oldest | {"entry": "true"}).encode()
    status, answer = ann.send("POST", "api/v1/jobs/", body)
    assert (status, json.loads(answer)) == ("200 OK", {"code": 200, "msg": ""})
    assert ended(ann, "first")["succeeded"] == 1


def test_a_slash_at_the_end_of_the_endpoint_is_forgiven(server: Lab, bob: GoClient) -> None:
    twice = GoClient(server.server["url"], bob.user, PASSWORD, slashes="//")
    assert twice.jobs() == {}
    assert twice.quota()[0]["requests.cpu"] == "16"
    assert set(twice.quota()[0]) == {"requests.cpu", "requests.memory", "alpha.kubernetes.io/nvidia-gpu", "pods"}
    assert twice.quota()[0]["requests.memory"] == "32Gi"


def test_registry_secrets_are_kept_and_never_told(server: Lab, ann: GoClient, bob: GoClient) -> None:
    secret = {"username": "u", "password": "s3cret", "server": "registry.lab.example:5000"}
    assert ann.registry("POST", "mine", **secret) == ""
    assert "exists" in ann.registry("POST", "mine", **secret)
    assert ann.registries() == ["mine"]
    assert bob.registries() == []
    assert bob.registry("DELETE", "mine") != ""
    assert b"s3cret" not in b"".join(file.read_bytes() for file in server.data.glob("*.db*"))
    assert ann.registry("DELETE", "mine") == ""
    assert ann.registry("DELETE", "mine") != ""
    assert ann.registries() == []


def test_files_go_up_and_come_down_whole(ann: GoClient) -> None:
    content = bytes(range(256)) * 20_000
    assert ann.put_file(content, "local/x", f"{ann.home}/deep/er/x") == ""
    assert ann.get_file(f"{ann.home}/deep/er/x") == content
    assert ann.list_files(f"{ann.home}/deep") == ["er"]
    with pytest.raises(RefusedError, match="404"):
        ann.get_file(f"{ann.home}/none")
    with pytest.raises(RefusedError, match="dir not exist"):
        ann.list_files(f"{ann.home}/none")
    assert ann.put_file(b"x", "x", "") == "must specify path"
    # Package `.`: the client sends top-level files to the folder's own path, and deeper ones below it.
    assert ann.put_file(b"1", "a", f"{ann.home}/jobs/j1") == ""
    assert ann.put_file(b"2", "d/b", f"{ann.home}/jobs/j1/b") != ""
    assert ann.get_file(f"{ann.home}/jobs/j1") == b"1"


def test_a_published_file_can_be_read_by_anybody_until_it_is_gone(server: Lab, ann: GoClient) -> None:
    ann.put_file(b"for all", "x", f"{ann.home}/x")
    status, _ = ann.send("POST", "api/v1/publish/", json.dumps({"path": f"{ann.home}/x"}).encode())
    assert status == "200 OK"
    (item,) = json.loads(ann.send("GET", "api/v1/publish/")[1])["items"]
    path = item["url"].partition("/filepub/")[2]
    assert ann.send("GET", f"filepub/{path}", authorized=False)[1] == b"for all"
    assert ann.send("POST", "api/v1/publish/", json.dumps({"path": "/pfs/local/home/another/x"}).encode())[1] != b""
    assert ann.send("GET", "filepub/?uuid=00000000-0000-0000-0000-000000000000", authorized=False)[0].startswith("404")
    ann.rm(f"{ann.home}/x")
    assert ann.send("GET", f"filepub/{path}", authorized=False)[0].startswith("404")


@pytest.mark.parametrize("generation", [1, 2])
@pytest.mark.parametrize("size", [0, 1, 4096, 2 * MIB, 4 * MIB, 9 * MIB + 17])
def test_both_generations_of_cp_carry_files_of_every_size(ann: GoClient, generation: int, size: int) -> None:
    content = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    ann.mkdir(f"{ann.home}/data")
    ann.upload(content, f"{ann.home}/data/x", generation=generation)
    assert ann.stat(f"{ann.home}/data/x")["Size"] == size
    assert ann.download(f"{ann.home}/data/x") == content
    assert ann.upload(content, f"{ann.home}/data/x", generation=generation) <= 1, "only the end is sent again"


def test_a_file_of_zeros_arrives_as_one(ann: GoClient) -> None:
    ann.upload(bytes(5 * MIB), f"{ann.home}/zeros")
    assert ann.download(f"{ann.home}/zeros", b"x" * 5 * MIB) == bytes(5 * MIB)


def test_nobody_sees_half_a_file_and_a_broken_upload_goes_on(ann: GoClient) -> None:
    old, new = b"a" * 9 * MIB, b"b" * 9 * MIB
    ann.upload(old, f"{ann.home}/x")
    ann.touch(f"{ann.home}/x", len(new))
    ann.put_chunk(f"{ann.home}/x", 0, new[: 4 * MIB])
    assert ann.get_file(f"{ann.home}/x") == old
    assert ann.upload(new, f"{ann.home}/x") == 2
    assert ann.get_file(f"{ann.home}/x") == new
    shorter = b"c" * 5 * MIB
    ann.touch(f"{ann.home}/x", len(shorter))
    ann.put_chunk(f"{ann.home}/x", 0, shorter[: 4 * MIB])
    assert ann.get_file(f"{ann.home}/x") == new
    assert ann.upload(shorter, f"{ann.home}/x") == 1
    assert ann.get_file(f"{ann.home}/x") == shorter


def test_pfs_answers_are_as_the_client_knows_them(ann: GoClient) -> None:
    assert ann.mkdir(f"{ann.home}/a/b") == [{"path": f"{ann.home}/a/b"}]
    ann.put_file(b"1234", "x", f"{ann.home}/a/x")
    listed = {entry["Path"]: entry for entry in ann.ls(f"{ann.home}/a")}
    assert set(listed) == {f"{ann.home}/a/b", f"{ann.home}/a/x"}
    assert listed[f"{ann.home}/a/b"]["IsDir"] is True
    assert (listed[f"{ann.home}/a/x"]["Size"], listed[f"{ann.home}/a/x"]["IsDir"]) == (4, False)
    assert listed[f"{ann.home}/a/x"]["ModTime"] > 10**18
    assert [entry["Path"] for entry in ann.ls(f"{ann.home}/a/*x")] == [f"{ann.home}/a/x"]
    with pytest.raises(RefusedError, match="no such file or directory"):
        ann.stat(f"{ann.home}/none")
    with pytest.raises(RefusedError, match="no such file or directory"):
        ann.ls(f"{ann.home}/none*")
    with pytest.raises(RefusedError, match="can't del directory"):
        ann.rm(f"{ann.home}/a")
    assert ann.rm(f"{ann.home}/a/no*") is None
    assert ann.rm(f"{ann.home}/a", recursive=True) == [{"path": f"{ann.home}/a"}]
    with pytest.raises(RefusedError, match="bad file size:-1"):
        ann.touch(f"{ann.home}/x", -1)
    with pytest.raises(RefusedError, match="chunksize error"):
        ann.chunk_meta(f"{ann.home}/x", 17, 0)
    ann.upload(b"12345", f"{ann.home}/x")
    assert ann.chunk_meta(f"{ann.home}/x", 4096, 4096) == {"offset": 4096, "checksum": EMPTY, "len": 0}
    ann.upload(b"", f"{ann.home}/empty")
    assert ann.chunk_meta(f"{ann.home}/empty", 4096) is None


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "api/v1/pfs/files?method=none", b"", "405"),
        ("POST", "api/v1/pfs/files", b'{"method":"none"}', "405"),
        ("DELETE", "api/v1/pfs/files", b'{"method":"none"}', "405"),
        ("POST", "api/v1/pfs/storage/chunks", b"not multipart", "400"),
        (
            "GET",
            "api/v1/pfs/storage/chunks?chunksize=4096&offset=0&path=%2Fpfs%2Flocal%2Fhome%2Fanother%2Fx",
            b"",
            "403",
        ),
        ("GET", "api/v1/pfs/storage/chunks?chunksize=4096&offset=0&path=%2Fpfs%2Fpublic%2Fnone", b"", "404"),
        ("GET", "api/v1/pfs/storage/chunks", b"", "400"),
        ("PUT", "api/v1/jobs/", b"", "405"),
        ("GET", "healthz/", b"", "200 OK"),
        ("GET", "api/v1/token2user/", b"", "200 OK"),
    ],
)
def test_odd_calls_are_answered_with_a_status_that_no_version_falls_over(
    ann: GoClient, method: str, path: str, body: bytes, status: str
) -> None:
    assert ann.send(method, path, body)[0].startswith(status)


@pytest.mark.parametrize(
    "path",
    [
        "/pfs/local/home/{bob}/secret",
        "{home}/../{bob}/secret",
        "{home}/./../{bob}//secret",
        "/pfs/local/home/*/secret",
        "/pfs/local/home/b*/secret",
        "/pfs/../pfs/local/home/{bob}/secret",
        "/pfs/local/home/../../../etc/passwd",
        "/etc/passwd",
        "{home}/link",
        "{home}/folder-link/secret",
    ],
)
def test_no_path_reaches_another_users_file_by_any_call(server: Lab, ann: GoClient, bob: GoClient, path: str) -> None:
    path = path.format(home=ann.home, bob=bob.user)
    assert bob.put_file(b"bob's", "secret", f"{bob.home}/secret") == ""
    ann.mkdir(ann.home)
    homes: Path = server.data / "pfs" / "local" / "home"
    (homes / ann.user / "link").symlink_to(homes / bob.user / "secret")
    (homes / ann.user / "folder-link").symlink_to(homes / bob.user)
    for reach in (
        lambda: ann.get_file(path),
        lambda: ann.get_chunk(path, 0, 5),
        lambda: ann.chunk_meta(path, 4096, 0),
    ):
        with pytest.raises(RefusedError):
            reach()
    ann.put_file(b"ann's", "x", path)
    for write in (
        lambda: ann.upload(b"ann's", path),
        lambda: ann.rm(path),
        lambda: ann.put_chunk(path, 0, b"ann's"),
        lambda: ann.mkdir(f"{path}/below"),
    ):
        try:
            write()
        except RefusedError:
            continue
    assert bob.get_file(f"{bob.home}/secret") == b"bob's"
    assert bob.list_files(bob.home) == ["output", "secret"]
