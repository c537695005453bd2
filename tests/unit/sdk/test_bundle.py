"""What of a folder is sent, what stays behind, and what is refused."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from paddlecloud.model.errors import InvalidError, TooLargeError
from paddlecloud.model.tree import CHUNK_BYTES, Kind
from paddlecloud.sdk.bundle import scan
from tests import trees


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "job"
    path.mkdir()
    return path


def write(folder: Path, *files: str, content: str = "x") -> None:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(content)


def test_a_folder_is_listed_with_everything_that_must_survive(folder: Path) -> None:
    large = os.urandom(CHUNK_BYTES + 1)
    write(folder, "a b", "line\nbreak", "é/ü", "n" * 255)
    (folder / "large").write_bytes(large)
    (folder / "run.sh").write_text("x")
    (folder / "run.sh").chmod(0o755)
    (folder / "none").write_text("")
    (folder / "empty" / "inner").mkdir(parents=True)
    (folder / "link").symlink_to("é/ü")
    found = scan(folder).manifest
    assert found.entries == (
        trees.file("a b", b"x"),
        trees.folder("empty/inner"),
        trees.file("large", large),
        trees.file("line\nbreak", b"x"),
        trees.link("link", "é/ü"),
        trees.file("n" * 255, b"x"),
        trees.file("none", b""),
        trees.file("run.sh", b"x", executable=True),
        trees.file("é/ü", b"x"),
    )
    assert scan(str(folder)).manifest.id == found.id


def test_version_control_environments_and_caches_stay_behind_unless_asked_for(folder: Path) -> None:
    write(folder, "train.py", ".git/HEAD", "lib/__pycache__/x.pyc", "node_modules/x")
    write(folder, "env/pyvenv.cfg", "env/bin/python")
    bundle = scan(folder)
    assert set(bundle.sources) == {"train.py"}
    assert bundle.skipped == (".git/", "env/", "lib/__pycache__/", "node_modules/")
    assert len(scan(folder, ignore_defaults=False).sources) == 6
    write(folder, ".paddleignore", content="!*/\n!env\n")
    assert set(scan(folder).sources) == {".paddleignore", "train.py", "env/pyvenv.cfg", "env/bin/python"}


def test_a_folder_whose_files_all_stay_behind_is_an_empty_folder(folder: Path) -> None:
    write(folder, "data/x.log")
    write(folder, ".gitignore", content="*.log")
    assert [(entry.path, entry.kind) for entry in scan(folder).manifest.entries] == [
        (".gitignore", Kind.FILE),
        ("data", Kind.FOLDER),
    ]


def test_paddleignore_decides_before_gitignore(folder: Path) -> None:
    write(folder, "data/train.npz", "notes.txt", "model.bin", "deep/kept.log", "deep/x.log")
    write(folder, ".gitignore", content="data/\n*.bin\n*.log\n")
    write(folder, ".paddleignore", content="!data/\n*.txt\n")
    write(folder, "deep/.paddleignore", content="!kept.log\n")
    assert set(scan(folder).sources) == {
        ".gitignore",
        ".paddleignore",
        "data/train.npz",
        "deep/.paddleignore",
        "deep/kept.log",
    }


@pytest.mark.parametrize(
    ("link", "target"),
    [("out", "/etc/passwd"), ("out", ".."), ("a/out", "../../x"), ("a/b", "../back/../.."), ("loop", "loop")],
)
def test_a_link_out_of_the_folder_is_refused_with_its_name(folder: Path, link: str, target: str) -> None:
    write(folder, "a/file")
    (folder / "back").symlink_to("a")
    (folder / link).symlink_to(target)
    with pytest.raises(InvalidError, match=repr(link)):
        scan(folder)


def test_a_link_to_another_place_is_told_what_helps(folder: Path) -> None:
    (folder / "out").symlink_to("/etc/passwd")
    with pytest.raises(InvalidError, match="'out' leads out of the folder, to '/etc/passwd'") as caught:
        scan(folder)
    assert "copy the file into the folder, or leave the link out by a line in .paddleignore" in caught.value.message
    assert "relative" not in caught.value.message
    (folder / "out").unlink()
    (folder / "up").symlink_to("../x")
    with pytest.raises(InvalidError, match="'up' points to '../x', outside the folder: copy the file into its place"):
        scan(folder)
    (folder / "up").unlink()
    (folder / "inside").symlink_to(folder / "file")
    with pytest.raises(InvalidError, match="'inside' points to '.*/file': make it relative"):
        scan(folder)


def test_an_ignored_link_out_of_the_folder_does_no_harm(folder: Path) -> None:
    (folder / "out").symlink_to("/etc/passwd")
    write(folder, ".paddleignore", content="out\n")
    assert set(scan(folder).sources) == {".paddleignore"}


def test_a_name_that_is_not_utf8_is_refused(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9")).write_text("x")
    with pytest.raises(InvalidError, match="not valid UTF-8"):
        scan(folder)
    write(folder, ".gitignore", content="caf*")
    assert set(scan(folder).sources) == {".gitignore"}


@pytest.mark.timeout(10)
def test_sockets_and_fifos_are_refused_with_their_names(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(InvalidError, match="'pipe' is a FIFO"):
        scan(folder)
    (folder / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        at = os.open(folder, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{at}/port")
        os.close(at)
        with pytest.raises(InvalidError, match="'port' is a socket"):
            scan(folder)


def test_only_a_folder_can_be_sent(folder: Path) -> None:
    write(folder, "train.py")
    with pytest.raises(InvalidError, match="give the folder"):
        scan(folder / "train.py")
    with pytest.raises(InvalidError, match="is not there"):
        scan(folder / "nothing")


def test_a_link_to_a_folder_may_be_given(folder: Path, tmp_path: Path) -> None:
    write(folder, "train.py")
    (tmp_path / "link").symlink_to(folder)
    assert scan(tmp_path / "link").manifest == scan(folder).manifest


def test_over_the_limit_the_largest_files_are_named(folder: Path) -> None:
    write(folder, "small", content="x")
    write(folder, "data/large", content="x" * 100)
    with pytest.raises(TooLargeError, match="data/large\n"):
        scan(folder, limit_bytes=100)
    assert len(scan(folder, limit_bytes=101).sources) == 2


def test_a_folder_too_deep_to_send_is_refused(folder: Path) -> None:
    write(folder, "d/" * 130 + "x")
    with pytest.raises(InvalidError, match="more than 128 levels"):
        scan(folder)


@pytest.mark.parametrize("change", [b"other", b"longer than it was"])
def test_a_file_that_changes_after_the_listing_is_noticed(folder: Path, change: bytes) -> None:
    write(folder, "growing", content="begin")
    source = scan(folder).sources["growing"]
    assert source.read(0) == b"begin"
    (folder / "growing").write_bytes(change)
    with pytest.raises(InvalidError, match="'growing' changed"):
        source.read(0)


def test_a_file_that_became_a_link_or_went_is_noticed(folder: Path) -> None:
    write(folder, "file")
    source = scan(folder).sources["file"]
    (folder / "file").unlink()
    with pytest.raises(InvalidError, match="'file'"):
        source.read(0)
    (folder / "file").symlink_to("/etc/passwd")
    with pytest.raises(InvalidError, match="'file'"):
        source.read(0)


class Told:
    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.done = 0

    def total(self, size: int) -> None:
        self.sizes.append(size)

    def advance(self, size: int) -> None:
        self.done += size


def test_reading_a_large_folder_is_told_as_it_goes_and_a_small_one_is_not(folder: Path) -> None:
    write(folder, "small")
    assert scan(folder, progress=(small := Told())).name == "job"
    assert (small.sizes, small.done) == ([], 0)
    large = 256 * 1024 * 1024 + 1
    with (folder / "sparse").open("wb") as file:
        file.truncate(large)
    scan(folder, progress=(told := Told()))
    assert (told.sizes, told.done) == ([large + 1], large + 1)
