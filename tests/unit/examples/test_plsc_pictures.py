"""Pictures that are made, and how trainers read their shares of them."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks import PYTHON, needs
from tests.unit.examples.plsc import JOB

pytestmark = needs("PIL")


def told(*words: object, code: int = 0) -> Any:
    """What the script says; of one that fails, its error."""
    script = Path(__file__).with_name("within_pictures.py")
    done = subprocess.run(
        [str(PYTHON), str(script), str(JOB), *map(str, words)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr


def content(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_the_same_pictures_are_made_each_time_and_fewer_are_the_first_of_more(tmp_path: Path) -> None:
    for name, count in (("few", 3), ("again", 3), ("more", 5)):
        assert told("make", tmp_path / name, count) == 4 * count
    for part in ("train_data", "test_data"):
        few, again, more = (content(tmp_path / name / part / "images.zip") for name in ("few", "again", "more"))
        assert few == again
        assert few == {name: more[name] for name in few}
        assert len(more) == (15 if part == "train_data" else 5)
        assert len(set(more.values())) == len(more)
    files = [(tmp_path / name / "train_data" / "images.zip").read_bytes() for name in ("few", "again")]
    assert files[0] == files[1]


def test_trainers_read_shares_of_one_size_that_are_all_there_is(tmp_path: Path) -> None:
    told("make", tmp_path, 8)
    found = told("read", tmp_path, 3)
    assert found["classes"] == 8
    assert found["shape"] == [8, 3, 32, 32]
    assert sorted(label for labels in found["labels"] for label in labels) == sorted([*range(8)] * 3)
    assert found["batched"] == [sorted(labels) for labels in found["labels"]]
    assert -1 <= found["span"][0] < -0.5
    assert 0.5 < found["span"][1] <= 1
    assert found["moved"] > 0.01
    assert found["test"] == [f"{number:05}/3.jpg" for number in range(8)]
    assert found["evenly"] == ["00000/3.jpg", "00004/3.jpg"]


def test_without_pictures_to_test_with_the_last_of_each_class_is_kept_for_it(tmp_path: Path) -> None:
    told("make", tmp_path / "made", 3)
    pictures = content(tmp_path / "made" / "train_data" / "images.zip")
    own = tmp_path / "own"
    own.mkdir()
    with zipfile.ZipFile(own / "faces.zip", "w") as held:
        for name in list(pictures)[:7]:  # of the third person there is one alone
            held.writestr(name, pictures[name])
    (own / "label.txt").write_text("".join(f"{name} {int(name[:5])}\n" for name in pictures))
    found = told("read", own, 1)
    assert found["test"] == ["00000/2.jpg", "00001/2.jpg"]
    assert found["train"] == ["00000/0.jpg", "00000/1.jpg", "00001/0.jpg", "00001/1.jpg", "00002/0.jpg"]


@pytest.mark.parametrize(
    ("label", "picture", "sentence"),
    [
        ("a.jpg 0\nb.jpg one\n", b"", "label.txt, line 2: 'b.jpg one' is not a name and, after a space, a class"),
        ("c.jpg 0\n", b"", "none of the pictures that label.txt names is in a zip file there"),
        ("a.jpg 0\n", b"no picture", "images.zip: a.jpg is not a picture"),
    ],
)
def test_what_is_wrong_with_pictures_is_told(tmp_path: Path, label: str, picture: bytes, sentence: str) -> None:
    (tmp_path / "label.txt").write_text(label)
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as held:
        held.writestr("a.jpg", picture)
    assert sentence in told("read", tmp_path, 1, code=1)
