"""What a store on the disk does beside the contract: hostile folders, full disks, what a crash left."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from paddlecloud.files.base import Usage
from paddlecloud.files.local import STAGING, LocalStore
from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.tree import Kind
from tests.contract.stores import content, names, tree

MIB = 1024 * 1024


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def local(root: Path) -> LocalStore:
    return LocalStore(root)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Somebody else's folder."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_bytes(b"secret")
    (folder / "inner").mkdir()
    return folder


@pytest.mark.parametrize(
    "call",
    [
        lambda store, whole: store.stat("in/link/secret"),
        lambda store, whole: store.open("in/link/secret"),
        lambda store, whole: store.open("in/file-link"),
        lambda store, whole: store.list("in/link/inner"),
        lambda store, whole: list(store.walk("in/link/inner")),
        lambda store, whole: store.write("in/link/new", [b"1"]),
        lambda store, whole: store.write("in/link/secret", [b"1"]),
        lambda store, whole: store.write_all([("in/link/secret", b"1")]),
        lambda store, whole: store.adopt("in/link/secret", whole),
        lambda store, whole: store.make_folder("in/link"),
        lambda store, whole: store.make_folder("in/link/new"),
        lambda store, whole: store.move("in/link/secret", "in/mine"),
        lambda store, whole: store.move("in/file", "in/link/new"),
        lambda store, whole: store.remove("in/link/secret"),
        lambda store, whole: store.remove("in/link/inner", recursive=True),
    ],
)
def test_nothing_is_reached_through_a_link(
    local: LocalStore, root: Path, outside: Path, tmp_path: Path, call: Callable[[LocalStore, Path], object]
) -> None:
    local.write("in/file", [b"1"])
    (root / "in/link").symlink_to(outside)
    (root / "in/file-link").symlink_to(outside / "secret")
    whole = tmp_path / "whole"
    whole.write_bytes(b"mine")
    with pytest.raises(NotFoundError):
        call(local, whole)
    assert sorted(os.listdir(outside)) == ["inner", "secret"]
    assert (outside / "secret").read_bytes() == b"secret"
    assert whole.read_bytes() == b"mine"
    assert names(local, "in") == ["in/file", "in/file-link", "in/link"]


def test_a_link_is_told_as_one_and_is_what_is_replaced_moved_and_removed(
    local: LocalStore, root: Path, outside: Path
) -> None:
    local.make_folder("in")
    for name in ("a", "b", "c"):
        (root / "in" / name).symlink_to(outside / "secret")
    found = local.stat("in/a")
    assert (found.kind, found.target, found.size) == (Kind.LINK, str(outside / "secret"), 0)
    assert local.list("in")[0] == found
    with pytest.raises(ConflictError):
        local.list("in/a")
    local.write("in/a", [b"mine"])
    local.move("in/b", "in/moved")
    local.remove("in/c")
    assert [(entry.path, entry.kind) for entry in local.walk("in")] == [
        ("in/a", Kind.FILE),
        ("in/moved", Kind.LINK),
    ]
    assert (outside / "secret").read_bytes() == b"secret"


def test_a_folder_is_removed_without_what_its_links_lead_to(local: LocalStore, root: Path, outside: Path) -> None:
    local.make_folder("in/deep")
    (root / "in/deep/link").symlink_to(outside)
    (root / "in/deep").chmod(0o500)
    assert local.usage("in") == Usage(size_bytes=0, files=1)
    local.remove("in", recursive=True)
    assert (tree(local), os.listdir(root / STAGING)) == ([], [])
    assert (outside / "secret").exists()


SWAP = """
import ctypes, sys
exchange, here = 2, -100  # RENAME_EXCHANGE, AT_FDCWD
rename = ctypes.CDLL(None).renameat2
one, other = (path.encode() for path in sys.argv[1:])
print("swapping", flush=True)
while rename(here, one, here, other, exchange) == 0:
    pass
print("this disk cannot exchange names", flush=True)
"""


def test_nothing_is_written_outside_while_a_folder_is_swapped_for_a_link(
    local: LocalStore, root: Path, outside: Path
) -> None:
    local.make_folder("in/folder")
    (root / "in/link").symlink_to(outside)
    swapping = subprocess.Popen(
        [sys.executable, "-c", SWAP, str(root / "in/folder"), str(root / "in/link")], stdout=subprocess.PIPE
    )
    assert swapping.stdout is not None
    assert swapping.stdout.readline() == b"swapping\n"
    written = 0
    try:
        for number in range(1000):
            with suppress(NotFoundError, ConflictError):
                local.write_all([(f"in/folder/{number}", b"1")])
                written += 1
                local.make_folder(f"in/folder/f{number}")
                local.remove(f"in/folder/{number}")
        assert swapping.poll() is None, "it was not swapped to the end"
    finally:
        swapping.kill()
        swapping.communicate()
    assert 0 < written < 1000
    assert sorted(os.listdir(outside)) == ["inner", "secret"]
    assert os.listdir(root / STAGING) == []


def test_what_is_neither_file_nor_folder_nor_link_is_not_there(local: LocalStore, root: Path) -> None:
    local.write("in/file", [b"1"])
    os.mkfifo(root / "in/fifo")
    folder = os.open(root / "in", os.O_PATH)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{folder}/socket")  # the path of a socket may have about 100 characters
    os.close(folder)
    for name in ("fifo", "socket"):
        for call in (local.stat, local.open, local.remove):
            with pytest.raises(NotFoundError):
                call(f"in/{name}")
    assert names(local, "in") == tree(local, "in") == ["in/file"]
    local.remove("in", recursive=True)
    assert tree(local) == []


def test_the_staging_folder_is_nobodys(local: LocalStore, root: Path) -> None:
    local.write("file", [b"1"])
    (root / STAGING / "being-written").write_bytes(b"half")
    calls: list[Callable[[], object]] = [
        lambda: local.stat(STAGING),
        lambda: local.list(STAGING),
        lambda: local.open(f"{STAGING}/being-written"),
        lambda: local.write(f"{STAGING}/new", [b"1"]),
        lambda: local.write_all([(f"{STAGING}/new", b"1")]),
        lambda: local.adopt(f"{STAGING}/new", root / "file"),
        lambda: local.make_folder(f"{STAGING}/new"),
        lambda: local.move("file", f"{STAGING}/new"),
        lambda: local.remove(STAGING, recursive=True),
        lambda: local.usage(STAGING),
    ]
    for call in calls:
        with pytest.raises(NotFoundError):
            call()
    assert names(local) == tree(local) == ["file"]
    assert [entry.path for entry in local.list("", limit=1)] == ["file"]
    assert local.usage("") == Usage(size_bytes=1, files=1)
    assert os.listdir(root / STAGING) == ["being-written"]


def test_what_a_crash_left_is_removed_at_the_next_start(local: LocalStore, root: Path) -> None:
    local.write("file", [b"1"])
    (root / STAGING / "half").write_bytes(b"half")
    (root / STAGING / "leaving/deep").mkdir(parents=True)
    (root / STAGING / "leaving/deep/file").write_bytes(b"1")
    again = LocalStore(root)
    assert os.listdir(root / STAGING) == []
    assert content(again, "file") == b"1"


def test_what_cannot_be_removed_is_told_and_keeps_no_store_from_opening(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root / STAGING).mkdir(parents=True)
    fixed, other = root / STAGING / "a/fixed", root / STAGING / "b"
    fixed.parent.mkdir()
    fixed.touch()
    other.touch()
    if subprocess.run(["chattr", "+i", str(fixed)], capture_output=True, check=False).returncode:
        pytest.skip("no file can be fixed in its place here")
    try:
        LocalStore(root).write("file", [b"1"])
    finally:
        subprocess.run(["chattr", "-i", str(fixed)], check=True)
    assert (root / "file").read_bytes() == b"1"
    assert fixed.exists()
    assert not other.exists()
    assert f"cannot remove {root / STAGING / 'a'}" in caplog.text
    LocalStore(root)
    assert os.listdir(root / STAGING) == []


def test_what_is_made_can_be_read_by_all_whatever_the_umask(local: LocalStore, root: Path, tmp_path: Path) -> None:
    (tmp_path / "whole").write_bytes(b"1")
    before = os.umask(0o077)
    try:
        local.write("a/b/one", [b"1"])
        local.write_all([("c/two", b"1")])
        local.adopt("d/three", tmp_path / "whole")
        local.make_folder("e")
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE((root / path).stat().st_mode) for path in tree(local)}
    assert modes == {path: 0o755 if (root / path).is_dir() else 0o644 for path in modes}


def test_holes_are_not_counted_and_other_names_of_a_file_only_once(local: LocalStore, root: Path) -> None:
    local.make_folder("in")
    with (root / "in/sparse").open("wb") as file:
        file.truncate(10 * 1024 * MIB)
    (root / "in/file").write_bytes(b"12345")
    os.link(root / "in/file", root / "in/other-name")
    used = local.usage("in")
    assert used.size_bytes <= 5 + 4096
    assert used.files == 2
    assert local.usage("in/file") == Usage(size_bytes=5, files=1)


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == tmp_path.stat().st_dev:
        pytest.skip("this machine has no second disk at /dev/shm")
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)


def test_a_file_on_another_disk_is_taken_over_too(local: LocalStore, root: Path, other_disk: Path) -> None:
    whole = other_disk / "whole"
    whole.write_bytes(b"12345" * MIB)
    assert local.adopt("in/file", whole).size == 5 * MIB
    assert not whole.exists()
    assert content(local, "in/file") == b"12345" * MIB
    assert os.listdir(root / STAGING) == []


SCRIPT = """
import os, sys
from pathlib import Path
from paddlecloud.files.local import LocalStore
from paddlecloud.model.errors import FullError

disk, elsewhere = Path(sys.argv[1]), Path(sys.argv[2])
store = LocalStore(disk / "store")
store.write("in/file", [b"old"])
whole = elsewhere / "whole"
whole.write_bytes(os.urandom(3 * 1024 * 1024))
mib = os.urandom(1024 * 1024)

def refused(call, *arguments):
    try:
        call(*arguments)
    except FullError as error:
        assert "no space left" in error.message, error
    else:
        raise AssertionError("it was not refused")

for path in ("in/file", "in/new", "deep/er/new"):
    refused(store.write, path, [mib] * 3)
    refused(store.write_all, [(path, mib), (path + "2", mib), (path + "3", mib)])
    refused(store.adopt, path, whole)
assert [entry.path for entry in store.walk("")] == ["in", "in/file"], list(store.walk(""))
assert os.listdir(disk / "store/.staging") == []
assert store.open("in/file").read(0, 10) == b"old"
assert whole.stat().st_size == 3 * 1024 * 1024
assert 0 < store.free_bytes() <= 2 * 1024 * 1024
store.write("in/file", [mib])
store.write("in/file", [b"new"])

# The same disk by another mount: it looks the same, but nothing can be moved across.
bound = elsewhere / "bound/whole"
bound.write_bytes(b"bound")
store.adopt("in/bound", bound)
assert store.open("in/bound").read(0, 10) == b"bound" and not bound.exists()
print("passed")
"""


MOUNTED = """
mount -t tmpfs -o size=2m none "$0" && mkdir "$0/bound" "$3/bound" && mount --bind "$0/bound" "$3/bound" &&
exec "$1" -c "$2" "$0" "$3"
"""


def test_a_full_disk_is_told_and_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no mount namespaces")
    disk = tmp_path / "disk"
    disk.mkdir()
    repository = Path(__file__).parents[2]
    run = subprocess.run(
        [
            *alone,
            "sh",
            "-c",
            MOUNTED,
            str(disk),
            sys.executable,
            SCRIPT,
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{repository}/src:{repository}", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
    )
    assert run.stdout == "passed\n", run.stderr
