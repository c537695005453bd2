"""Files from a bucket of a user's own and results to it, against a real S3 server: whole, once, and nothing else."""

from __future__ import annotations

import os
import secrets
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from paddlecloud.files import carry
from paddlecloud.files.base import Store
from paddlecloud.files.bucket import PART_BYTES, Bucket
from paddlecloud.files.carry import Brought, FilesOf, Item
from paddlecloud.files.results import Results
from paddlecloud.model.errors import ConflictError, FullError
from tests.contract.records import a_job
from tests.s3 import BUCKET, REGION, S3Server


class Own:
    """A folder in a bucket, filled as other programs would, and what was brought of it."""

    def __init__(self, server: S3Server, root: Path) -> None:
        self.server = server
        self.bucket = Bucket(
            BUCKET, key_id=server.key_id, secret=server.secret, region=REGION, endpoint=server.endpoint
        )
        self.folder = f"own/{secrets.token_hex(4)}"
        self.root = root
        self.brought = Brought(root, "job")
        self.came = 0

    def put(self, **files: bytes) -> None:
        for name, content in files.items():
            self.put_at(name, content)

    def put_at(self, path: str, content: bytes = b"1") -> None:
        self.bucket.put(f"{self.folder}/{path}", content)

    def listed(self) -> list[Item]:
        return carry.wanted(carry.listed(self.bucket, self.folder))

    def bring(self, items: Sequence[Item] | None = None, *, spare_bytes: int = 0) -> int:
        """How many bytes came, but for those that were here."""
        counted: list[int] = []
        self.brought.bring(
            self.bucket,
            self.listed() if items is None else items,
            spare_bytes=spare_bytes,
            progress=counted.append,
        )
        return sum(counted[1:])

    def here(self) -> dict[str, bytes]:
        tree = self.brought.tree
        return {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}

    def there(self) -> dict[str, int]:
        """What is in the bucket's folder, with sizes."""
        begin = len(self.folder) + 1
        return {found["path"][begin:]: found["size"] for chunk in self.bucket.chunks(self.folder) for found in chunk}


@pytest.fixture
def own(s3_server: S3Server, tmp_path: Path) -> Own:
    return Own(s3_server, tmp_path / "buckets")


def test_a_folder_comes_whole_and_read_only_without_results_of_before(own: Own) -> None:
    large = secrets.token_bytes(PART_BYTES * 2 + 5)
    files = {"run.sh": b"true", "data/a b/空": b"", "data/x": b"x", "large": large, "outputs/y": b"y"}
    for path, content in files.items():
        own.put_at(path, content)
    own.put_at("output/job-1/rank-0/w")
    assert own.bring() == sum(map(len, files.values()))
    assert own.here() == files
    modes = {stat.S_IMODE(path.lstat().st_mode) for path in [own.brought.tree, *own.brought.tree.rglob("*")]}
    assert modes == {0o555}
    own.brought.remove()
    assert list(own.root.iterdir()) == []


def test_what_is_here_whole_does_not_come_again_and_what_has_changed_does(own: Own) -> None:
    own.put(a=b"aaaa", b=b"bbbb", c=b"cccc")
    assert own.bring() == 12
    assert own.bring() == 0
    own.put_at("a", b"AAAA")
    own.put_at("d/e", b"e")
    own.bucket.delete([f"{own.folder}/c"])
    assert own.bring() == 5
    assert own.here() == {"a": b"AAAA", "b": b"bbbb", "d/e": b"e"}
    own.bucket.delete([f"{own.folder}/d/e"])
    own.put_at("d", b"a file now")
    own.bring()
    assert own.here() == {"a": b"AAAA", "b": b"bbbb", "d": b"a file now"}


def test_half_a_file_and_half_a_record_are_nothing(own: Own) -> None:
    own.put(a=b"aaaa", b=b"bbbb")
    own.bring()
    record = own.root / "job" / "whole"
    first, second = record.read_text().splitlines()
    record.write_text(f"{first}\n{second[:-4]}")
    os.truncate(own.brought.tree / "a", 2)
    assert own.bring() == 8
    assert own.here() == {"a": b"aaaa", "b": b"bbbb"}


def test_a_file_that_is_replaced_between_list_and_read_is_never_a_mix(own: Own) -> None:
    own.put(a=b"aaaa")
    items = own.listed()
    own.put_at("a", b"AAAA")
    with pytest.raises(ConflictError, match="replaced"):
        own.bring(items)
    own.bring()
    assert own.here() == {"a": b"AAAA"}


def test_a_store_that_has_no_etags_to_tell_is_read_all_the_same(own: Own) -> None:
    own.put(a=b"aaaa")
    items = [replace(item, etag=None) for item in own.listed()]
    assert [own.bring(items), own.bring(items)] == [4, 0]


def test_of_a_file_and_a_folder_with_one_name_the_folder_is_meant() -> None:
    paths = ["a", "a/b", "a/b/c", "d"]
    assert [item.path for item in carry.wanted(Item(path, path, 1, None) for path in paths)] == ["a/b/c", "d"]


def test_thousands_of_results_are_jumped_over(own: Own) -> None:
    for number in range(1100):
        own.put_at(f"output/job-1/{number:04}", b"")
    own.put(a=b"a", z=b"z", **{"output-of-mine": b"m"})
    assert [item.path for item in own.listed()] == ["a", "output-of-mine", "z"]


def test_no_room_is_told_before_a_byte_comes(own: Own) -> None:
    own.put(a=b"aaaa")
    with pytest.raises(FullError):
        own.bring(spare_bytes=2**60)
    assert own.here() == {}


SCRIPT = """
import os, sys
from pathlib import Path
from paddlecloud.files import carry
from paddlecloud.files.bucket import Bucket
from paddlecloud.model.errors import FullError

root, bucket_name, region, endpoint, key_id, secret, folder = sys.argv[1:]
bucket = Bucket(bucket_name, key_id=key_id, secret=secret, region=region, endpoint=endpoint)
brought = carry.Brought(Path(root), "job")

calls = []

def fill(more):
    calls.append(more)
    if len(calls) != 2:
        return
    with open(root + "/filler", "ab", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass

try:
    brought.bring(bucket, carry.wanted(carry.listed(bucket, folder)), spare_bytes=0, progress=fill)
except FullError as error:
    assert "no space left" in error.message, error
    brought.remove()
    assert os.listdir(root) == ["filler"], os.listdir(root)
    print("passed")
"""


def test_a_disk_that_fills_meanwhile_is_told_and_what_came_goes(own: Own, tmp_path: Path) -> None:
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no mount namespaces")
    for number in range(20):
        own.put_at(f"{number}", bytes(90_000))
    inside = 'mount -t tmpfs -o size=2m none "$0" && exec "$1" -c "$2" "$0" "$3" "$4" "$5" "$6" "$7" "$8"'
    server = own.server
    place = [BUCKET, REGION, server.endpoint, server.key_id, server.secret, own.folder]
    run = subprocess.run(
        [*alone, "sh", "-c", inside, str(tmp_path), sys.executable, SCRIPT, *place],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout == "passed\n", run.stderr


def test_results_are_sent_once_but_for_links_and_names_that_are_too_long(own: Own, tmp_path: Path) -> None:
    job, results = a_job("ann"), Results(tmp_path / "results")
    folder = results.folder(job)
    (folder / "log").mkdir()
    (folder / "log" / "trainer-0.log").write_bytes(b"said")
    (folder / "rank-0" / ("d" * 200) / ("e" * 200)).mkdir(parents=True)
    (folder / "rank-0" / "模型").write_bytes(bytes(PART_BYTES + 1))
    (folder / "rank-0" / "link").symlink_to("/etc/passwd")
    (folder / "rank-0" / ("d" * 200) / ("e" * 200) / ("f" * 250)).write_bytes(b"1")
    deep = folder / "rank-0" / "/".join(["g" * 200] * 5)
    deep.mkdir(parents=True)
    (deep / "h").write_bytes(b"too deep for a key")
    sizes: list[int] = []
    refused = carry.send(own.bucket, own.folder, results, job, progress=sizes.append)
    assert [path.rpartition("/")[2] for path in refused] == ["h"]
    prefix = f"output/{job.id}"
    sent = {path.removeprefix(f"{prefix}/"): size for path, size in own.there().items()}
    assert {path: size for path, size in sent.items() if "ddd" not in path} == {
        "log/trainer-0.log": 4,
        "rank-0/模型": PART_BYTES + 1,
    }
    assert len(sent) == len(sizes) == 3
    again: list[int] = []
    (folder / "rank-0" / "late").write_bytes(b"late")
    carry.send(own.bucket, own.folder, results, job, progress=again.append)
    assert again == [4]


def test_files_of_any_store_come_under_a_name_and_never_as_a_mix(store: Store, tmp_path: Path) -> None:
    store.write_all([("set/a/b", b"12"), ("set/c", b"3"), ("other", b"4")])
    files, brought = FilesOf(store), Brought(tmp_path, "input")
    items = files.listed("set", "top")
    assert [(item.path, item.size) for item in items] == [("top/a/b", 2), ("top/c", 1)]
    assert [item.path for item in files.listed("other", "one")] == ["one"]
    brought.bring(files, items, spare_bytes=0, progress=lambda _: None)
    assert (brought.tree / "top/a/b").read_bytes() == b"12"
    store.write("set/c", [b"new"])
    brought.remove()
    with pytest.raises(ConflictError, match="replaced"):
        brought.bring(files, items, spare_bytes=0, progress=lambda _: None)
