"""What a pass leaves on disk: nothing half, nothing unpickled, and the same classes on any number of trainers."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from tests.unit.examples.plsc import checkpoint, shards

CLASSES, EMBEDDING = 11, 4
CENTRES = np.arange(CLASSES * EMBEDDING, dtype=np.float32).reshape(CLASSES, EMBEDDING)


def save(folder: Path, number: int, trainers: int, *, classes: int = CLASSES, ranks: range | None = None) -> None:
    for rank in ranks or range(trainers):
        shard = shards.shard(classes, rank, trainers)
        name = checkpoint.centres_name(rank)
        own = CENTRES[shard.first : shard.last].T
        variables = {name: own, name + checkpoint.VELOCITY: -own}
        if rank == 0:
            variables[checkpoint.COUNTER] = np.array([number * 10])
        parts = {"classes": classes, "rank": rank, "trainers": trainers}
        checkpoint.save(str(folder / f"rank-{rank}"), number, variables, **parts)


@pytest.mark.parametrize("before", [1, 2, 3, 5])
@pytest.mark.parametrize("now", [1, 2, 3, 4])
def test_classes_go_to_another_number_of_trainers(tmp_path: Path, before: int, now: int) -> None:
    save(tmp_path, 0, before)
    origin = checkpoint.origin(str(tmp_path))
    found = [checkpoint.centres(origin, shards.shard(CLASSES, rank, now)) for rank in range(now)]
    np.testing.assert_array_equal(np.concatenate([values for values, _ in found]), CENTRES)
    np.testing.assert_array_equal(np.concatenate([velocity for _, velocity in found]), -CENTRES)
    assert checkpoint.shared(origin, [checkpoint.COUNTER])[checkpoint.COUNTER].tolist() == [0]


def test_a_pass_that_one_trainer_did_not_complete_is_not_gone_on_from(tmp_path: Path) -> None:
    save(tmp_path, 0, 2)
    save(tmp_path, 1, 2, ranks=range(1))
    assert checkpoint.origin(str(tmp_path)).number == 0


@pytest.mark.parametrize("harm", ["no mark", "cut", "missing", "no json"])
def test_a_pass_that_is_not_as_its_mark_says_does_not_count(tmp_path: Path, harm: str) -> None:
    save(tmp_path, 0, 1)
    save(tmp_path, 1, 1)
    folder = tmp_path / "rank-0" / "1"
    centres = folder / checkpoint.centres_name(0)
    if harm == "no mark":
        (folder / checkpoint.MARK).unlink()
    elif harm == "cut":
        centres.write_bytes(centres.read_bytes()[:-1])
    elif harm == "missing":
        centres.unlink()
    else:
        (folder / checkpoint.MARK).write_text("{")
    assert set(checkpoint.complete(str(tmp_path / "rank-0"))) == {0}
    assert checkpoint.origin(str(tmp_path)).number == 0


def test_a_pass_is_written_anew_over_what_a_crash_left(tmp_path: Path) -> None:
    left = tmp_path / "rank-0" / "0"
    left.mkdir(parents=True)
    (left / "half").write_text("a variable")
    save(tmp_path, 0, 1)
    assert not (left / "half").exists()


def test_the_mark_is_the_last_that_is_written(tmp_path: Path) -> None:
    """What cannot be written stops it before."""
    variables = {checkpoint.centres_name(0): CENTRES.T, "text": np.array(["no tensor"])}
    with pytest.raises(checkpoint.tensor_file.TensorFileError):
        checkpoint.save(str(tmp_path), 0, variables, classes=CLASSES, rank=0, trainers=1)
    assert (tmp_path / "0" / checkpoint.centres_name(0)).exists()
    assert checkpoint.complete(str(tmp_path)) == {}


def test_meta_is_written_as_plsc_had_it_and_never_unpickled(tmp_path: Path) -> None:
    save(tmp_path, 0, 2)
    meta = tmp_path / "rank-0" / "0" / "meta.pickle"
    assert pickle.loads(meta.read_bytes()) == {"pretrain_nranks": 2, "emb_dim": EMBEDDING, "num_classes": CLASSES}
    meta.write_bytes(b"!" * meta.stat().st_size)
    assert checkpoint.origin(str(tmp_path)).number == 0
    assert not (tmp_path / "rank-1" / "0" / "meta.pickle").exists()


@pytest.mark.parametrize("above", ["", "job-1f2e", "results/job-1f2e", "results/output/job-1f2e"])
def test_results_are_found_in_the_folder_that_was_brought(tmp_path: Path, above: str) -> None:
    save(tmp_path / above, 3, 2)
    named = tmp_path / above.partition("/")[0] if "/" in above else tmp_path
    origin = checkpoint.origin(str(named))
    assert origin.number == 3
    assert [Path(folder).name for folder in origin.folders] == ["rank-0", "rank-1"]


def test_a_folder_without_a_complete_pass_is_told(tmp_path: Path) -> None:
    save(tmp_path, 0, 3, ranks=range(2))
    with pytest.raises(SystemExit, match="no pass that all of its trainers completed"):
        checkpoint.origin(str(tmp_path))
    with pytest.raises(SystemExit, match="nowhere"):
        checkpoint.origin(str(tmp_path / "nowhere"))
