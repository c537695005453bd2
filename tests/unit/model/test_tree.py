"""Manifests and links as a hostile client would write them, packs, and names as text."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.tree import (
    CHUNK_BYTES,
    Entry,
    Kind,
    Manifest,
    check_link,
    check_manifest,
    outline,
    pack,
    unpack,
)
from tests import trees

PARTS = st.sampled_from(["a", "b", "c", "..", ".", ""])
PATHS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map("/".join)
TARGETS = st.lists(PARTS, min_size=1, max_size=5).map("/".join).filter(bool)


@settings(max_examples=400, deadline=None)
@given(links=st.dictionaries(PATHS, TARGETS, min_size=1, max_size=5), files=st.sets(PATHS, max_size=4))
@example(links={"a": "b/../..", "b": "c/c/c"}, files=set())
@example(links={"a/a/a": "../..", "b": "a/a/a/../x"}, files=set())
@example(links={"a": "/etc/passwd"}, files=set())
def test_no_link_of_an_accepted_manifest_leads_out(links: dict[str, str], files: set[str]) -> None:
    manifest = trees.manifest(dict.fromkeys(files - links.keys(), b""), *(trees.link(*link) for link in links.items()))
    try:
        check_manifest(manifest)
    except InvalidError:
        return
    with tempfile.TemporaryDirectory() as name:
        # Deep enough that even a link that leads out meets nothing but our own folders.
        root = Path(name, *"123456789", "root")
        root.mkdir(parents=True)
        for entry in manifest.entries:
            (root / entry.path).parent.mkdir(parents=True, exist_ok=True)
            if entry.kind is Kind.LINK:
                (root / entry.path).symlink_to(entry.target)
            else:
                (root / entry.path).touch()
        for link in links:
            assert Path(os.path.realpath(root / link)).is_relative_to(os.path.realpath(root)), manifest


@pytest.mark.parametrize(
    ("link", "links"),
    [
        ("a", {"a": "a"}),
        ("a", {"a": "b", "b": "a"}),
        ("a", {"a": "b/x", "b": "a/y"}),
        ("l0", {f"l{number}": f"l{number + 1}" for number in range(60)}),
        ("l59", {"l0": "x"} | {f"l{number}": f"l{number - 1}" for number in range(1, 60)}),
        ("a", {"a": "d/" * 200}),
        ("a", {"a": "../x"}),
        ("d/a", {"d/a": "../../x"}),
        ("a", {"a": "up/..", "up": "."}),
    ],
)
def test_a_link_that_never_arrives_or_leads_out_is_refused(link: str, links: dict[str, str]) -> None:
    with pytest.raises(InvalidError):
        check_link(link, links)


@pytest.mark.timeout(10)
def test_links_made_to_be_slow_to_follow_are_not() -> None:
    links = {f"l{number}": f"l{number - 1}/../" * 30 + "x" for number in range(1, 5000)} | {"l0": "y"}
    with pytest.raises(InvalidError):
        check_manifest(trees.manifest({}, *(trees.link(*link) for link in links.items())))


@pytest.mark.parametrize(
    "entries",
    [
        [trees.file("a", b""), trees.file("a", b"")],
        [trees.file("a", b""), trees.file("a/b", b"")],
        [trees.link("a", "b"), trees.file("a/b/c", b"")],
        [trees.file("../a", b"")],
        [trees.file("/a", b"")],
        [trees.file("a//b", b"")],
        [trees.file("a/./b", b"")],
        [trees.file("a\0b", b"")],
        [trees.file("", b"")],
        [trees.file("\udc80", b"")],
        [trees.file("n" * 256, b"")],
        [trees.file("/".join("a" * 129), b"")],
        [trees.link("a", "\udc80")],
        [trees.link("a", "x\0")],
        [trees.link("a", "")],
        [replace(trees.file("a", b"x"), size=CHUNK_BYTES + 1)],
        [replace(trees.file("a", b"x"), size=-1)],
        [replace(trees.file("a", b"x"), size=0)],
        [replace(trees.file("a", b"x"), target="b")],
        [replace(trees.folder("a"), size=1, chunks=(trees.digest(b"x"),))],
        [Entry(path="a", kind=Kind.FILE, size=1, chunks=("../" * 21 + "x",))],
        [Entry(path="a", kind=Kind.FILE, size=1, chunks=(trees.digest(b"x").upper(),))],
    ],
)
def test_a_manifest_that_is_no_folder_is_refused(entries: list[Entry]) -> None:
    with pytest.raises(InvalidError):
        check_manifest(Manifest(entries=tuple(entries)))


@given(files=st.sets(PATHS, max_size=6), folders=st.sets(PATHS, max_size=6))
def test_a_path_below_a_file_is_refused_and_else_every_folder_is_counted_once(
    files: set[str], folders: set[str]
) -> None:
    manifest = trees.manifest(dict.fromkeys(files, b""), *map(trees.folder, folders - files))
    above = {str(parent) for path in files | folders for parent in Path(path).parents} - {"."}
    if above & files:
        with pytest.raises(InvalidError, match="which is not a folder"):
            check_manifest(manifest)
        return
    check_manifest(manifest)
    assert outline(manifest).paths == len(files | folders | above)


@pytest.mark.parametrize("name", ["a!b", "a-b", "a.b", "a0", "ab"])
def test_a_name_that_sorts_between_a_file_and_what_is_below_it_hides_nothing(name: str) -> None:
    with pytest.raises(InvalidError, match="'a/x' lies below 'a'"):
        check_manifest(trees.manifest({"a": b"", name: b"", "a/x": b""}))


def test_the_order_of_a_manifest_does_not_change_its_id() -> None:
    entries = (trees.file("a", b"1"), trees.link("b", "a"), trees.folder("c"))
    assert Manifest(entries=entries).id == Manifest(entries=entries[::-1]).id
    assert Manifest(entries=entries).id != Manifest(entries=entries[:2]).id


@given(st.lists(st.binary(max_size=50), max_size=20))
def test_what_is_packed_is_unpacked(contents: list[bytes]) -> None:
    chunks = [(trees.digest(content), content) for content in contents]
    assert unpack(pack(chunks)) == chunks


@given(st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=5), st.integers(min_value=1, max_value=40))
def test_a_pack_cut_in_the_middle_is_never_taken_for_a_whole_one(contents: list[bytes], lost: int) -> None:
    body = pack([(trees.digest(content), content) for content in contents])
    whole = [len(pack([(trees.digest(c), c) for c in contents[:count]])) for count in range(len(contents) + 1)]
    cut = body[: max(0, len(body) - lost)]
    if len(cut) in whole:
        assert len(unpack(cut)) == whole.index(len(cut))
    else:
        with pytest.raises(InvalidError):
            unpack(cut)


@given(st.binary(max_size=60))
@example("\uef80\uefff".encode())
@example(b"caf\xe9")
def test_any_name_becomes_text_and_its_bytes_again(raw: bytes) -> None:
    text = paths.text_of(raw)
    assert text.encode().decode() == text
    assert paths.raw_of(text) == raw


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Co"])))
def test_a_name_that_is_text_stays_as_it_is(name: str) -> None:
    assert paths.text_of(name.encode()) == name
