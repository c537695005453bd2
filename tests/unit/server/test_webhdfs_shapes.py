"""What clients of WebHDFS are told, and how their parameters are read: without a server."""

from __future__ import annotations

import hashlib
import json
import zlib
from datetime import UTC, datetime

import pytest

from paddlecloud.model.attributes import Attributes
from paddlecloud.model.errors import (
    BY_CODE,
    ConflictError,
    ForbiddenError,
    FullError,
    InternalError,
    InvalidError,
    NotFoundError,
    PaddleCloudError,
    QuotaError,
    RateError,
    UnauthenticatedError,
    UnreachableError,
)
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind
from paddlecloud.server.dialects.webhdfs import acls, errors, shapes
from paddlecloud.server.dialects.webhdfs.checksum import BLOCK_BYTES, FileChecksum
from paddlecloud.server.dialects.webhdfs.errors import HdfsError
from paddlecloud.server.dialects.webhdfs.query import Query

AT = datetime(2026, 1, 2, 3, 4, 5, 678_900, UTC)
FILE = FileEntry(path="/pfs/local/home/ann/f", size=11, modified_at=AT, kind=Kind.FILE)
FOLDER = FileEntry(path="/pfs/local/home/ann/d", size=0, modified_at=AT, kind=Kind.FOLDER)
FIELDS = {
    "accessTime",
    "blockSize",
    "childrenNum",
    "fileId",
    "group",
    "length",
    "modificationTime",
    "owner",
    "pathSuffix",
    "permission",
    "replication",
    "storagePolicy",
    "type",
}


def test_a_file_and_a_folder_have_every_field_of_hadoop() -> None:
    file, folder = shapes.status(FILE, Attributes()), shapes.status(FOLDER, Attributes(), "d")
    assert set(file) == set(folder) == FIELDS
    assert (file["type"], file["length"], file["permission"], file["replication"]) == ("FILE", 11, "644", 1)
    assert (file["owner"], file["modificationTime"], file["pathSuffix"]) == ("ann", 1767323045678, "")
    assert (folder["type"], folder["length"], folder["blockSize"], folder["pathSuffix"]) == ("DIRECTORY", 0, 0, "d")


def test_what_was_said_of_a_file_is_told_again() -> None:
    said = Attributes(
        permission="1777", owner="x", group="y", accessed_ms=1, modified_ms=2, replication=3, block_bytes=4
    )
    told = shapes.status(FILE, said)
    assert told == {**shapes.status(FILE, Attributes()), **told}
    assert [told[name] for name in ("permission", "owner", "group", "accessTime", "modificationTime")] == [
        "1777",
        "x",
        "y",
        1,
        2,
    ]
    assert (told["replication"], told["blockSize"]) == (3, 4)


def test_a_file_has_another_number_when_it_is_another_file() -> None:
    numbers = {
        shapes.status(FileEntry(path=path, size=size, modified_at=AT, kind=Kind.FILE), Attributes())["fileId"]
        for path in ("/a", "/b")
        for size in (1, 2)
    }
    assert len(numbers) == 4
    assert all(0 < number < 2**53 for number in numbers)


def test_a_link_is_no_file() -> None:
    link = FileEntry(path="/pfs/local/home/ann/l", size=0, modified_at=AT, kind=Kind.LINK, target="f")
    assert (shapes.status(link, Attributes())["type"], shapes.status(link, Attributes())["symlink"]) == ("SYMLINK", "f")


@pytest.mark.parametrize(
    ("error", "status", "exception"),
    [
        (InvalidError("x"), 400, "java.lang.IllegalArgumentException"),
        (UnauthenticatedError("x"), 401, "java.lang.SecurityException"),
        (ForbiddenError("x"), 403, "org.apache.hadoop.security.AccessControlException"),
        (QuotaError("x"), 403, "java.io.IOException"),
        (NotFoundError("x"), 404, "java.io.FileNotFoundException"),
        (ConflictError("x"), 403, "java.io.IOException"),
        (RateError("x"), 429, "java.io.IOException"),
        (FullError("x"), 403, "java.io.IOException"),
        (UnreachableError("x"), 500, "java.io.IOException"),
        (InternalError("x"), 500, "java.io.IOException"),
    ],
)
def test_an_error_of_ours_is_an_exception_of_hadoop(error: PaddleCloudError, status: int, exception: str) -> None:
    answer = errors.answer(errors.of_ours(error))
    told = json.loads(bytes(answer.body))["RemoteException"]
    assert (answer.status_code, told["javaClassName"], told["message"]) == (status, exception, "x")
    assert told["exception"] == exception.rpartition(".")[2]


def test_no_error_has_a_status_that_a_client_hangs_at() -> None:
    """But for callers that were refused a hundred times in a minute: what they have is no working client."""
    for kind in set(BY_CODE.values()) - {RateError}:
        assert errors.answer(errors.of_ours(kind("x"))).status_code in (400, 401, 403, 404, 500)


@pytest.mark.parametrize(
    ("raw", "value"), [("a=true", True), ("A=TRUE", True), ("a=False", False), ("a=", False), ("", False)]
)
def test_a_flag_is_read_in_any_case(raw: str, value: bool) -> None:
    assert Query(raw).flag("a") is value


@pytest.mark.parametrize("raw", ["a=yes", "a=1", "a=truee"])
def test_what_is_no_flag_is_refused_as_hadoop_does(raw: str) -> None:
    with pytest.raises(HdfsError, match='Invalid value for webhdfs parameter "a": Failed to parse') as refused:
        Query(raw).flag("a")
    assert refused.value.status == 400


@pytest.mark.parametrize(("raw", "value"), [("n=7", 7), ("n=%2B7", 7), ("n=0", 0), ("n=", None), ("n=3&n=4", 3)])
def test_a_number_is_read(raw: str, value: int | None) -> None:
    assert Query(raw).number("n") == value


@pytest.mark.parametrize("raw", ["n=-1", "n=x", "n=1.5", "n=99999999999999999999", "n=0x10", "n=١"])
def test_what_is_no_number_is_refused(raw: str) -> None:
    with pytest.raises(HdfsError, match='webhdfs parameter "n"'):
        Query(raw).number("n")


@pytest.mark.parametrize(
    ("raw", "value"), [("0755", "755"), ("755", "755"), ("01777", "1777"), ("0", "0"), ("000", "0"), ("", "")]
)
def test_a_permission_is_octal(raw: str, value: str) -> None:
    assert Query(f"permission={raw}").permission() == value


@pytest.mark.parametrize("raw", ["9", "778", "2777", "rwx", "-1"])
def test_what_is_no_permission_is_refused(raw: str) -> None:
    with pytest.raises(HdfsError, match='webhdfs parameter "permission"'):
        Query(f"permission={raw}").permission()


def test_the_second_request_has_the_parameters_of_the_first() -> None:
    query = Query("op=create&user.name=a%26b&user.name=a%26b&destination=%2Fx%20y%3F&noredirect=false")
    assert query.again() == "op=create&user.name=a%26b&user.name=a%26b&destination=%2Fx%20y%3F&data=true"
    assert (query.op, query.all("user.name")) == ("CREATE", ["a&b", "a&b"])


def test_a_call_without_an_operation_is_refused_as_hadoop_does() -> None:
    with pytest.raises(HdfsError, match="op=NULL is not supported"):
        _ = Query("user.name=ann").op


def test_a_flood_of_parameters_is_refused() -> None:
    with pytest.raises(HdfsError, match="more than 100"):
        Query("&".join(["a=1"] * 101))


def test_an_acl_has_a_permission_and_what_goes_beyond_it() -> None:
    given = acls.parse("user::rwx,user:bob:r-x,group::r--,other::---,default:group:x:rwx", permissions=True)
    permission, beyond = acls.kept(given, "644")
    assert (permission, beyond) == ("750", ["user:bob:r-x", "group::r--", "default:group:x:rwx"])
    assert acls.kept(acls.entries_of(permission, beyond), permission) == (permission, beyond)


def test_an_acl_is_changed_entry_by_entry() -> None:
    entries = acls.entries_of("644", ())
    more = acls.changed(entries, acls.parse("user:bob:rwx", permissions=True))
    permission, beyond = acls.kept(more, "644")
    assert (permission, beyond) == ("674", ["user:bob:rwx", "group::r--"])
    less = acls.without(acls.entries_of(permission, beyond), acls.parse("user:bob:", permissions=False))
    assert acls.kept(less, permission) == ("644", [])


def test_the_sticky_bit_stays_where_it_was() -> None:
    assert acls.kept(acls.entries_of("1755", ()), "1755") == ("1755", [])


@pytest.mark.parametrize(
    "text", ["", "bad", "user:bob", "user::rwxx", "user::rw", "group:a:b:rwx", "x::rwx", "user::rwx,,other::r--"]
)
def test_what_is_no_acl_is_refused(text: str) -> None:
    with pytest.raises(HdfsError, match='webhdfs parameter "aclspec"'):
        acls.parse(text, permissions=True)


def test_an_acl_needs_the_three_entries_that_every_file_has() -> None:
    with pytest.raises(HdfsError, match="Invalid ACL: the user, group and other entries are required"):
        acls.kept(acls.parse("user::rwx", permissions=True), "644")


def test_an_acl_has_at_most_so_many_entries() -> None:
    many = ",".join(f"user:u{number}:r--" for number in range(40))
    with pytest.raises(HdfsError, match="exceeds maximum of 32"):
        acls.kept(acls.changed(acls.entries_of("644", ()), acls.parse(many, permissions=True)), "644")


def summed(content: bytes, piece: int = 512) -> dict[str, object]:
    checksum = FileChecksum()
    for start in range(0, len(content), piece):
        checksum.update(content[start : start + piece])
    return checksum.result()


def test_the_checksum_of_nothing_is_the_one_of_hadoop() -> None:
    assert summed(b"") == {
        "algorithm": "MD5-of-0MD5-of-0CRC32",
        "bytes": "00000000000000000000000070bc8f4b72a86921468bf8e8441dce5100000000",
        "length": 28,
    }


def test_a_checksum_is_of_chunks_whatever_the_pieces_were() -> None:
    content = bytes(range(256)) * 9
    crcs = b"".join(zlib.crc32(content[at : at + 512]).to_bytes(4, "big") for at in range(0, len(content), 512))
    block = hashlib.md5(crcs).digest()
    whole = hashlib.md5(block + bytes(16)).hexdigest()
    assert summed(content) == summed(content, 1024) == summed(content, 4096)
    assert summed(content)["bytes"] == f"00000200{'0' * 16}{whole}00000000"


def test_a_file_of_two_blocks_says_how_many_chunks_a_block_has() -> None:
    checksum = FileChecksum()
    piece = bytes(8 * 1024 * 1024)
    for _ in range(BLOCK_BYTES // len(piece)):
        checksum.update(piece)
    checksum.update(b"more")
    assert checksum.result()["algorithm"] == "MD5-of-262144MD5-of-512CRC32"
