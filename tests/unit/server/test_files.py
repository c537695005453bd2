"""Folders in, results out, over HTTP: whole or in part, with what lets a client go on after a break."""

from __future__ import annotations

import base64
import hashlib
import os
import struct

import pytest
import urllib3

from paddlecloud.model.tree import LEFT_OUT, PACK_BYTES, PACK_CHUNKS, PACKED_BYTES, unpack
from paddlecloud.model.user import Scope
from tests.unit.server.running import Running

CONTENT = bytes(range(256)) * 10


@pytest.fixture(scope="module")
def job(server: Running) -> str:
    made = server.run()
    folder = server.results(made) / "rank-0"
    folder.mkdir(parents=True)
    (folder / "model").write_bytes(CONTENT)
    (folder / "odd\nname ?#%").write_bytes(b"odd")
    (folder / "empty").touch()
    server.say(made, "trainer-0", b"a log\n")
    return made


def entry(path: str, content: bytes) -> dict[str, object]:
    return {"path": path, "kind": "file", "size": len(content), "chunks": [hashlib.sha256(content).hexdigest()]}


def test_a_folder_is_sent_by_asking_what_is_missing_and_then_may_be_named(server: Running) -> None:
    contents = {"a": os.urandom(1000), "b": os.urandom(1000), "c": os.urandom(1000)}
    manifest = {"entries": [entry(path, content) for path, content in contents.items()]}
    plan = server.ask("POST", "/v1/trees", manifest).json()
    assert len(plan["missing"]) == 3
    single = hashlib.sha256(contents["a"]).hexdigest()
    assert server.ask("PUT", f"/v1/chunks/{single}", contents["a"]).status == 204
    pack = b"".join(
        hashlib.sha256(content).digest() + struct.pack(">I", len(content)) + content
        for content in (contents["b"], contents["c"])
    )
    assert server.ask("POST", "/v1/chunks", pack).status == 204
    assert server.ask("POST", "/v1/trees", manifest).json() == {"tree": plan["tree"], "missing": []}
    assert server.submit(tree=plan["tree"])
    theirs = server.ask("POST", "/v1/trees", manifest, token=server.bob).json()
    assert len(theirs["missing"]) == 3


def test_a_chunk_of_another_name_or_too_large_is_refused(server: Running) -> None:
    name = hashlib.sha256(b"one thing").hexdigest()
    assert server.ask("PUT", f"/v1/chunks/{name}", b"another").status == 422
    assert server.ask("PUT", "/v1/chunks/..%2f..%2fx", b"x").status in (404, 422)
    large = bytes(8 * 2**20 + 1)
    answer = server.ask("PUT", f"/v1/chunks/{hashlib.sha256(large).hexdigest()}", large)
    assert (answer.status, answer.json()["code"]) == (413, "too_large")


def test_results_are_listed_in_pages_and_below_a_prefix(server: Running, job: str) -> None:
    prefix = f"output/{job}"
    whole = [file["path"] for file in server.get(f"/v1/jobs/{job}/files")["items"]]
    assert whole[0] == f"{prefix}/"
    assert f"{prefix}/log/trainer-0.log" in whole
    paged: list[str] = []
    cursor = ""
    while True:
        page = server.ask("GET", f"/v1/jobs/{job}/files?limit=2{cursor}").json()
        paged += [file["path"] for file in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = "&cursor=" + "".join(f"%{byte:02x}" for byte in page["next_cursor"].encode())
    assert paged == whole
    below = server.get(f"/v1/jobs/{job}/files?prefix={prefix}/log")["items"]
    assert [file["path"] for file in below] == [f"{prefix}/log/trainer-0.log"]
    assert below == server.get(f"/v1/jobs/{job}/files?prefix=log")["items"]
    assert len(server.get(f"/v1/jobs/{job}/files?prefix=/")["items"]) == len(whole)


def test_a_file_is_fetched_whole_with_its_digest_when_asked_for(server: Running, job: str) -> None:
    path = f"/v1/jobs/{job}/files/output/{job}/rank-0/model"
    answer = server.ask("GET", path, headers={"Want-Repr-Digest": "sha-256=1"})
    assert answer.data == CONTENT
    digest = base64.b64encode(hashlib.sha256(CONTENT).digest()).decode()
    assert answer.headers["repr-digest"] == f"sha-256=:{digest}:"
    assert "repr-digest" not in server.ask("GET", path).headers
    odd = "".join(f"%{byte:02x}" for byte in b"rank-0/odd\nname ?#%")
    assert server.ask("GET", f"/v1/jobs/{job}/files/{odd}").data == b"odd"
    empty = server.ask("GET", f"/v1/jobs/{job}/files/rank-0/empty")
    assert (empty.status, empty.data) == (200, b"")


def test_a_part_comes_with_a_digest_of_its_own_when_asked_for(server: Running, job: str) -> None:
    path = f"/v1/jobs/{job}/files/rank-0/model"
    asked = {"Range": "bytes=10-19", "Want-Content-Digest": "sha-256=1", "Want-Repr-Digest": "sha-256=1"}
    answer = server.ask("GET", path, headers=asked)
    for header, content in {"content-digest": CONTENT[10:20], "repr-digest": CONTENT}.items():
        digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
        assert answer.headers[header] == f"sha-256=:{digest}:"
    whole = server.ask("GET", path, headers={"Want-Content-Digest": "sha-256=1"})
    assert whole.headers["content-digest"] == answer.headers["repr-digest"]


def test_many_small_files_come_in_one_answer_in_the_order_asked_for(server: Running, job: str) -> None:
    folder = server.results(job) / "rank-0"
    (folder / "large").write_bytes(bytes(PACKED_BYTES + 1))
    (folder / "link").symlink_to("model")
    (folder / "linked").symlink_to(".")
    names = ["odd\nname ?#%", "nothing", "model", "large", "link", "linked/model", "empty", "", "model/x", "model"]
    asked = {"paths": [f"output/{job}/rank-0/{name}" for name in names]}
    answer = server.ask("POST", f"/v1/jobs/{job}/pack", asked, token=server.token("ann", Scope.READ))
    assert answer.status == 200
    came = {0: b"odd", 2: CONTENT, 6: b"", 9: CONTENT}
    none = (LEFT_OUT, b"")
    assert unpack(answer.data) == [
        (hashlib.sha256(came[at]).hexdigest(), came[at]) if at in came else none for at in range(len(names))
    ]


def test_a_pack_has_an_end(server: Running, job: str) -> None:
    folder = server.results(job) / "many"
    folder.mkdir()
    for number in range(20):
        (folder / str(number)).write_bytes(bytes(PACKED_BYTES))
    answer = server.ask("POST", f"/v1/jobs/{job}/pack", {"paths": [f"many/{number}" for number in range(20)]})
    came = [digest for digest, _ in unpack(answer.data)]
    assert came.count(LEFT_OUT) == 20 - PACK_BYTES // PACKED_BYTES
    assert len(came) == 20
    too_many = server.ask("POST", f"/v1/jobs/{job}/pack", {"paths": ["many/0"] * (PACK_CHUNKS + 1)})
    assert (too_many.status, too_many.json()["field"]) == (413, "paths")


@pytest.mark.parametrize("path", ["../../../etc/passwd", "rank-0/../../x", "a\0b", f"output/job-{'0' * 32}/x"])
def test_a_pack_with_a_path_that_climbs_is_refused(server: Running, job: str, path: str) -> None:
    assert server.ask("POST", f"/v1/jobs/{job}/pack", {"paths": ["rank-0/model", path]}).status in (404, 422)


def test_a_pack_of_another_users_job_is_not_there(server: Running, job: str) -> None:
    assert server.ask("POST", f"/v1/jobs/{job}/pack", {"paths": ["rank-0/model"]}, token=server.bob).status == 404


@pytest.mark.parametrize(
    ("asked", "status", "part"),
    [
        ("bytes=0-9", 206, CONTENT[:10]),
        ("bytes=2550-", 206, CONTENT[2550:]),
        ("bytes=2550-99999", 206, CONTENT[2550:]),
        ("bytes=-10", 206, CONTENT[-10:]),
        ("bytes=-99999", 206, CONTENT),
        ("bytes=2560-", 416, None),
        ("bytes=9-5", 416, None),
        ("bytes=-0", 416, None),
        ("bytes=0-1,5-6", 200, CONTENT),
        ("lines=1-2", 200, CONTENT),
        ("bytes=a-b", 200, CONTENT),
    ],
)
def test_a_part_of_a_file_is_what_was_asked_for(
    server: Running, job: str, asked: str, status: int, part: bytes | None
) -> None:
    answer = server.ask("GET", f"/v1/jobs/{job}/files/rank-0/model", headers={"Range": asked})
    assert answer.status == status
    if part is None:
        assert answer.headers["content-range"] == "bytes */2560"
        assert answer.json()["field"] == "Range"
        return
    assert answer.data == part
    if status == 206:
        start = 0 if asked == "bytes=0-9" else 2560 - len(part)
        assert answer.headers["content-range"] == f"bytes {start}-{start + len(part) - 1}/2560"


def test_a_download_goes_on_only_with_the_file_it_began_with(server: Running, job: str) -> None:
    path = f"/v1/jobs/{job}/files/rank-0/changing"
    file = server.results(job) / "rank-0" / "changing"
    file.write_bytes(b"first version")
    etag = server.ask("GET", path).headers["etag"]
    go_on = {"Range": "bytes=6-", "If-Match": etag}
    assert server.ask("GET", path, headers=go_on).data == b"version"
    assert server.ask("GET", path, headers={"If-None-Match": etag}).status == 304
    assert server.ask("GET", path, headers={"If-Range": etag, "Range": "bytes=0-1"}).status == 206
    file.write_bytes(b"another version")
    changed = server.ask("GET", path, headers=go_on)
    assert (changed.status, changed.json()["code"]) == (412, "conflict")
    assert server.ask("GET", path, headers={"If-Range": etag, "Range": "bytes=0-1"}).data == b"another version"


def test_a_raw_log_is_text_and_may_be_fetched_from_where_one_was(server: Running, job: str) -> None:
    path = f"/v1/jobs/{job}/tasks/trainer-0/log"
    answer = server.ask("GET", path)
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.data == b"a log\n"
    server.say(job, "trainer-0", b"goes on\n")
    assert server.ask("GET", path, headers={"Range": "bytes=6-"}).data == b"goes on\n"


@pytest.mark.parametrize(
    "path", ["../../../etc/passwd", "..%2f..%2fx", "rank-0/../../x", "%00", "rank-0", "nothing", "/etc/passwd", ""]
)
def test_a_path_that_climbs_or_names_no_file_is_refused(server: Running, job: str, path: str) -> None:
    assert server.ask("GET", f"/v1/jobs/{job}/files/{path}").status in (404, 422)
    assert server.ask("GET", f"/v1/jobs/{job}/files?prefix={path or 'x/../..'}").status in (200, 404, 422)


def test_a_file_that_is_cut_while_it_is_sent_breaks_the_answer_and_is_no_fault_of_ours(
    server: Running, job: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = server.results(job) / "rank-0" / "cut"
    file.write_bytes(bytes(64 * 2**20))
    answer = server.ask("GET", f"/v1/jobs/{job}/files/rank-0/cut", stream=True)
    assert len(answer.read(10)) == 10
    os.truncate(file, 2**20)
    with pytest.raises(urllib3.exceptions.HTTPError):
        answer.read()
    assert server.ask("GET", "/v1/me").status == 200
    assert "Traceback" not in caplog.text
