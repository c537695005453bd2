"""Several datacenters on one server: a folder elsewhere, and a bucket; the same commands and the same old client."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.goclient import GoClient
from tests.flow.lab import Lab
from tests.s3 import BUCKET, REGION, S3Server

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, s3_server: S3Server) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("centers")
    made = Lab(folder)
    (folder / "secret").write_text(f"{s3_server.secret}\n")
    made.configure(
        f"""
[datacenters.dc1]
path = "{folder}/srv"
[datacenters.cold]
store = "s3"
bucket = "{BUCKET}/lab"
endpoint = "{s3_server.endpoint}"
region = "{REGION}"
key_id = "{s3_server.key_id}"
secret_file = "{folder}/secret"
"""
    )
    made.type("up")
    yield made
    made.close()


@pytest.fixture(scope="module")
def me(lab: Lab) -> str:
    return lab.client().profile.user


def test_files_go_to_each_datacenter_and_back(lab: Lab, me: str) -> None:
    data = lab.folder("data", a_txt="one", b_txt="two")
    (data / "large").write_bytes(os.urandom(20_000_000))
    assert lab.out("ls", "/pfs", "-o", "name").split() == ["/pfs/cold", "/pfs/dc1"]
    for center in ("dc1", "cold"):
        home = f"/pfs/{center}/home/{me}"
        lab.type("cp", "data", f"{home}/data")
        lab.type("cp", f"{home}/data", f"back-{center}")
        for name in ("a.txt", "b.txt", "large"):
            assert (lab.work / f"back-{center}" / name).read_bytes() == (data / name).read_bytes()
        lab.type("mv", f"{home}/data/a.txt", f"{home}/moved.txt")
        listed = lab.out("ls", "-r", home, "-o", "name").split()
        expected = [f"{home}/{name}" for name in ("data", "data/b.txt", "data/large", "moved.txt")]
        assert [path for path in listed if not path.startswith(f"{home}/output")] == expected
        lab.type("rm", "-r", f"{home}/data", f"{home}/moved.txt")
    assert not any(path.is_file() for path in (lab.data.parent / "srv" / "home").rglob("*"))


def test_the_old_client_writes_chunks_into_a_bucket(lab: Lab) -> None:
    lab.type("user", "add", "ann", "--password", stdin=f"{PASSWORD}\n")
    ann = GoClient(lab.server["url"], "ann", PASSWORD)
    old, new = os.urandom(9 << 20), os.urandom(9 << 20)
    path = "/pfs/cold/home/ann/model"
    ann.upload(old, path)
    assert ann.download(path) == old
    ann.touch(path, len(new))
    ann.put_chunk(path, 0, new[: 4 << 20])
    assert ann.get_file(path) == old
    ann.upload(new, path)
    assert ann.get_file(path) == new
    assert [entry["Path"] for entry in ann.ls("/pfs/cold/home/ann")] == [path]


def test_a_job_runs_in_a_folder_and_not_in_a_bucket(lab: Lab, me: str) -> None:
    lab.folder("package", run_sh="ls /pfs; cat /pfs/dc1/home/*/note\n")
    (lab.work / "note").write_text("hello\n")
    for center in ("dc1", "cold"):
        lab.type("cp", "note", f"/pfs/{center}/home/{me}/note")
    lab.type("submit", "-jobname", "first", "-pservers", "0", "-entry", "sh run.sh", "package")
    lab.ends("first", "success")
    assert lab.out("logs", "first") == "dc1\npublic\nhello\n"
    refused = lab.type("submit", "-jobname", "second", "-datacenter", "cold", "-entry", "true", "package", code=2)
    assert "is in a bucket, which tasks cannot run in" in refused.stderr


def test_the_secret_of_a_bucket_is_nowhere(lab: Lab, s3_server: S3Server) -> None:
    assert s3_server.secret not in lab.out("config", "--server")
    lab.type("doctor", code=None)
    for path in lab.data.rglob("*"):
        if path.is_file():
            assert s3_server.secret.encode() not in path.read_bytes(), path


def test_homes_outside_the_data_folder_are_closed_to_other_accounts(lab: Lab) -> None:
    home: Path = lab.data.parent / "srv" / "home"
    assert home.stat().st_mode & 0o077 == 0
