"""Every wrong request gets a clear error with what to do, and changes nothing."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import secrets
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.model import signature
from tests.flow.lab import COMMAND, Lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("lab"))
    made.configure(
        '[clusters.local]\nbackend = "local"\n[clusters.cce]\nbackend = "local"\npolicy = "free"\ngpus = 1\n'
    )
    made.type("up")
    yield made
    made.close()


def call(
    lab: Lab,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    date: datetime | None = None,
    nonce: str | None = None,
    spoil: bool = False,
    headers: dict[str, str] | None = None,
    key: tuple[str, str] | None = None,
) -> tuple[int, dict[str, Any]]:
    """A request signed by hand, so that each part of it can be wrong."""
    embedded = json.loads((lab.data / "embedded.json").read_text())
    ak, sk = key or (embedded["ak"], embedded["sk"])
    bare, _, query = path.partition("?")
    signed = signature.headers(
        ak=ak,
        sk="wrong" if spoil else sk,
        method=method,
        path=bare,
        query=query,
        body_hash=hashlib.sha256(body).hexdigest(),
        date=date or datetime.now(UTC),
        nonce=nonce or secrets.token_hex(16),
    )
    # http.client sends the path as it is; a pool would tidy up what these tests are about.
    connection = http.client.HTTPConnection(lab.server["url"].removeprefix("http://"), timeout=30)
    connection.request(method, path, body=body, headers={**signed, **(headers or {})})
    answer = connection.getresponse()
    told = answer.read()
    connection.close()
    if answer.status == 204:
        return 204, {}
    assert answer.headers["content-type"] in ("application/problem+json", "application/json"), told
    return answer.status, json.loads(told)


def jobs_of(lab: Lab) -> int:
    return len(lab.client().list(limit=1000))


def a_spec(**changes: object) -> bytes:
    role = {"name": "trainer", "count": 1, "command": "true"}
    return json.dumps({"roles": [role], **changes}).encode()


def test_a_wrong_signature_is_refused(lab: Lab) -> None:
    status, problem = call(lab, "GET", "/v1/jobs", spoil=True)
    assert (status, problem["code"]) == (401, "unauthenticated")


def test_a_stale_date_is_refused_and_the_clocks_are_named(lab: Lab) -> None:
    for minutes in (-6, 6):
        status, problem = call(lab, "GET", "/v1/jobs", date=datetime.now(UTC) + timedelta(minutes=minutes))
        assert status == 401
        assert "clock" in problem["detail"]


def test_a_replayed_request_is_refused(lab: Lab) -> None:
    same: dict[str, Any] = {"date": datetime.now(UTC), "nonce": secrets.token_hex(16)}
    assert call(lab, "GET", "/v1/jobs", **same)[0] == 200
    status, problem = call(lab, "GET", "/v1/jobs", **same)
    assert status == 401
    assert "sent before" in problem["detail"]


def test_a_body_that_is_not_the_signed_one_is_refused(lab: Lab) -> None:
    before = jobs_of(lab)
    other = {"X-PC-Content-SHA256": hashlib.sha256(b"other").hexdigest()}
    assert call(lab, "POST", "/v1/jobs", a_spec(), headers=other)[0] == 401
    assert jobs_of(lab) == before


def test_a_disabled_user_is_out_at_once_and_another_users_job_is_not_there(lab: Lab) -> None:
    lab.type("user", "add", "bob", stdin="correct horse\ncorrect horse\n")
    made = json.loads(lab.out("key", "create", "--user", "bob", "-o", "json"))
    key = (made["key"]["ak"], made["sk"])
    job = lab.submit("true")
    for method, path in (
        ("GET", f"/v1/jobs/{job}"),
        ("POST", f"/v1/jobs/{job}/kill"),
        ("GET", f"/v1/jobs/{job}/files"),
        ("GET", f"/v1/jobs/{job}/logs"),
        ("GET", f"/v1/jobs/{job}/events"),
        ("GET", f"/v1/jobs/{job}/tasks/trainer-0/log"),
    ):
        status, problem = call(lab, method, path, key=key)
        assert (status, problem["code"]) == (404, "not_found"), path
    assert call(lab, "GET", "/v1/users", key=key)[0] == 403
    lab.type("user", "disable", "bob")
    assert call(lab, "GET", "/v1/jobs", key=key)[0] == 401


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--files=job", "--start_cmd=true", "--wall_time=25:61:00"], "wall_time"),
        (["--files=job", "--start_cmd=true", "--instance_count=0"], "instance_count"),
        (["--files=job", "--start_cmd=true", "--instance_count=x"], "instance_count"),
        (["--files=job", "--start_cmd=true", "--instance_count=1.5"], "not a whole number"),
        (["--files=job", "--start_cmd=true", "--wall_time=100000:00:00"], "too long"),
        (["--files=job", "--start_cmd=true", "--cluster=cce", "--instance_count=2"], "instance"),
        (["--files=job", "--start_cmd=true", "--cluster=cce", "--job_type=cpu"], "cpu"),
        (["--files=job", "--start_cmd="], "start_cmd"),
        (["--files=job", "--start_cmd= "], "start_cmd"),
        (["--files=job"], "start_cmd"),
        (["--start_cmd=true"], "files"),
        (["--files=nowhere", "--start_cmd=true"], "nowhere"),
        (["--files=job", "--start_cmd=true", "--clutser=local"], "cluster"),
        (["--files=job", "--start_cmd=true", "--cluster=bcc"], "local"),
        (["--files=job", "--start_cmd=true", "--job_type=tpu"], "job_type"),
        (["--files=job", "--start_cmd=true", "--cluster=local", "--job_type=gpu"], "GPU"),
        (["--files=job", "--start_cmd=true", "--public_bcc=2"], "public_bcc"),
        (["--files=job", "--start_cmd=true", "--public_bcc=0"], "bcc"),
        (["--start_cmd=true", "--public_bos=0"], "bos_url"),
        (["--start_cmd=true", "--public_bos=0", "--bos_url=b.bj.bcebos.com/d"], "bos"),
        (["--files=job", "--start_cmd=true", "--bos_url=b.bj.bcebos.com/d"], "bos_url"),
    ],
)
def test_a_wrong_parameter_of_submit_job_is_named(lab: Lab, words: list[str], says: str) -> None:
    lab.folder()
    before = jobs_of(lab)
    done = lab.type("submit_job", *words, code=None)
    assert done.returncode in (1, 2, 3), done
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert jobs_of(lab) == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (a_spec(naem="x"), "naem"),
        (a_spec(name="a\0b"), "name"),
        (a_spec(roles=[]), "roles"),
        (a_spec(roles=[{"name": "../x", "count": 1, "command": "true"}]), "roles"),
        (a_spec(roles=[{"name": "trainer", "count": 0, "command": "true"}]), "roles"),
        (a_spec(wall_time_seconds=-1), "wall_time"),
        (a_spec(tree="../../etc"), "tree"),
        (a_spec(env={"A=B": "x"}), "env"),
        (b"{", None),
        (b"[]", None),
        (b"\xff\xfe", None),
    ],
)
def test_a_wrong_body_is_refused_with_its_field(lab: Lab, body: bytes, field: str | None) -> None:
    before = jobs_of(lab)
    status, problem = call(lab, "POST", "/v1/jobs", body)
    assert status in (404, 422), problem
    if field is not None:
        assert field in (problem["field"] or "") + problem["detail"]
    assert jobs_of(lab) == before


def test_one_idempotency_key_makes_one_job(lab: Lab) -> None:
    key = {"Idempotency-Key": secrets.token_hex(8)}
    first = call(lab, "POST", "/v1/jobs", a_spec(name="once"), headers=key)
    again = call(lab, "POST", "/v1/jobs", a_spec(name="once"), headers=key)
    assert first[1]["id"] == again[1]["id"]
    status, problem = call(lab, "POST", "/v1/jobs", a_spec(name="other"), headers=key)
    assert (status, problem["code"]) == (409, "conflict")


def an_entry(**changes: object) -> dict[str, object]:
    digest = hashlib.sha256(b"abc").hexdigest()
    return {"path": "a", "kind": "file", "size": 3, "chunks": [digest], **changes}


@pytest.mark.parametrize(
    "entry",
    [
        an_entry(path="../a"),
        an_entry(path="/a"),
        an_entry(path="a\0b"),
        an_entry(path="a/../../b"),
        an_entry(size=-1),
        an_entry(size=2**40),
        an_entry(chunks=["../../x"]),
        an_entry(chunks=[]),
        {"path": "l", "kind": "link", "target": "../x"},
        {"path": "l", "kind": "link", "target": "/etc/passwd"},
    ],
)
def test_a_hostile_manifest_is_refused(lab: Lab, entry: dict[str, object]) -> None:
    status, problem = call(lab, "POST", "/v1/trees", json.dumps({"entries": [entry]}).encode())
    assert status in (413, 422), problem


def test_a_manifest_that_lies_about_a_size_seals_nothing(lab: Lab) -> None:
    body = secrets.token_bytes(100)
    digest = hashlib.sha256(body).hexdigest()
    assert call(lab, "PUT", f"/v1/chunks/{digest}", body)[0] == 204
    lie = json.dumps({"entries": [an_entry(size=99, chunks=[digest])]}).encode()
    status, problem = call(lab, "POST", "/v1/trees", lie)
    assert status == 422, problem
    assert "'a'" in problem["detail"]


def test_a_chunk_that_lies_about_its_hash_is_refused(lab: Lab) -> None:
    digest = hashlib.sha256(b"truth").hexdigest()
    status, _ = call(lab, "PUT", f"/v1/chunks/{digest}", b"lie")
    assert status in (401, 422)
    manifest = json.dumps({"entries": [an_entry(size=5, chunks=[digest])]}).encode()
    assert call(lab, "POST", "/v1/trees", manifest)[1]["missing"] == [digest]


def test_a_body_cut_in_the_middle_changes_nothing(lab: Lab) -> None:
    before = jobs_of(lab)
    embedded = json.loads((lab.data / "embedded.json").read_text())
    body = a_spec()
    headers = signature.headers(
        ak=embedded["ak"],
        sk=embedded["sk"],
        method="POST",
        path="/v1/jobs",
        query="",
        body_hash=hashlib.sha256(body).hexdigest(),
        date=datetime.now(UTC),
        nonce=secrets.token_hex(16),
    )
    host, port = lab.server["url"].removeprefix("http://").split(":")
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection((host, int(port))) as connection:
        head = f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{lines}\r\n"
        connection.sendall(head.encode() + body[: len(body) // 2])
    assert jobs_of(lab) == before


def test_a_link_out_of_the_jobs_folder_is_told_what_helps(lab: Lab) -> None:
    link = lab.folder() / "passwd"
    link.symlink_to("/etc/passwd")
    before = jobs_of(lab)
    done = lab.type("submit_job", "--files=job", "--start_cmd=true", code=2)
    link.unlink()
    assert "copy the file into the folder" in done.stderr
    assert jobs_of(lab) == before


def test_a_folder_without_a_name_to_download_into_is_wrongly_typed(lab: Lab) -> None:
    job = lab.submit("true")
    lab.ends(job, "success")
    for folder in ("", "."):
        done = lab.type("get_files", f"--job_id={job}", "--download=1", f"--download_dir={folder}", code=2)
        assert "new folder, such as" in done.stderr


@pytest.mark.parametrize("prefix", ["../../etc", "..%2f..%2fetc/passwd", "a%00b", "%2e%2e/%2e%2e/x"])
def test_a_results_path_that_climbs_is_refused(lab: Lab, prefix: str) -> None:
    job = lab.submit("ln -s /etc/passwd $OUTPUT_PATH/link; ln -s / $OUTPUT_PATH/root")
    lab.ends(job, "success")
    assert call(lab, "GET", f"/v1/jobs/{job}/files?prefix={prefix}")[0] in (404, 422)
    assert call(lab, "GET", f"/v1/jobs/{job}/files/{prefix}")[0] in (404, 422)
    for link in ("rank-0/link", "rank-0/root/etc/passwd"):
        assert call(lab, "GET", f"/v1/jobs/{job}/files/output/{job}/{link}")[0] in (404, 422)


def test_a_job_cannot_read_the_servers_keys_and_records(lab: Lab) -> None:
    secret = json.loads((lab.data / "embedded.json").read_text())["sk"]
    config = lab.home / ".config" / "paddlecloud" / "config.toml"
    assert secret in config.read_text()
    job = lab.submit(f"cat {lab.data}/embedded.json {lab.data}/key {config}; ls {lab.data}/files; true")
    lab.ends(job, "success")
    log = lab.out("logs", job)
    assert secret not in log
    assert log.count("No such file") == 4


def serve(lab: Lab, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "serve", *words], capture_output=True, text=True, env={**lab.env, **env}, timeout=30
    )


def test_a_second_server_on_one_data_folder_is_refused(lab: Lab) -> None:
    done = serve(lab)
    assert done.returncode != 0
    assert str(lab.server["pid"]) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_named(lab: Lab, tmp_path: Path) -> None:
    port = lab.server["url"].rpartition(":")[2]
    config = tmp_path / "server.toml"
    config.write_text(f"[server]\nport = {port}\n")
    done = serve(lab, "--config", str(config), PADDLECLOUD_DATA=str(tmp_path / "data"))
    assert done.returncode != 0
    assert port in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_setting_is_refused_with_the_nearest_known_name(lab: Lab, tmp_path: Path) -> None:
    config = tmp_path / "server.toml"
    config.write_text("[server]\nprot = 1\n")
    done = serve(lab, "--config", str(config), PADDLECLOUD_DATA=str(tmp_path / "data"))
    assert done.returncode != 0
    assert "prot" in done.stderr
    assert "port" in done.stderr


def test_a_corrupt_or_a_newer_database_is_refused_and_left_alone(lab: Lab, tmp_path: Path) -> None:
    for name, spoil in (("corrupt", corrupt), ("newer", newer)):
        data = tmp_path / name
        made = Lab.__new__(Lab)
        made.__dict__.update(lab.__dict__)
        made.data = data
        made.env = {**lab.env, "PADDLECLOUD_DATA": str(data)}
        made.configure("[server]\nport = 0\n")
        made.type("up")
        made.type("down")
        spoil(data / "paddlecloud.db")
        before = (data / "paddlecloud.db").read_bytes()
        done = serve(made)
        assert done.returncode != 0
        assert "paddlecloud.db" in done.stderr
        assert "Traceback" not in done.stderr
        assert (data / "paddlecloud.db").read_bytes() == before


def corrupt(path: Path) -> None:
    path.write_bytes(b"this is not a database" * 1000)


def newer(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    database.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
def test_a_data_folder_of_another_user_is_refused(lab: Lab, tmp_path: Path) -> None:
    data = tmp_path / "theirs"
    data.mkdir(mode=0o700)
    os.chown(data, 65534, 65534)
    done = serve(lab, PADDLECLOUD_DATA=str(data))
    assert done.returncode != 0
    assert "theirs" in done.stderr
    assert list(data.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system needs mount")
def test_a_full_disk_is_an_error_and_nothing_half_done(tmp_path: Path) -> None:
    small = tmp_path / "data"
    small.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m,mode=700", "tmpfs", str(small)], check=True)
    (tmp_path / "lab").mkdir()
    lab = Lab(tmp_path / "lab")
    try:
        lab.data = small
        lab.env["PADDLECLOUD_DATA"] = str(small)
        lab.folder()
        (lab.work / "job" / "big").write_bytes(secrets.token_bytes(40 * 2**20))
        done = lab.type("submit_job", "--files=job", "--start_cmd=true", code=1)
        assert "the server has room for" in done.stderr
        assert f" in {small}/" in done.stderr
        assert "Traceback" not in done.stderr
        assert jobs_of(lab) == 0
        (lab.work / "job" / "big").unlink()
        job = lab.submit("true")
        lab.ends(job, "success")
    finally:
        lab.close()
        subprocess.run(["umount", "-l", str(small)], check=True)
