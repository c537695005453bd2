"""What a store in S3 does beside the contract, against a real server."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from paddlecloud.files.s3 import S3Store
from paddlecloud.model.errors import ConflictError, ForbiddenError, InvalidError, UnreachableError
from paddlecloud.model.tree import Kind
from tests.contract.stores import broken_after, content, names, tree
from tests.s3 import REGION, S3Server

MIB = 1024 * 1024


def raw_put(store: S3Store, key: str, content: bytes = b"1") -> None:
    """As another program would, which knows nothing of markers."""
    store._bucket.put(f"{store._root}/{key}", content)


def test_a_wrong_secret_is_told_and_never_shown(s3_server: S3Server) -> None:
    wrong = s3_server.store(secret="wrong-secret-of-tests")
    calls = (
        lambda: wrong.stat("file"),
        lambda: wrong.list(""),
        lambda: wrong.write("file", [b"1"]),
        lambda: wrong.write("file", [b"1" * MIB] * 20),
        lambda: wrong.remove("file"),
    )
    for call in calls:
        with pytest.raises(ForbiddenError, match="rejects this server's access key") as caught:
            call()
        assert "wrong-secret-of-tests" not in f"{caught.value!r} {caught.value.__cause__!r}"
    assert "wrong-secret-of-tests" not in f"{wrong!r} {wrong._bucket!r} {wrong._bucket._client!r}"
    assert "wrong-secret-of-tests" not in str(wrong._bucket._client.config)


def test_a_store_that_does_not_answer_is_unreachable() -> None:
    away = S3Store("bucket/folder", key_id="id", secret="s", region=REGION, endpoint="http://127.0.0.1:9")
    for call in (lambda: away.stat("file"), lambda: away.list(""), lambda: away.write("file", [b"1"])):
        with pytest.raises(UnreachableError, match=r"bucket at http://127\.0\.0\.1:9 .*no answer"):
            call()


def test_a_bucket_that_is_not_there_is_told(s3_server: S3Server) -> None:
    with pytest.raises(UnreachableError, match="NoSuchBucket"):
        s3_server.store(bucket="no-such-bucket").list("")


def test_what_the_environment_says_of_s3_is_not_heeded(s3_server: S3Server) -> None:
    script = """
import sys
from paddlecloud.files.s3 import S3Store
place, key_id, secret, region, endpoint = sys.argv[1:]
print(S3Store(place, key_id=key_id, secret=secret, region=region, endpoint=endpoint).write("a", [b"123"]).size)
"""
    words = ["test/environment", s3_server.key_id, s3_server.secret, REGION, s3_server.endpoint]
    run = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PYTHONPATH": f"{Path(__file__).parents[2]}/src",
            "AWS_SESSION_TOKEN": "of somebody else",
            "AWS_ACCESS_KEY_ID": "other",
            "AWS_SECRET_ACCESS_KEY": "other",
            "AWS_ENDPOINT": "http://127.0.0.1:9",
            "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
            "AWS_SKIP_SIGNATURE": "true",
        },
    )
    assert run.stdout == "3\n", run.stderr


def test_without_its_package_the_store_says_what_to_install() -> None:
    script = """
import sys
sys.modules["obstore"] = None
sys.modules["obstore.store"] = None
from paddlecloud.files.s3 import S3Store
from paddlecloud.model.errors import ConfigError
try:
    S3Store("bucket", key_id="id", secret="s", region="r")
except ConfigError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{Path(__file__).parents[2]}/src"},
    )
    assert run.stdout == "S3 stores need the `obstore` package: pip install 'paddlecloud[s3]'\n", run.stderr


def test_an_upload_that_breaks_leaves_no_parts_behind(s3_server: S3Server) -> None:
    store = s3_server.store()
    with pytest.raises(ConnectionResetError):
        store.write("large", broken_after(40, MIB))
    assert s3_server.unfinished() == []


def test_memory_stays_flat_while_a_large_file_goes_through(s3_server: S3Server) -> None:
    script = """
import sys
from paddlecloud.files.s3 import S3Store
place, key_id, secret, region, endpoint = sys.argv[1:]
store = S3Store(place, key_id=key_id, secret=secret, region=region, endpoint=endpoint)
def most():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))
store.write("small", [b"1"])
before = most()
piece = bytes(1024 * 1024)
store.write("large", (piece for _ in range(192)))
assert sum(map(len, store.open("large").pieces())) == 192 * 1024 * 1024
print(most() - before)
"""
    words = ["test/memory", s3_server.key_id, s3_server.secret, REGION, s3_server.endpoint]
    run = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{Path(__file__).parents[2]}/src"},
    )
    assert int(run.stdout or "9999") < 100, (run.stdout, run.stderr)


def test_folders_that_others_made_by_their_keys_alone_are_folders(s3_server: S3Server) -> None:
    store = s3_server.store()
    raw_put(store, "data/2024/part-0")
    raw_put(store, "data/2024/part-1")
    assert tree(store) == ["data", "data/2024", "data/2024/part-0", "data/2024/part-1"]
    assert store.stat("data/2024").kind is Kind.FOLDER
    store.move("data/2024", "data/2025")
    with pytest.raises(ConflictError):
        store.write("data/2025", [b"1"])
    assert tree(store) == ["data", "data/2025", "data/2025/part-0", "data/2025/part-1"]


def test_a_folder_wins_over_an_empty_object_of_its_name(s3_server: S3Server) -> None:
    # As consoles of S3 make folders: an object `dir/`, which obstore shows as `dir`.
    store = s3_server.store()
    raw_put(store, "dir/", b"")
    raw_put(store, "dir/file")
    raw_put(store, "dir-x")
    assert [(entry.path, entry.kind) for entry in store.list("")] == [("dir", Kind.FOLDER), ("dir-x", Kind.FILE)]
    assert names(store, "dir") == ["dir/file"]


def test_a_folder_of_many_keys_is_jumped_over(s3_server: S3Server) -> None:
    store = s3_server.store()
    store.write_all([(f"a/{number:04}", b"1") for number in range(1500)])
    store.write_all([("a-b", b"1"), ("a.txt", b"1"), ("b", b"1")])
    pages = list(store._bucket.chunks(store._root))
    assert len(pages) > 1
    assert names(store) == ["a", "a-b", "a.txt", "b"]
    assert [entry.path for entry in store.list("", after="a")] == ["a-b", "a.txt", "b"]


ANSWER = b"""<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>data//odd</Key><Size>1</Size>
<LastModified>2026-01-01T00:00:00Z</LastModified><ETag>"1"</ETag></Contents></ListBucketResult>"""


class OddKeys(BaseHTTPRequestHandler):
    """An S3 that has a key which SeaweedFS does not take."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_key_that_the_library_does_not_take_is_named() -> None:
    with HTTPServer(("127.0.0.1", 0), OddKeys) as odd:
        serving = threading.Thread(target=odd.serve_forever)
        serving.start()
        store = S3Store(
            "bucket", key_id="id", secret="s", region=REGION, endpoint=f"http://127.0.0.1:{odd.server_port}"
        )
        try:
            with pytest.raises(ConflictError, match="to rename it .*data//odd"):
                store.list("")
        finally:
            odd.shutdown()
            serving.join()


def test_a_path_that_makes_too_long_a_key_is_refused(s3_server: S3Server) -> None:
    with pytest.raises(InvalidError, match="longer than 1024 bytes"):
        s3_server.store().write("/".join(["n" * 255] * 5), [b"1"])


def test_a_file_that_s3_does_not_copy_by_itself_is_copied_through_the_server(s3_server: S3Server) -> None:
    store = s3_server.store()
    whole = os.urandom(20 * MIB)
    store.write("file", [whole])
    key = f"{store._root}/file"
    store._bucket.copy(key, f"{key}-copy", len(whole), most=MIB)
    assert content(store, "file-copy") == whole
