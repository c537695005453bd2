"""What is refused in the PFS names paths as whoever typed them knows them, whatever the stores call them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecloud.files.local import LocalStore
from paddlecloud.model import pfs as names
from paddlecloud.model.errors import FullError, PaddleCloudError
from paddlecloud.model.pfs import Who
from paddlecloud.server.pfs import Pfs
from paddlecloud.server.pfs_words import in_its_words
from tests.unit.server.test_homes import Endless, no_discard

ANN = Who(user="ann")
HOME = "/pfs/local/home/ann"


@pytest.fixture
def pfs(tmp_path: Path) -> Pfs:
    stores = {"local": LocalStore(tmp_path / "local")}
    made = Pfs(stores=stores, outputs=LocalStore(tmp_path / "results"), room=Endless(), discard=no_discard)
    made.write_all(ANN, [(f"{HOME}/file", b"1"), (f"{HOME}/folder/in", b"1"), (f"{HOME}/it's", b"1")])
    return made


@pytest.mark.parametrize(
    ("act", "named"),
    [
        (lambda pfs: pfs.write(ANN, f"{HOME}/folder", [b"1"], size=1), f"{HOME}/folder"),
        (lambda pfs: pfs.write(ANN, f"{HOME}/file/x", [b"1"], size=1), f"{HOME}/file"),
        (lambda pfs: pfs.write(ANN, f"{HOME}/it's/x", [b"1"], size=1), f"{HOME}/it's"),
        (lambda pfs: pfs.write_all(ANN, [(f"{HOME}/a", b"1"), (f"{HOME}/folder", b"1")]), f"{HOME}/folder"),
        (lambda pfs: pfs.write_all(ANN, [(f"{HOME}/a", b"1"), (f"{HOME}/file/x", b"1")]), f"{HOME}/file"),
        (lambda pfs: pfs.move(ANN, f"{HOME}/file", f"{HOME}/folder"), f"{HOME}/folder"),
        (lambda pfs: pfs.move(ANN, f"{HOME}/folder", f"{HOME}/file"), f"{HOME}/file"),
        (lambda pfs: pfs.move(ANN, f"{HOME}/folder", f"{HOME}/folder/x"), f"{HOME}/folder"),
        (lambda pfs: pfs.move(ANN, f"{HOME}/folder/in", f"{HOME}/file/x"), f"{HOME}/file"),
        (lambda pfs: pfs.make_folder(ANN, f"{HOME}/file/x"), f"{HOME}/file"),
        (lambda pfs: pfs.remove(ANN, f"{HOME}/folder"), f"{HOME}/folder"),
        (lambda pfs: pfs.open(ANN, f"{HOME}/folder"), f"{HOME}/folder"),
        (lambda pfs: pfs.open(ANN, f"{HOME}/output"), f"{HOME}/output"),
        (lambda pfs: pfs.open(ANN, f"{HOME}/nothing"), f"{HOME}/nothing"),
        (lambda pfs: pfs.glob(ANN, f"{HOME}/nothing"), f"{HOME}/nothing"),
    ],
)
def test_a_refusal_names_the_path_as_it_is_typed(pfs: Pfs, act: Callable[[Pfs], object], named: str) -> None:
    with pytest.raises(PaddleCloudError) as refused:
        act(pfs)
    assert named in refused.value.message
    assert "home/ann" not in refused.value.message.replace(HOME, "")


@pytest.mark.parametrize(
    ("path", "quoted", "named"),
    [
        (f"{HOME}/x", "home/ann/y", f"{HOME}/y"),
        (f"{HOME}/x", "lab/pfs/home/ann/y", f"{HOME}/y"),
        (f"{HOME}/x", "home/ann/home/ann/y", f"{HOME}/home/ann/y"),
        (f"{HOME}/x", "home/ann", HOME),
        (f"{HOME}/x", "home/anna/y", "'home/anna/y'"),
        (f"{HOME}/x", "it's home/ann", '"it\'s home/ann"'),
        (f"{HOME}/output/job-1/x", "ann/job-1", f"{HOME}/output/job-1"),
        ("/pfs/public/x", "public/y z", "/pfs/local/public/y z"),
    ],
)
def test_only_what_a_store_calls_the_place_is_named_anew(path: str, quoted: str, named: str) -> None:
    with pytest.raises(FullError) as refused, in_its_words(names.locate(path, ["local"])):
        raise FullError(f"no space for {quoted!r}: free some")
    assert refused.value.message == f"no space for {named}: free some"
