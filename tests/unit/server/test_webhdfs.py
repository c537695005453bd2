"""WebHDFS request by request: what each operation answers, and what its clients cannot survive."""

from __future__ import annotations

import http.client
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from paddlecloud.model.errors import QuotaError
from paddlecloud.model.pfs import Who
from paddlecloud.model.user import ALL_CLUSTERS, Quota
from tests.unit.server.hdfscalls import Hdfs, good, refusal
from tests.unit.server.running import Running
from tests.waiting import wait_until

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def ann(server: Running) -> Hdfs:
    return Hdfs(server, server.ann, "ann")


@pytest.fixture
def at(ann: Hdfs, request: pytest.FixtureRequest) -> str:
    """A folder of this test's own."""
    path = f"/user/ann/{abs(hash(request.node.name))}"
    good(ann.ask("PUT", path, "MKDIRS"))
    return path


@pytest.mark.parametrize("top", ["/webhdfs/v1", "/webhdfs/api/v1", "/webhdfs/webhdfs/v1"])
def test_files_are_found_by_each_address(ann: Hdfs, at: str, top: str) -> None:
    there = Hdfs(ann.server, ann.server.ann, "ann", top)
    assert there.write(f"{at}/f", b"1234").status == 201
    assert there.read(f"{at}/f") == b"1234"
    assert ann.names(at) == ["f"]


def test_a_file_is_made_in_two_requests_to_the_very_host_that_was_asked(ann: Hdfs, at: str) -> None:
    path = f"{ann.top}{at}/f?op=create&user.name=ann&overwrite=true&permission=0755"
    first = ann.raw("PUT", path, b"", {"Host": "pai.example:9186", "content-type": "application/octet-stream"})
    assert (first.status, first.data) == (307, b"")
    location = urlsplit(first.headers["Location"])
    assert (location.scheme, location.netloc) == ("http", "pai.example:9186")
    assert location.path == f"{ann.top}{at}/f"
    assert ann.get(at, "LISTSTATUS") == {"FileStatuses": {"FileStatus": []}}
    second = ann.raw("PUT", f"{location.path}?{location.query}&user.name=ann", iter([b"12", b"34"]))
    assert (second.status, second.data) == (201, b"")
    assert ann.secret not in second.headers["Location"]
    assert (ann.read(f"{at}/f"), ann.status(f"{at}/f")["permission"]) == (b"1234", "755")


def test_a_host_that_is_none_is_not_repeated(ann: Hdfs, at: str) -> None:
    first = ann.raw("PUT", f"{ann.top}{at}/f?op=CREATE&user.name=ann", b"", {"Host": 'x"<y>'})
    assert urlsplit(first.headers["Location"]).netloc == urlsplit(ann.server.url).netloc


def test_a_client_may_ask_not_to_be_sent_on(ann: Hdfs, at: str) -> None:
    told = ann.put(f"{at}/f", "CREATE", noredirect="true")
    location = urlsplit(told["Location"])
    assert ann.raw("PUT", f"{location.path}?{location.query}", b"12").status == 201
    assert ann.read(f"{at}/f") == b"12"


@pytest.mark.parametrize("name", ["fo&o/a%a", "fo&oa ?a=1", "foo bar%.txt", "数据#;+", "a\\b'\"", "\uefee\uefbc"])
def test_what_is_odd_in_a_name_is_encoded_in_the_address_that_one_is_sent_to(ann: Hdfs, at: str, name: str) -> None:
    assert ann.write(f"{at}/{name}", b"12").status == 201
    assert ann.read(f"{at}/{name}") == b"12"
    folder, _, last = name.rpartition("/")
    assert ann.names(f"{at}/{folder}") == [last]


def test_a_file_is_kept_from_being_replaced_unless_it_is_said(ann: Hdfs, at: str) -> None:
    assert ann.write(f"{at}/f", b"1").status == 201
    refused = (403, "FileAlreadyExistsException", f"{at}/f for client 127.0.0.1 already exists")
    assert refusal(ann.write(f"{at}/f", b"2")) == refused
    # Also where it came to be between the two requests.
    late = ann.ask("PUT", f"{at}/g", "CREATE")
    assert ann.write(f"{at}/g", b"first").status == 201
    there = urlsplit(late.headers["Location"])
    assert refusal(ann.raw("PUT", f"{there.path}?{there.query}", b"late"))[1] == "FileAlreadyExistsException"
    assert (ann.read(f"{at}/f"), ann.read(f"{at}/g")) == (b"1", b"first")
    # And where it came to be while the bytes of another came.
    there = urlsplit(ann.ask("PUT", f"{at}/h", "CREATE").headers["Location"])
    with closing(http.client.HTTPConnection(str(there.hostname), there.port, timeout=30)) as connection:
        connection.putrequest("PUT", f"{there.path}?{there.query}")
        connection.putheader("Content-Length", "2")
        connection.endheaders(b"l")
        assert ann.write(f"{at}/h", b"first").status == 201
        connection.send(b"a")
        assert connection.getresponse().status == 403
    assert ann.read(f"{at}/h") == b"first"
    assert ann.write(f"{at}/f", b"2", overwrite="True").status == 201
    assert ann.read(f"{at}/f") == b"2"


def test_a_file_is_not_made_where_a_folder_is_nor_below_a_file(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f")
    assert refusal(ann.write(at, overwrite="true"))[:2] == (403, "FileAlreadyExistsException")
    assert refusal(ann.write(f"{at}/f/below"))[:2] == (403, "ParentNotDirectoryException")
    assert refusal(ann.ask("PUT", f"{at}/f", "MKDIRS"))[:2] == (403, "FileAlreadyExistsException")
    assert refusal(ann.ask("PUT", f"{at}/f/below", "MKDIRS"))[:2] == (403, "FileAlreadyExistsException")


def test_what_breaks_off_leaves_what_was_there(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f", b"old")
    for method, op in (("PUT", "CREATE"), ("POST", "APPEND")):
        there = urlsplit(ann.ask(method, f"{at}/f", op, overwrite="true").headers["Location"])
        with socket.create_connection((there.hostname, there.port)) as line:
            head = f"{method} {there.path}?{there.query} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly this"
            line.sendall(head.encode())
    assert (ann.read(f"{at}/f"), ann.names(at)) == (b"old", ["f"])


def test_of_many_that_make_one_file_at_once_one_is_told_that_it_did(ann: Hdfs, at: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        told = [*threads.map(lambda n: (ann.write(f"{at}/f", b"%d" % n * 5000).status, n), range(8))]
    made = [n for status, n in told if status == 201]
    assert sorted(status for status, _ in told) == [201, *[403] * 7]
    assert ann.read(f"{at}/f") == b"%d" % made[0] * 5000


@pytest.mark.parametrize("what", ["disabled", "ended"])
def test_what_comes_of_a_user_who_was_shut_out_meanwhile_is_not_kept(server: Running, what: str) -> None:
    token = server.add_user(what)
    user = Hdfs(server, token, what)

    def body() -> Iterator[bytes]:
        yield b"1"
        if what == "disabled":
            server.users.change(what, disabled=True)
        else:
            server.users.end_epoch(what)
        yield b"2"

    assert refusal(user.write(f"/{what}/f", body()))[:2] == (401, "SecurityException")
    server.users.change(what, disabled=False)
    assert Hdfs(server, token, what).names(f"/{what}") == ["output"]


def test_a_body_comes_in_chunks_or_with_its_length(ann: Hdfs, at: str) -> None:
    whole = bytes(range(256)) * 10_000
    ann.write(f"{at}/length", whole)
    ann.write(f"{at}/chunks", (whole[start : start + 777] for start in range(0, len(whole), 777)))
    assert ann.read(f"{at}/length") == ann.read(f"{at}/chunks") == whole


def test_a_file_is_made_longer(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f", b"hello", permission="600")
    assert ann.write(f"{at}/f", iter([b" wor", b"ld"]), "append").status == 200
    assert ann.read(f"{at}/f") == b"hello world"
    assert ann.status(f"{at}/f")["permission"] == "600"
    assert refusal(ann.write(f"{at}/nothing", b"", "APPEND"))[:2] == (404, "FileNotFoundException")
    assert refusal(ann.write(at, b"", "APPEND"))[:2] == (403, "FileAlreadyExistsException")


def test_of_two_that_make_a_file_longer_the_second_is_told(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f", b"1")
    with ann.server.services.incoming.longer(Who(user="ann"), f"/pfs/local/home/{at.removeprefix('/user/')}/f") as more:
        assert refusal(ann.write(f"{at}/f", b"3", "APPEND"))[:2] == (403, "AlreadyBeingCreatedException")
        more.take(b"2")
        more.finish()
    assert ann.write(f"{at}/f", b"3", "APPEND").status == 200
    assert ann.read(f"{at}/f") == b"123"


def test_what_was_replaced_meanwhile_is_not_made_longer(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f", b"1")
    there = urlsplit(ann.ask("POST", f"{at}/f", "APPEND").headers["Location"])
    with closing(http.client.HTTPConnection(str(there.hostname), there.port, timeout=30)) as connection:
        connection.putrequest("POST", f"{there.path}?{there.query}")
        connection.putheader("Content-Length", str(MIB + 1))
        connection.endheaders(b"2" * MIB)
        wait_until(lambda: bool(ann.server.services.incoming._growing), "it has begun")
        assert ann.write(f"{at}/f", b"another", overwrite="true").status == 201
        connection.send(b"2")
        answer = connection.getresponse()
        assert (answer.status, b"AlreadyBeingCreatedException" in answer.read()) == (403, True)
    assert ann.read(f"{at}/f") == b"another"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, b"hello world"),
        ({"offset": 6}, b"world"),
        ({"offset": 6, "length": 2}, b"wo"),
        ({"length": 1000}, b"hello world"),
        ({"length": 0}, b""),
    ],
)
def test_a_part_of_a_file_is_read(ann: Hdfs, at: str, query: dict[str, object], found: bytes) -> None:
    ann.write(f"{at}/f", b"hello world")
    assert ann.read(f"{at}/f", **query) == found


def test_what_is_behind_the_end_is_refused_as_hadoop_does(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f", b"hello world")
    refused = (403, "IOException", f"Offset=11 out of the range [0, 11); OPEN, path={at}/f")
    assert refusal(ann.ask("GET", f"{at}/f", "OPEN", offset=11)) == refused
    ann.write(f"{at}/empty", b"")
    assert ann.read(f"{at}/empty", offset=0) == b""


def test_what_is_not_there_is_told_in_the_words_that_clients_look_for(ann: Hdfs, at: str) -> None:
    missing = f"{at}/nothing"
    assert refusal(ann.ask("GET", missing, "getfilestatus")) == (
        404,
        "FileNotFoundException",
        f"File does not exist: {missing}",
    )
    assert refusal(ann.ask("GET", missing, "LISTSTATUS"))[2] == f"File {missing} does not exist."
    assert refusal(ann.ask("GET", missing, "OPEN"))[:2] == (404, "FileNotFoundException")
    assert refusal(ann.ask("GET", at, "OPEN"))[:2] == (404, "FileNotFoundException")
    assert refusal(ann.ask("GET", "/", "OPEN"))[:2] == (404, "FileNotFoundException")
    for op in ("GETCONTENTSUMMARY", "GETFILECHECKSUM", "GETACLSTATUS", "CHECKACCESS"):
        assert refusal(ann.ask("GET", missing, op))[:2] == (404, "FileNotFoundException")


def test_the_root_and_the_folder_of_users_show_what_the_caller_has(ann: Hdfs) -> None:
    assert (ann.names("/"), ann.names("/user")) == (["ann", "pfs", "user"], ["ann"])
    assert [one["type"] for one in ann.get("", "LISTSTATUS")["FileStatuses"]["FileStatus"]] == ["DIRECTORY"] * 3
    assert ann.names("/pfs/local/home") == ["ann"]
    for path in ("/", "/user", "/ann", "/user/ann", "/pfs", "/pfs/local"):
        assert ann.status(path)["type"] == "DIRECTORY"
        assert ann.put(path, "mkdirs", permission="0755") == {"boolean": True}


def test_a_file_is_the_same_by_each_of_its_names(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f", b"12")
    name = at.rpartition("/")[2]
    for path in (f"/ann/{name}/f", f"/pfs/local/home/ann/{name}/f"):
        assert ann.read(path) == b"12"
        assert ann.status(path) == ann.status(f"{at}/f")


def test_an_entry_of_a_list_is_the_status_of_the_file(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f", b"12", permission="600", replication=3)
    ann.put(f"{at}/d", "MKDIRS", permission="700")
    for entry in ann.get(at, "LISTSTATUS")["FileStatuses"]["FileStatus"]:
        assert entry == {**ann.status(f"{at}/{entry['pathSuffix']}"), "pathSuffix": entry["pathSuffix"]}
    [itself] = ann.get(f"{at}/f", "LISTSTATUS")["FileStatuses"]["FileStatus"]
    assert itself == ann.status(f"{at}/f")


def test_a_folder_and_a_file_are_counted(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/d/f", b"12345")
    ann.write(f"{at}/g", b"123")
    ann.put(f"{at}/d/empty", "MKDIRS")

    def summary(path: str) -> dict[str, int]:
        found: dict[str, int] = ann.get(path, "GETCONTENTSUMMARY")["ContentSummary"]
        return found

    counted = {"directoryCount": 3, "fileCount": 2, "length": 8, "quota": -1, "spaceConsumed": 8, "spaceQuota": -1}
    assert summary(at) == counted
    assert summary(f"{at}/g") == {**counted, "directoryCount": 0, "fileCount": 1, "length": 3, "spaceConsumed": 3}
    assert summary("/user")["length"] == summary("/")["length"] == summary("/user/ann")["length"]
    assert summary("/pfs/local/home")["fileCount"] == summary("/ann")["fileCount"]


def test_a_checksum_is_that_of_the_bytes(ann: Hdfs, at: str) -> None:
    for name, content in (("a", b"x" * 2000), ("b", b"x" * 2000), ("c", b"y" * 2000)):
        ann.write(f"{at}/{name}", content)
    sums = [ann.get(f"{at}/{name}", "GETFILECHECKSUM")["FileChecksum"] for name in "abc"]
    assert sums[0] == sums[1] != sums[2]
    assert (sums[0]["algorithm"], sums[0]["length"]) == ("MD5-of-0MD5-of-512CRC32", 28)


def test_a_file_is_read_by_its_number_and_only_as_long_as_it_is_that_file(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f", b"old")
    number = ann.status(f"{at}/f")["fileId"]
    path = f"/.reserved/.inodes/{number}"
    assert (ann.read(path), ann.status(path)["fileId"]) == (b"old", number)
    ann.write(f"{at}/f", b"new", overwrite="true")
    for op in ("OPEN", "GETFILESTATUS"):
        assert refusal(ann.ask("GET", path, op))[:2] == (404, "FileNotFoundException")
    assert refusal(ann.ask("GET", "/.reserved/.inodes/1", "OPEN"))[:2] == (404, "FileNotFoundException")
    assert good(ann.ask("DELETE", path, "DELETE")) == {"boolean": False}


def test_home_and_trash_are_named(ann: Hdfs) -> None:
    assert ann.get("/", "gethomedirectory") == {"Path": "/user/ann"}
    assert ann.get("/x", "GETTRASHROOT") == {"Path": "/user/ann/.Trash"}


@pytest.mark.parametrize(
    ("method", "op"),
    [
        ("PUT", "CREATESNAPSHOT"),
        ("PUT", "RENAMESNAPSHOT"),
        ("DELETE", "DELETESNAPSHOT"),
        ("PUT", "CREATESYMLINK"),
        ("POST", "CONCAT"),
        ("POST", "TRUNCATE"),
        ("GET", "GETXATTRS"),
        ("GET", "LISTSTATUS_BATCH"),
        ("GET", "MKDIRS"),
        ("PUT", "OPEN"),
        ("GET", "getdelegationtoken"),
    ],
)
def test_an_operation_that_is_not_there_is_told_as_an_old_hadoop_would(ann: Hdfs, method: str, op: str) -> None:
    status, exception, message = refusal(ann.ask(method, "/ann", op))
    assert (status, exception) == (400, "IllegalArgumentException")
    assert "java.lang.IllegalArgumentException: No enum constant" in message
    assert message.endswith(f"{method.capitalize()}OpParam.Op.{op.upper()}")


def test_a_call_that_is_none_is_refused_in_the_same_shape(ann: Hdfs) -> None:
    assert refusal(ann.raw("GET", f"{ann.top}/ann?user.name=ann"))[:2] == (400, "UnsupportedOperationException")
    for method in ("PATCH", "OPTIONS"):
        assert refusal(ann.raw(method, f"{ann.top}/ann?op=OPEN"))[:2] == (400, "UnsupportedOperationException")
    for path in ("/user/ann/%2e%2e/bob", "/ann/%2E/x", "/ann/%00"):
        assert refusal(ann.raw("GET", f"{ann.top}{path}?op=GETFILESTATUS"))[:2] == (400, "InvalidPathException")
    assert refusal(ann.raw("GET", f"{ann.top}/ann/{'n' * 300}?op=GETFILESTATUS"))[:2] == (400, "InvalidPathException")


def test_a_full_quota_is_an_io_exception_with_the_sentence(server: Running) -> None:
    cat = Hdfs(server, server.add_user("cat"), "cat")
    server.users.change("cat", quotas={ALL_CLUSTERS: Quota(space_bytes=MIB)})
    assert cat.write("/cat/small", b"1").status == 201
    for content in (b"2" * 2 * MIB, iter([b"2" * MIB] * 4)):
        status, exception, message = refusal(cat.write("/cat/large", content))
        assert (status, exception) == (403, "IOException")
        assert message.startswith("quota: cat keeps")
    assert refusal(cat.write("/cat/small", b"2" * 2 * MIB, "APPEND"))[:2] == (403, "IOException")
    assert (cat.names("/cat"), cat.read("/cat/small")) == (["output", "small"], b"1")
    with pytest.raises(QuotaError):
        server.services.pfs.write(Who(user="cat"), "/pfs/local/home/cat/x", [b""], size=2 * MIB)


def test_a_name_that_is_no_text_is_found_by_what_it_is_told_as(ann: Hdfs, at: str, server: Running) -> None:
    ann.write(f"{at}/plain")
    folder = server.services.pfs._stores["local"].folder
    assert folder is not None
    raw = Path(folder, "home", "ann", at.rpartition("/")[2])
    (raw / "plain").rename(raw / "odd\udcff")
    [name] = ann.names(at)
    assert ann.read(f"{at}/{name}") == b"x"
    assert good(ann.ask("DELETE", f"{at}/{name}", "DELETE")) == {"boolean": True}


def test_many_slow_uploads_of_one_user_hold_up_nobody_else(ann: Hdfs, server: Running, at: str) -> None:
    there = urlsplit(ann.ask("PUT", f"{at}/slow", "CREATE", overwrite="true").headers["Location"])
    head = f"PUT {there.path}?{there.query} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly this"
    drafts = server.services.incoming._drafts._folder
    with ExitStack() as stack:
        for _ in range(100):
            line = stack.enter_context(socket.create_connection((there.hostname, there.port)))
            line.sendall(head.encode())
        wait_until(lambda: len(os.listdir(drafts)) >= 40, "they have begun")
        bob = Hdfs(server, server.bob, "bob")
        assert bob.write("/bob/quick", b"1", overwrite="true").status == 201
        assert bob.read("/bob/quick") == b"1"
    wait_until(lambda: not os.listdir(drafts), "what was cut off is gone")
