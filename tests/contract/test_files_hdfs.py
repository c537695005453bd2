"""What a store in HDFS does beside the contract, against a real NameNode and two DataNodes."""

from __future__ import annotations

import secrets
import subprocess
import sys
from contextlib import closing

import pytest

from paddlecloud.files.hdfs import STAGING, HdfsStore
from paddlecloud.files.webhdfs import WebHdfs
from paddlecloud.model.errors import ConflictError, ForbiddenError, UnreachableError
from tests.contract.stores import broken_after, content, filled, names, tree
from tests.hdfs import USER, Hdfs

MIB = 1024 * 1024


def test_another_account_may_not_read_what_is_closed_to_it(hdfs_cluster: Hdfs) -> None:
    folder = f"/stores/{secrets.token_hex(6)}"
    filled(hdfs_cluster.store(folder), {"a/file": b"1"})
    WebHdfs(hdfs_cluster.url, USER)._client.set_permission(f"{folder}/a", "700")
    stranger = hdfs_cluster.store(folder, user="stranger")
    assert names(stranger) == ["a"]
    for call in (lambda: stranger.open("a/file"), lambda: stranger.list("a"), lambda: stranger.write("x", [b"1"])):
        with pytest.raises(ForbiddenError, match="HDFS denies this to user stranger: Permission denied"):
            call()


def test_a_file_system_that_does_not_answer_is_unreachable() -> None:
    away = HdfsStore("http://127.0.0.1:9", "/x", user=USER)
    for call in (lambda: away.stat("file"), lambda: away.list(""), lambda: away.write("file", [b"1"])):
        with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:9 does not answer"):
            call()


def test_the_other_namenode_is_asked_if_one_does_not_answer(hdfs_cluster: Hdfs) -> None:
    folder = f"/stores/{secrets.token_hex(6)}"
    both = HdfsStore(f"http://127.0.0.1:9;{hdfs_cluster.url}", folder, user=USER)
    both.write("file", [b"1"])
    assert content(both, "file") == b"1"


def test_nothing_is_seen_or_left_of_what_is_being_written(hdfs_cluster: Hdfs) -> None:
    folder = f"/stores/{secrets.token_hex(6)}"
    store, raw = hdfs_cluster.store(folder), WebHdfs(hdfs_cluster.url, USER)
    seen: list[list[str]] = []

    def pieces() -> list[bytes]:
        seen.append(tree(store))
        return [b"1" * MIB]

    store.write("a/file", (piece for _ in range(2) for piece in pieces()))
    assert seen == [[], []]
    with pytest.raises(ConnectionResetError):
        store.write("a/other", broken_after(5, 4 * MIB))
    with pytest.raises(ConnectionResetError):
        store.write("a/other", broken_after(1, 10))
    assert raw.list(f"{folder}/{STAGING}") == []
    filled(store, {STAGING: b"a user's own", "a/.snapshot": b"2"})
    assert tree(store) == [STAGING, "a", "a/.snapshot", "a/file"]
    assert content(store, STAGING) == b"a user's own"


def test_what_a_crash_has_left_is_removed_after_a_day(hdfs_cluster: Hdfs) -> None:
    folder = f"/stores/{secrets.token_hex(6)}"
    raw = WebHdfs(hdfs_cluster.url, USER)
    for name in ("old", "new"):
        made = raw.create(f"{folder}/{STAGING}/{name}", [b"1"])
    raw._client.set_times(f"{folder}/{STAGING}/old", modification_time=made["modificationTime"] - 86_500_000)
    hdfs_cluster.store(folder).write("file", [b"1"])
    assert [one["pathSuffix"] for one in raw.list(f"{folder}/{STAGING}")] == ["new"]


def test_names_that_other_programs_wrote_are_what_they_are(hdfs_cluster: Hdfs) -> None:
    folder = f"/stores/{secrets.token_hex(6)}"
    raw = WebHdfs(hdfs_cluster.url, USER)
    for number, name in enumerate(wanted := ["dt=2017-01-01", "ts=12%3A00", "a+b c", "x;y", "数据", "#LATEST"]):
        raw.make_folder(f"{folder}/sub")
        raw.create(f"{folder}/part-{number}", [name.encode()])
        raw.rename(f"{folder}/part-{number}", f"{folder}/{name}")
    store = hdfs_cluster.store(folder)
    assert {name.decode() for name in map(str.encode, names(store))} == {*wanted, "sub"}
    assert all(content(store, name) == name.encode() for name in wanted)


def test_a_file_is_read_on_when_a_datanode_dies(hdfs_cluster: Hdfs) -> None:
    store = hdfs_cluster.store()
    whole = secrets.token_bytes(20 * MIB)
    store.write("file", [whole])
    try:
        with closing(store.open("file")) as opened:
            begun = opened.read(0, MIB)
            hdfs_cluster.kill("datanode-0")
            assert begun + b"".join(opened.pieces(MIB)) == whole
        store.write("another", [whole])
    finally:
        hdfs_cluster.start_datanode(0)
        hdfs_cluster.wait_for_datanodes()


def test_a_name_that_is_too_long_is_told(hdfs_cluster: Hdfs) -> None:
    store = hdfs_cluster.store()
    with pytest.raises(ConflictError, match="maximum path component"):
        store.write("a:" + "n" * 253, [b"1"])
    assert tree(store) == []


def test_without_the_package_it_is_said_what_to_install() -> None:
    script = """
import sys
sys.modules["hdfs"] = None
from paddlecloud.files.hdfs import HdfsStore
from paddlecloud.model.errors import ConfigError
try:
    HdfsStore("http://127.0.0.1:9", "/", user="pc")
except ConfigError as error:
    print(error.message)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert run.stdout == "HDFS needs the `hdfs` package: pip install 'paddlecloud[hdfs]'\n", run.stderr
