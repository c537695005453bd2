"""The verb dataset: files of records are made, split, counted and looked into, on this machine; no server is asked.

Nothing here unpickles what could run code: `head` shows plain values of a pickle, and names what it will not load.
"""

from __future__ import annotations

import os
import pickle
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from paddlecloud.cli import items, shell, show
from paddlecloud.cli.exits import OTHER
from paddlecloud.cli.parser import Parser, Setup, add_output, count, path
from paddlecloud.cli.progress import progress
from paddlecloud.cli.show import Column
from paddlecloud.model.errors import ConfigError, InvalidError, PaddleCloudError
from paddlecloud.model.units import format_size, parse_size

_CODECS = ("json", "msgpack", "numpy", "text", "pickle")
_COMPRESSORS = ("snappy", "gzip", "none")
_SHOWN_LETTERS = 200
_SHOWN_BYTES = 48
_PICKLED = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1))
_RUNS_CODE = "these files are pickles, which run code in whoever reads them: load only what you or your own job wrote"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFile:
    """What `dataset info` tells of one file."""

    path: str
    records: int
    chunks: int
    compressors: list[str]
    size_bytes: int
    is_checked: bool
    faults: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What `dataset split` tells of one file."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What `dataset head` tells of one record."""

    number: int
    size_bytes: int
    kind: str
    text: str


def dataset(parser: Parser) -> None:
    parser.branch(
        {
            "convert": ("make files of records, one share for each trainer", _convert_setup),
            "split": ("cut items into files of so many each", _split_setup),
            "info": ("records, chunks and faults of files of records", _info_setup),
            "head": ("the first records of files, as text", _head_setup),
        }
    )


VERBS: Mapping[str, Setup] = {"dataset": dataset}


def _convert_setup(parser: Parser) -> None:
    _add_source(parser)
    parser.add_argument("--to", required=True, type=path, metavar="FOLDER", help="where the files go")
    parser.add_argument("--prefix", default="part", metavar="NAME", help="how their names begin (part)")
    parser.add_argument("--shards", type=count, metavar="N", help="how many files: PREFIX-00000-of-00009 (10)")
    parser.add_argument(
        "--lines", type=count, metavar="N", help="instead: so many items in each, in order: PREFIX-00000"
    )
    parser.add_argument("--shuffle", type=count, metavar="N", help="items that are shuffled together (10000)")
    parser.add_argument("--seed", type=int, metavar="N", help="the same number shuffles the same way")
    parser.add_argument("--codec", choices=_CODECS, help="how an item becomes bytes (json; text for lines and records)")
    parser.add_argument("--compressor", choices=_COMPRESSORS, default="snappy", help="snappy, gzip or none")
    parser.add_argument("--chunk", default="32Mi", metavar="SIZE", help="of records before compression (32Mi)")
    parser.set_defaults(run=_convert)


def _split_setup(parser: Parser) -> None:
    _add_source(parser)
    parser.add_argument("--to", required=True, type=path, metavar="NAME", help="the files, such as train-%%05d.json")
    parser.add_argument("--lines", type=count, required=True, metavar="N", help="how many items in each")
    parser.add_argument(
        "--codec", choices=("json", "pickle"), default="json", help="what is in a file: a list, as this"
    )
    parser.set_defaults(run=_split)


def _info_setup(parser: Parser) -> None:
    parser.add_argument("files", nargs="+", type=path, help="files of records, or patterns")
    parser.add_argument("--check", action="store_true", help="read everything, and tell what is damaged")
    add_output(parser)
    parser.set_defaults(run=_info)


def _head_setup(parser: Parser) -> None:
    parser.add_argument("files", nargs="+", type=path, help="files of records, or patterns")
    parser.add_argument("-n", "--count", type=count, default=10, metavar="N", help="how many records (10)")
    add_output(parser)
    parser.set_defaults(run=_head)


def _add_source(parser: Parser) -> None:
    parser.add_argument("files", nargs="*", type=path, help="what to read, or patterns; or use --reader")
    parser.add_argument("--format", choices=items.FORMATS, help="what the files are (by their names, else text)")
    parser.add_argument("--reader", metavar="FILE:FUNCTION", help="a Python function of yours that gives the items")
    parser.add_argument("--exact", action="store_true", help="no file one larger, which PaddlePaddle's own makes first")
    add_output(parser)


def _convert(args: Namespace) -> None:
    from paddlecloud.recordio import Compressor
    from paddlecloud.recordio.codecs import CODECS
    from paddlecloud.recordio.dataset import SHUFFLED, convert

    if args.shards is not None and args.lines is not None:
        raise InvalidError("--shards and --lines are two ways to cut: give one of them", field="shards")
    codec = CODECS[args.codec or _usual_codec(args)]
    with _in_words(), _counted_items(args, "converting") as read:
        made = convert(
            args.to,
            read,
            None if args.lines is not None else 10 if args.shards is None else args.shards,
            args.prefix,
            SHUFFLED if args.shuffle is None else args.shuffle,
            line_count=args.lines,
            codec=codec,
            compressor=Compressor[args.compressor.upper()],
            chunk_bytes=parse_size(args.chunk, "chunk"),
            seed=args.seed,
            exact=args.exact,
        )
        files = [_look(file, is_checked=False) for file in made]
    show.many(files, _file_columns(), args.output, lambda file: file.path)
    shell.talk(f"{show.counted(read.count, 'item')} in {show.counted(len(made), 'file')}")
    if codec.name == "pickle":
        shell.talk(_RUNS_CODE)


def _split(args: Namespace) -> None:
    from paddlecloud.recordio.codecs import dump_json
    from paddlecloud.recordio.dataset import split

    with _in_words(), _counted_items(args, "splitting") as read:
        dumper = dump_json if args.codec == "json" else pickle.dump
        made = split(read, args.lines, args.to, dumper, exact=args.exact)
        files = [Piece(path=file, size_bytes=os.path.getsize(file)) for file in made]
    columns: list[Column[Piece]] = [
        Column("FILE", lambda piece: piece.path),
        Column("SIZE", lambda piece: format_size(piece.size_bytes)),
    ]
    show.many(files, columns, args.output, lambda piece: piece.path)
    shell.talk(f"{show.counted(read.count, 'item')} in {show.counted(len(made), 'file')}")
    if args.codec == "pickle":
        shell.talk(_RUNS_CODE)


def _info(args: Namespace) -> int:
    from paddlecloud.recordio.stream import found

    with _in_words():
        files = [_look(file, is_checked=args.check) for file in found(args.files)]
    show.many(files, _file_columns(), args.output, lambda file: file.path)
    for file in files:
        for fault in file.faults:
            shell.talk(fault)
    return OTHER if any(file.faults for file in files) else 0


def _look(file: str, *, is_checked: bool) -> RecordFile:
    """What its headers tell; with `is_checked` also what is damaged in it."""
    from paddlecloud.recordio import Compressor, CorruptError
    from paddlecloud.recordio.scan import ChunkFile, Place

    faults: list[str] = []
    places: list[Place] = []
    with ChunkFile(file) as opened:
        try:
            places.extend(opened.places())
        except CorruptError as error:
            faults.append(str(error))
        if is_checked:
            faults = _faults(file)
    return RecordFile(
        path=file,
        records=sum(place.header.records for place in places),
        chunks=len(places),
        compressors=sorted({Compressor(place.header.compressor).name.lower() for place in places}),
        size_bytes=os.path.getsize(file),
        is_checked=is_checked,
        faults=faults,
    )


def _faults(file: str) -> list[str]:
    from paddlecloud.recordio import Reader, Skipped

    faults: list[str] = []

    def note(skipped: Skipped) -> None:
        faults.append(f"{skipped.error}; {show.counted(skipped.skipped_bytes, 'byte')} cannot be read")

    for _ in Reader([file], report=note):
        pass
    return faults


def _file_columns() -> list[Column[RecordFile]]:
    return [
        Column("FILE", lambda file: file.path),
        Column("RECORDS", lambda file: str(file.records)),
        Column("CHUNKS", lambda file: str(file.chunks), drop=1),
        Column("COMPRESSOR", lambda file: ",".join(file.compressors), drop=2),
        Column("SIZE", lambda file: format_size(file.size_bytes)),
        Column("BYTES", lambda file: str(file.size_bytes), wide=True),
        Column("STATE", lambda file: "damaged" if file.faults else "checked" if file.is_checked else ""),
    ]


def _head(args: Namespace) -> None:
    from paddlecloud.recordio import Reader

    with _in_words():
        rows = [shown(number, record) for number, record in enumerate(islice(Reader(args.files), args.count))]
    columns: list[Column[Shown]] = [
        Column("RECORD", lambda row: str(row.number)),
        Column("BYTES", lambda row: str(row.size_bytes)),
        Column("KIND", lambda row: row.kind),
        Column("CONTENT", lambda row: row.text),
    ]
    show.many(rows, columns, args.output, lambda row: row.text, "there is no record in it")


def shown(number: int, record: bytes) -> Shown:
    """A record as a person can read it; nothing of it is run."""
    kind, text = _text_of(record)
    cut = text if len(text) <= _SHOWN_LETTERS else f"{text[:_SHOWN_LETTERS]}…"
    return Shown(number=number, size_bytes=len(record), kind=kind, text=cut)


def _text_of(record: bytes) -> tuple[str, str]:
    from paddlecloud.recordio.codecs import PLAIN_PICKLE, UnsafeError

    if record.startswith(_PICKLED):
        try:
            return "pickle", repr(PLAIN_PICKLE.loads(record))
        except UnsafeError as error:
            return "pickle", f"not loaded: {error}"
        except Exception:  # a bent pickle may raise anything; then it is bytes
            pass
    try:
        text = record.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and (text or not record):
        return "text", text
    more = "…" if len(record) > _SHOWN_BYTES else ""
    return "bytes", record[:_SHOWN_BYTES].hex(" ") + more


class _CountedItems:
    """A reader for convert and split that knows how many items it gave."""

    def __init__(self, read: Callable[[], Iterable[Any]]) -> None:
        self._read = read
        self.count = 0

    def __call__(self) -> Iterator[Any]:
        for item in self._read():
            self.count += 1
            yield item


@contextmanager
def _counted_items(args: Namespace, what: str) -> Iterator[_CountedItems]:
    from paddlecloud.recordio.stream import found

    if bool(args.files) == bool(args.reader):
        raise InvalidError("name the files to read, or --reader FILE:FUNCTION, and not both", field="files")
    if args.reader:
        yield _CountedItems(items.of_function(args.reader))
        return
    files = found(args.files)
    with progress(what, again=None) as told:
        yield _CountedItems(lambda: items.of_files(files, _form(args), told))


def _form(args: Namespace) -> str:
    return args.format or items.guessed(args.files)


def _usual_codec(args: Namespace) -> str:
    return "text" if not args.reader and _form(args) in ("text", "recordio") else "json"


@contextmanager
def _in_words() -> Iterator[None]:
    """The data library's errors as the command's own, with their exit codes."""
    from paddlecloud.recordio import CorruptError, MissingPartError

    try:
        yield
    except CorruptError as error:
        raise PaddleCloudError(f"{error}; `paddlecloud dataset info --check` tells all that is damaged") from None
    except MissingPartError as error:
        raise ConfigError(str(error)) from None
    except (TypeError, ValueError) as error:
        raise InvalidError(str(error)) from error
