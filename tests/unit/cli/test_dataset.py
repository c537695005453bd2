"""`paddlecloud dataset`: files of records made, split, counted and looked into, without a server."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from paddlecloud.cli.dataset import shown
from paddlecloud.recordio import Compressor, Reader, Writer
from tests.unit.cli.command import Command


@pytest.fixture
def typed(alone: Command) -> Command:
    (alone.folder / "lines.txt").write_text("".join(f"line {number}\n" for number in range(25)))
    return alone


def test_lines_become_shards_that_trainers_share(typed: Command) -> None:
    ran = typed.type(
        "dataset", "convert", "lines.txt", "--to", "out", "--shards", "4", "--prefix", "train", "-o", "name"
    )
    assert ran.stdout.splitlines() == [f"out/train-{number:05d}-of-00003" for number in range(4)]
    assert "25 items in 4 files" in ran.stderr
    records = list(Reader(f"{typed.folder}/out/train-*"))
    assert sorted(records) == sorted(f"line {number}".encode() for number in range(25))


@pytest.mark.parametrize(
    ("name", "content", "items"),
    [
        ("a.jsonl", '{"x": 1}\n\n[2, "b"]\n', [{"x": 1}, [2, "b"]]),
        ("a.csv", 'name,1,2.5\r\n"a, b",-3,x\n', [["name", 1, 2.5], ["a, b", -3, "x"]]),
        ("a.txt", "one\r\ntwo", ["one", "two"]),
    ],
)
def test_items_keep_their_order_and_types(alone: Command, name: str, content: str, items: list[object]) -> None:
    (alone.folder / name).write_bytes(content.encode())
    alone.type("dataset", "convert", name, "--to", "out", "--lines", "100", "--codec", "json", "--exact")
    assert [json.loads(record) for record in Reader(alone.folder / "out/part-00000")] == items


def test_a_function_of_ones_own_gives_the_items(alone: Command) -> None:
    (alone.folder / "mine.py").write_text(
        "def items():\n    yield from range(3)\n\ndef train():\n    return items\n\nfailing = 5\n"
    )
    for function in ("items", "train"):
        alone.type("dataset", "split", "--reader", f"mine.py:{function}", "--lines", "2", "--to", "cut/%05d.json")
        assert json.loads((alone.folder / "cut/00000.json").read_text()) == [0, 1, 2]
    refused = alone.type("dataset", "split", "--reader", "mine.py:other", "--lines", "2", "--to", "%d", code=2)
    assert "mine.py has no function other" in refused.stderr


def test_records_are_cut_anew_as_they_are(typed: Command) -> None:
    typed.type("dataset", "convert", "lines.txt", "--to", "a", "--lines", "30", "--compressor", "none")
    typed.type(
        "dataset", "convert", "a/part-00000", "--format", "recordio", "--to", "b", "--lines", "30", "--chunk", "64"
    )
    assert list(Reader(typed.folder / "b/part-00000")) == list(Reader(typed.folder / "a/part-00000"))
    (told,) = json.loads(typed.out("dataset", "info", "b/part-00000", "--json"))
    assert (told["records"], told["compressors"], told["faults"]) == (25, ["snappy"], [])
    assert told["chunks"] > 2


def test_split_says_what_pickles_do(typed: Command) -> None:
    ran = typed.type(
        "dataset", "split", "lines.txt", "--lines", "10", "--to", "p-%05d", "--codec", "pickle", "-o", "name"
    )
    assert ran.stdout.split() == ["p-00000", "p-00001", "p-00002"]
    assert "run code" in ran.stderr
    assert len(pickle.loads((typed.folder / "p-00000").read_bytes())) == 11


def test_info_finds_what_is_damaged(typed: Command) -> None:
    typed.type(
        "dataset", "convert", "lines.txt", "--to", "out", "--lines", "100", "--chunk", "40", "--compressor", "none"
    )
    file = typed.folder / "out" / "part-00000"
    content = bytearray(file.read_bytes())
    content[30] ^= 1
    file.write_bytes(content)
    typed.type("dataset", "info", "out/part-00000")
    ran = typed.type("dataset", "info", "--check", "out/part-00000", code=1)
    assert "damaged" in ran.stdout
    assert "chunk 0 at byte 0: its checksum is" in ran.stderr
    assert "cannot be read" in ran.stderr
    refused = typed.type("dataset", "head", "out/part-00000", code=1)
    assert "dataset info --check" in refused.stderr


def test_head_shows_records_as_people_read_them(typed: Command) -> None:
    with Writer(typed.folder / "r", compressor=Compressor.NONE) as writer:
        writer.write_all([b"caf\xc3\xa9", b"", bytes([0, 255]), pickle.dumps([1, "two"])])
    assert [line.split(None, 3) for line in typed.out("dataset", "head", "r").splitlines()] == [
        ["RECORD", "BYTES", "KIND", "CONTENT"],
        ["0", "5", "text", "café"],
        ["1", "0", "text"],
        ["2", "2", "bytes", "00 ff"],
        ["3", str(len(pickle.dumps([1, "two"]))), "pickle", "[1, 'two']"],
    ]
    assert typed.out("dataset", "head", "r", "-n", "1", "-o", "name") == "café\n"


def test_head_runs_no_code_of_a_record() -> None:
    told = shown(0, pickle.dumps(Path("/etc")))
    assert told.kind == "pickle"
    assert "not loaded: this pickle imports pathlib" in told.text
    assert shown(0, b"\x80\x04nonsense").kind == "bytes"
    assert len(shown(0, b"x" * 10_000).text) < 300


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["convert", "--to", "x"], 2, "name the files to read, or --reader"),
        (["convert", "lines.txt", "--to", "x", "--shards", "2", "--lines", "3"], 2, "two ways to cut"),
        (["convert", "lines.txt", "--to", "x", "--shards", "0"], 2, "num_shards is 0"),
        (["convert", "no-such", "--to", "x"], 2, "no such file"),
        (["convert", "lines.txt", "--format", "jsonl", "--to", "x"], 2, "lines.txt: line 1 is no JSON"),
        (["convert", "lines.txt", "--format", "uci_housing.train", "--to", "x"], 2, "is not housing.data"),
        (["split", "lines.txt", "--lines", "5", "--to", "same"], 2, "needs one placeholder for the number"),
        (["head", "lines.txt"], 1, "this is not a RecordIO chunk"),
        (["shuffle"], 2, "is not known"),
    ],
)
def test_mistakes_are_told_in_words(typed: Command, words: list[str], code: int, told: str) -> None:
    assert told in typed.type("dataset", *words, code=code).stderr
