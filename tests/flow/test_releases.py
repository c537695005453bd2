"""Every release of the Go client that the wire tells apart, by its own requests, against the real server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest

from tests.flow.goclient import GoClient, RefusedError
from tests.flow.lab import Lab
from tests.flow.releases import RELEASES, Release
from tests.waiting import wait_until

PASSWORD = "correct horse"
NUMBERS = itertools.count()
MIB = 1024 * 1024
WITH_FILES = [release for release in RELEASES if release.pfs is not None]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("releases"))
    lab.configure("[clusters.local]\ncpus = 16\nmemory = '32Gi'\npolicy = 'open'\n[jobs]\ngrace = '30s'\n")
    lab.type("up")
    yield lab
    lab.close()


@pytest.fixture(params=RELEASES, ids=[release.name for release in RELEASES])
def client(server: Lab, request: pytest.FixtureRequest) -> GoClient:
    return joined(server, request.param)


@pytest.fixture(params=WITH_FILES, ids=[release.name for release in WITH_FILES])
def with_files(server: Lab, request: pytest.FixtureRequest) -> GoClient:
    return joined(server, request.param)


def joined(server: Lab, release: Release) -> GoClient:
    """A new user, whose config calls the only datacenter as the manual's sample does."""
    user = f"user{next(NUMBERS)}@lab.example"
    server.type("user", "add", user, "--password", stdin=f"{PASSWORD}\n")
    return GoClient(server.server["url"], user, PASSWORD, release=release, datacenter="datacenter1")


def placed(server: Lab, client: GoClient, **files: str) -> str:
    """A package where a release that sends none finds it: an operator has put it into the PFS."""
    folder = server.data / "pfs" / "local" / "home" / client.user / "package"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return f"{client.home}/package"


def is_over(client: GoClient, name: str) -> dict[str, object]:
    return wait_until(
        lambda: row if (row := client.jobs().get(name, {})).get("active") is None and row.get("start") else None,
        f"{name} ends",
    )


def test_a_job_from_its_submit_to_its_kill(server: Lab, client: GoClient) -> None:
    here = server.folder(f"package-{next(NUMBERS)}", run_sh="echo pass $PADDLE_INIT_NUM_PASSES\n")
    package = str(here) if client.release.pfs else placed(server, client, run_sh="echo pass $PADDLE_INIT_NUM_PASSES\n")
    assert client.jobs() == {}
    client.submit(package, name="train", parallelism=2, pservers=1, passes=3, entry="sh run.sh")
    row = is_over(client, "train")
    assert (row["succeeded"], row["failed"], row["ps_total"]) == (2, None, 1)
    assert [worker["status"] for worker in client.workers("train")] == ["Succeeded", "Succeeded"]
    assert client.logs("train", n=1).count("pass 3\n") == 2
    assert client.logs("train", n=5).count("'datacenter1' is taken for it") == 1, "a note, once"
    assert client.quota()[0]["requests.cpu"] == "16"
    assert client.kill("train") == ""
    assert client.jobs() == {}


def test_a_refused_submit_is_known_to_be_refused(server: Lab, client: GoClient) -> None:
    package = placed(server, client, run_sh="true\n")
    said = "jobname 'under_score' must be letters" if client.release.reads_bodies else "server error: 4"
    with pytest.raises(RefusedError, match=said):
        client.submit(package, name="under_score", entry="sh run.sh")
    said = "package not exist in cloud" if client.release.reads_bodies else "server error: 4"
    with pytest.raises(RefusedError, match=said):
        client.submit(f"{client.home}/nowhere", name="lost", entry="sh run.sh")
    assert client.jobs() == {}


def test_the_workers_of_a_killed_job_are_shown_until_they_have_ended_and_after(server: Lab, client: GoClient) -> None:
    package = placed(server, client, run_sh="trap 'sleep 1; exit 9' TERM; echo ready; while :; do sleep 0.1; done\n")
    client.submit(package, name="slow", pservers=0, entry="sh run.sh")
    wait_until(lambda: "ready" in client.logs("slow"), "it runs")
    assert client.kill("slow") == ""
    assert client.jobs()["slow"]["active"] == "Terminating"
    (ending,) = client.workers("slow")
    assert (ending["status"], ending["exit_code"]) == ("Running", None)
    wait_until(lambda: "slow" not in client.jobs(), "it is gone from the list")
    (ended,) = client.workers("slow")
    assert (ended["name"], ended["status"]) == (ending["name"], "Failed")
    assert "ready" in client.logs("slow", worker=ended["name"])


def test_a_job_that_is_not_there_is_said_not_to_be(client: GoClient) -> None:
    assert client.logs("never-was") == "no job 'never-was' of yours; `paddlecloud get jobs` lists them"
    assert client.workers("never-was") == []
    assert "no job 'never-was' of yours" in client.kill("never-was")


def test_files_and_folders_by_any_name_of_the_datacenter(with_files: GoClient) -> None:
    client, home = with_files, with_files.home
    content = bytes(range(256)) * (20 * MIB // 256)
    client.mkdir(f"{home}/data")
    assert client.upload(content, f"{home}/data/x") == (5 if client.release.generation == 2 else 10)
    assert client.stat(f"{home}/data/x")["Size"] == len(content)
    assert client.download(f"{home}/data/x") == content
    (entry,) = client.ls(f"{home}/data")
    assert client.download(entry["Path"]) == content, "the path as it is listed is good too"
    assert client.put_file(b"small", "y", f"{home}/data/y") == ""
    assert client.get_file(f"{home}/data/y") == b"small"
    assert client.list_files(f"{home}/data") == ["x", "y"]
    client.rm(f"{home}/data", recursive=True)
    with pytest.raises(RefusedError, match="no such file or directory"):
        client.stat(f"{home}/data")


def test_registry_secrets_by_the_names_that_were_typed(with_files: GoClient) -> None:
    secret = {"username": "u", "password": "s3cret", "server": "registry.lab.example:5000"}
    assert with_files.registry("POST", "mine", **secret) == ""
    assert with_files.registries() == ["mine"]
    assert with_files.registry("DELETE", "mine") == ""
    assert with_files.registry("DELETE", "mine").startswith("you have no registry 'mine'")
    assert "registry name 'a b' is not allowed" in with_files.registry("DELETE", "a b")


@pytest.mark.parametrize("release", [one for one in RELEASES if one.publishes], ids=lambda release: release.name)
def test_publishing_a_file(server: Lab, release: Release) -> None:
    client = joined(server, release)
    client.put_file(b"for all", "x", f"{client.home}/x")
    assert client.send("POST", "api/v1/publish/", json.dumps({"path": f"{client.home}/x"}).encode())[0] == "200 OK"
    (item,) = json.loads(client.send("GET", "api/v1/publish/")[1])["items"]
    path = item["url"].partition("/filepub/")[2]
    assert client.send("GET", f"filepub/{path}", authorized=False)[1] == b"for all"
