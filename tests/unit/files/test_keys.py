"""Keys and their order, without a store."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.files.keys import KEY_BYTES, MARKER, in_order, key_of, path_of
from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError

NAMES = st.text(alphabet="a!-./0b", min_size=1, max_size=5).map(lambda text: text.strip("/") or "a")


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("home/ann/data.txt", "home/ann/data.txt"),
        ("100%/a+b&c d", "100%/a+b&c d"),
        ("数据/ü", "数据/ü"),
        ("a\nb", "a\uef0ab"),
        ("a\\b", "a\uef5cb"),
        ("\uefff", "\uefff"),
        ("\uef05", "\uefee\uefbc\uef85"),
        ("\x85", "\uefc2\uef85"),
        (f"a/{MARKER}", f"a/\uef2e{MARKER[1:]}"),
        (f"a/{MARKER}s", f"a/{MARKER}s"),
    ],
)
def test_a_path_is_its_key_but_for_what_would_not_be_kept(path: str, key: str) -> None:
    assert key_of(path) == key
    assert path_of(key) == path


@given(st.binary(max_size=60).filter(lambda raw: b"\0" not in raw))
def test_every_name_has_a_key_of_its_own_that_any_wire_takes(raw: bytes) -> None:
    path = paths.text_of(raw)
    key = key_of(path)
    assert path_of(key) == path
    assert MARKER not in key.split("/")
    assert all(character.isprintable() or character >= "\xa0" for character in key)


def test_a_key_that_s3_does_not_take_is_refused() -> None:
    assert key_of("n" * KEY_BYTES)
    with pytest.raises(InvalidError, match="longer than 1024 bytes"):
        key_of("n" * (KEY_BYTES + 1))
    with pytest.raises(InvalidError):
        key_of("ü" * (KEY_BYTES // 2 + 1))


@given(
    files=st.sets(NAMES.map(lambda name: name.replace("/", "")).filter(bool)),
    folders=st.sets(NAMES.map(lambda name: name.replace("/", "")).filter(bool)),
    after=st.sampled_from(["", "a", "a-", "a!", "b"]),
    held=st.integers(0, 4),
    by_key=st.booleans(),
)
def test_names_come_in_order_each_once_however_few_may_wait(
    files: set[str], folders: set[str], after: str, held: int, by_key: bool
) -> None:
    listed: list[tuple[str, int | None]] = [(name, 1) for name in files] + [(name, None) for name in folders]
    listed.sort(key=lambda one: one[0] + "/" * (one[1] is None) if by_key else one[0])
    found = list(in_order(iter(listed), is_folder=folders.__contains__, after=after, held=held))
    assert [name for name, _ in found] == sorted(name for name in files | folders if name > after)
    twice = set() if by_key else files & folders
    assert all((value is None) == (name in folders) for name, value in found if name not in twice)


def test_a_store_is_asked_about_a_folder_only_once_many_names_wait_for_it() -> None:
    asked: list[str] = []

    def is_folder(name: str) -> bool:
        asked.append(name)
        return False

    many = [(f"part-{number:05}", number) for number in range(5000)]
    assert list(in_order(iter(many), is_folder=is_folder, held=1000)) == many
    assert asked == ["part"]
    several = [(f"{number:05}.txt", number) for number in range(5000)]
    assert list(in_order(iter(several), is_folder=is_folder, held=1000)) == several
    assert asked == ["part"]
