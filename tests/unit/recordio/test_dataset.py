"""convert, split and cluster_files_reader: the originals' names and distribution, slips included, and without them."""

from __future__ import annotations

import json
import marshal
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.recordio import Compressor, Reader, codecs, dataset
from paddlecloud.recordio.dataset import cluster_files_reader, cluster_reader_recordio, convert, split


def numbers(count: int) -> Callable[[], Iterable[int]]:
    return lambda: iter(range(count))


@pytest.mark.parametrize(
    ("count", "exact", "sizes"),
    [
        (1201, False, [501, 500, 200]),
        (1000, False, [501, 499]),
        (1001, False, [501, 500]),
        (500, False, [500]),
        (0, False, []),
        (1201, True, [500, 500, 201]),
        (1000, True, [500, 500]),
    ],
)
def test_split_gives_one_more_to_the_first_file_unless_it_is_to_be_exact(
    tmp_path: Path, count: int, exact: bool, sizes: list[int]
) -> None:
    files = split(numbers(count), 500, str(tmp_path / "train-%05d.pickle"), exact=exact)
    assert files == [str(tmp_path / f"train-{number:05d}.pickle") for number in range(len(sizes))]
    held = [pickle.loads(Path(file).read_bytes()) for file in files]
    assert [len(items) for items in held] == sizes
    assert [item for items in held for item in items] == list(range(count))


def test_split_takes_a_dumper_as_seed_001_shows(tmp_path: Path) -> None:
    (file,) = split(reader=numbers(3), line_count=5, suffix=f"{tmp_path}/new/%05d.marshal", dumper=marshal.dump)
    with open(file, "rb") as opened:
        assert marshal.load(opened) == [0, 1, 2]


def test_shards_are_named_and_dealt_as_seed_001_shows(tmp_path: Path) -> None:
    files = convert(output_path=tmp_path, reader=numbers(100), num_shards=10, name_prefix="uci_housing_train")
    assert [Path(file).name for file in files] == [f"uci_housing_train-{n:05d}-of-00009" for n in range(10)]
    assert sorted(path.name for path in tmp_path.iterdir()) == [Path(file).name for file in files]
    held = [[pickle.loads(record) for record in Reader(file)] for file in files]
    assert [len(items) for items in held] == [10] * 10
    assert sorted(item for items in held for item in items) == list(range(100))
    assert [item for items in held for item in items[:1]] != list(range(10)), "they are shuffled"


def test_every_block_is_dealt_from_the_first_shard_on_and_the_first_has_one_more(tmp_path: Path) -> None:
    for exact, blocks in ((False, [range(5), range(5, 9)]), (True, [range(4), range(4, 8), range(8, 9)])):
        files = convert(tmp_path, numbers(9), 3, "x", 4, codec=codecs.JSON, seed=1, exact=exact)
        held = [[int(record) for record in Reader(file)] for file in files]
        for block in blocks:
            shares = [[held[shard].pop(0) for _ in range(len(block[shard::3]))] for shard in range(3)]
            assert sorted(item for share in shares for item in share) == list(block)
        assert held == [[], [], []]


@pytest.mark.parametrize(
    ("count", "exact", "sizes"),
    [(12, False, [6, 5, 1]), (11, False, [6, 5, 0]), (0, False, [0]), (12, True, [5, 5, 2]), (10, True, [5, 5])],
)
def test_the_later_convert_keeps_order_and_ends_with_a_file_even_if_it_is_empty(
    tmp_path: Path, count: int, exact: bool, sizes: list[int]
) -> None:
    files = convert(tmp_path, numbers(count), line_count=5, name_prefix="part", codec=codecs.JSON, exact=exact)
    assert [Path(file).name for file in files] == [f"part-{number:05d}" for number in range(len(sizes))]
    assert [len(list(Reader(file))) for file in files] == sizes
    assert [int(record) for file in files for record in Reader(file)] == list(range(count))


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    made = [convert(tmp_path / name, numbers(50), 2, "x", seed=7, compressor=Compressor.NONE) for name in "ab"]
    assert [Path(file).read_bytes() for file in made[0]] == [Path(file).read_bytes() for file in made[1]]


def test_a_reader_that_fails_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "part-00000-of-00001").write_text("of an earlier run")

    def failing() -> Iterable[int]:
        yield 1
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        convert(tmp_path, failing, 2)
    with pytest.raises(RuntimeError, match="no more"):
        split(failing, 1, f"{tmp_path}/part-%05d")
    assert [path.name for path in tmp_path.iterdir()] == ["part-00000-of-00001"]
    assert (tmp_path / "part-00000-of-00001").read_text() == "of an earlier run"


@pytest.mark.parametrize("name", ["trainer_id", "train_id"])
def test_trainers_read_every_file_once_under_either_name(tmp_path: Path, name: str) -> None:
    split(numbers(100), 9, f"{tmp_path}/train-%05d.pickle")
    pattern = f"{tmp_path}/train-*.pickle"
    own: list[dict[str, Any]] = [{name: trainer} for trainer in range(3)]
    shares = [list(cluster_files_reader(pattern, trainer_count=3, **named)()) for named in own]
    assert shares[1][:9] == list(range(10, 19)), "the second file is the second trainer's"
    assert sorted(item for share in shares for item in share) == list(range(100))


def test_a_loader_of_ones_own_reads_what_its_dumper_wrote(tmp_path: Path) -> None:
    split(numbers(3), 5, f"{tmp_path}/%05d.json", codecs.dump_json)
    assert list(cluster_files_reader(f"{tmp_path}/*.json", 1, 0, codecs.load_json)()) == [0, 1, 2]


def test_pickles_of_python_2_are_read_with_their_loader(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"(lp0\nS'\\xe9'\np1\na.")
    assert list(cluster_files_reader(f"{tmp_path}/old", 1, 0, codecs.load_python2)()) == ["\xe9"]


def test_trainers_read_the_items_of_their_shards(tmp_path: Path) -> None:
    convert(tmp_path, numbers(20), 4, "x")
    shares = [list(cluster_reader_recordio(f"{tmp_path}/x-*", trainer, 2)()) for trainer in range(2)]
    assert [len(share) for share in shares] == [10, 10]
    assert sorted(shares[0] + shares[1]) == list(range(20))


def test_a_trainer_without_a_file_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    split(numbers(3), 5, f"{tmp_path}/%05d.pickle")
    assert list(cluster_files_reader(f"{tmp_path}/*", 2, 1)()) == []
    assert "belongs to trainer 1 of 2" in caplog.text


def test_mistakes_are_told_in_words(tmp_path: Path) -> None:
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: convert(tmp_path, numbers(1)), "either num_shards or line_count"),
        (lambda: convert(tmp_path, numbers(1), 0), "num_shards is 0 and must be 1 or more"),
        (lambda: convert(tmp_path, 5, 1), "reader should be callable"),  # type: ignore[arg-type]
        (lambda: split(numbers(1), 5, "same-name"), "needs one placeholder for the number"),
        (lambda: split(numbers(1), 5, dumper=5), "dumper should be callable"),  # type: ignore[arg-type]
        (lambda: cluster_files_reader("x", 2, 0, 5), "loader should be callable"),  # type: ignore[arg-type]
        (lambda: cluster_files_reader("x", 2), "pass trainer_id exactly once"),
        (lambda: cluster_files_reader("x", 2, 0, train_id=0), "pass trainer_id exactly once"),
        (lambda: cluster_files_reader("x", 2, 2), "must be 0 to 1"),
    ]
    for call, told in wrong:
        with pytest.raises((TypeError, ValueError), match=told):
            call()


def test_house_prices_are_scaled_and_cut_as_in_the_original(tmp_path: Path) -> None:
    rows = [[row * 10 + column for column in range(13)] + [float(row)] for row in range(10)]
    file = tmp_path / "housing.data"
    file.write_text("\n".join(" ".join(map(str, row)) for row in rows))
    train = list(dataset.uci_housing.train(file)())
    test = list(dataset.uci_housing.test(file)())
    assert (len(train), len(test)) == (8, 2)
    assert train[0][0] == pytest.approx([-0.5] * 13)
    assert test[-1][0] == pytest.approx([0.5] * 13)
    assert (train[0][1], test[-1][1]) == ([0.0], [9.0])
    assert json.loads(codecs.JSON.dumps(train[0]))[1] == [0.0]


@pytest.mark.parametrize("text", ["", "1 2 3", "a b c"])
def test_another_file_is_not_taken_for_house_prices(tmp_path: Path, text: str) -> None:
    (tmp_path / "other").write_text(text)
    with pytest.raises(ValueError, match="is not housing.data"):
        list(dataset.uci_housing.train(tmp_path / "other")())
