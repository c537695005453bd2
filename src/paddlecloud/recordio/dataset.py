"""Provides convert, split and cluster_files_reader as `paddle.v2.dataset.common` had them.

Their off-by-one errors are kept, so that old pipelines produce the same files: the first file or block has one item too
many. `exact=True` corrects that. Their default, pickle, can run code when read: see codecs.py.
"""

from __future__ import annotations

import glob
import logging
import os
import pickle
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, BinaryIO

from paddlecloud.recordio import codecs, uci_housing
from paddlecloud.recordio.codecs import Codec
from paddlecloud.recordio.compressors import Compressor
from paddlecloud.recordio.stream import CHUNK_BYTES, Reader, Writer

__all__ = ["cluster_files_reader", "cluster_reader_recordio", "convert", "split", "uci_housing"]

SHUFFLED = 10_000  # as in PaddlePaddle Cloud's version of `convert`; other versions had 1,000
_log = logging.getLogger(__name__)

ItemReader = Callable[[], Iterable[Any]]
Dumper = Callable[[Any, BinaryIO], object]
Loader = Callable[[BinaryIO], Any]


def convert(
    output_path: str | os.PathLike[str],
    reader: ItemReader,
    num_shards: int | None = None,
    name_prefix: str = "part",
    max_lines_to_shuffle: int = SHUFFLED,
    *,
    line_count: int | None = None,
    codec: Codec = codecs.PICKLE,
    compressor: Compressor = Compressor.SNAPPY,
    chunk_bytes: int = CHUNK_BYTES,
    seed: int | None = None,
    exact: bool = False,
) -> list[str]:
    """Write the items of `reader()` to record files; return their paths. Each file appears only when complete.

    With `num_shards`, as in PaddlePaddle Cloud: `prefix-00000-of-00009` to `prefix-00009-of-00009` for 10 (the second
    number is the last file's). Items are shuffled in blocks of `max_lines_to_shuffle`, and each block is distributed
    one by one. With `line_count`, as in later versions: `prefix-00000`, `prefix-00001`, … in order, each with that many
    items, and a last file even if it is empty.
    """
    if (num_shards is None) == (line_count is None):
        raise ValueError("convert needs either num_shards or line_count")
    _require_callable("reader", reader)
    _require_positive(num_shards=num_shards, line_count=line_count, max_lines_to_shuffle=max_lines_to_shuffle)
    os.makedirs(output_path, exist_ok=True)

    def path(number: int) -> str:
        shards = "" if num_shards is None else f"-of-{num_shards - 1:05d}"
        return os.path.join(output_path, f"{name_prefix}-{number:05d}{shards}")

    def writer(number: int) -> AbstractContextManager[Writer]:
        return _draft_writer(path(number), compressor, chunk_bytes)

    if num_shards is not None:
        blocks = _blocks(reader(), max_lines_to_shuffle, exact=exact)
        _distribute(blocks, [writer(number) for number in range(num_shards)], codec, random.Random(seed))
        return [path(number) for number in range(num_shards)]
    paths = []
    for number, block in enumerate(_blocks(reader(), line_count or 1, exact=exact, always_rest=not exact)):
        with writer(number) as file:
            file.write_all(map(codec.dumps, block))
        paths.append(path(number))
    return paths


def split(
    reader: ItemReader,
    line_count: int,
    suffix: str = "%05d.pickle",
    dumper: Dumper = pickle.dump,
    *,
    exact: bool = False,
) -> list[str]:
    """Write the items of `reader()` to files of `line_count` items with `dumper(items, file)`; return their paths.

    The first file has `line_count + 1` items, as in the original, unless `exact`. `suffix` is the path, with a
    placeholder for the number.
    """
    _require_callable("reader", reader)
    _require_callable("dumper", dumper)
    _require_positive(line_count=line_count)
    paths = []
    for number, block in enumerate(_blocks(reader(), line_count, exact=exact)):
        path = _numbered(suffix, number)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with _draft_of(path) as draft, open(draft, "wb") as file:
            dumper(block, file)
        paths.append(path)
    return paths


def cluster_files_reader(
    files_pattern: str,
    trainer_count: int,
    trainer_id: int | None = None,
    loader: Loader = codecs.load_pickle,
    *,
    train_id: int | None = None,
) -> ItemReader:
    """Return a reader of one trainer's files: the n-th sorted file goes to trainer n % trainer_count.

    `loader(file)` returns a file's items. The default runs any code in a file: read only what you or your own job
    wrote, or pass another loader, such as `codecs.load_json`. `train_id` is PaddlePaddle Cloud's name for `trainer_id`.
    """
    own = _own_id(trainer_count, trainer_id, train_id)
    _require_callable("loader", loader)

    def reader() -> Iterator[Any]:
        mine = sorted(glob.glob(files_pattern))[own::trainer_count]
        if not mine:
            _log.warning("no file matching %s belongs to trainer %d of %d", files_pattern, own, trainer_count)
        for path in mine:
            _log.info("append file: %s", path)
            with open(path, "rb") as file:
                yield from loader(file)

    return reader


def cluster_reader_recordio(
    paths: str,
    trainer_id: int | None = None,
    trainer_count: int = 1,
    *,
    train_id: int | None = None,
    codec: Codec = codecs.PICKLE,
) -> ItemReader:
    """Return a reader of one trainer's record files; pass `codec` unless they are pickles of your own."""
    own = _own_id(trainer_count, trainer_id, train_id)
    return lambda: map(codec.loads, Reader(paths, trainer_id=own, trainer_count=trainer_count))


def _distribute(
    blocks: Iterable[list[Any]], writers: list[AbstractContextManager[Writer]], codec: Codec, mixer: random.Random
) -> None:
    with ExitStack() as stack:
        shards = [stack.enter_context(writer) for writer in writers]
        for block in blocks:
            mixer.shuffle(block)
            for number, item in enumerate(block):
                shards[number % len(shards)].write(codec.dumps(item))


def _own_id(trainer_count: int, trainer_id: int | None, train_id: int | None) -> int:
    given = [number for number in (trainer_id, train_id) if number is not None]
    if len(given) != 1:
        raise TypeError("pass trainer_id exactly once (train_id is its old name)")
    if not 0 <= given[0] < trainer_count:
        raise ValueError(f"trainer_id is {given[0]} and must be 0 to {trainer_count - 1}, less than trainer_count")
    return given[0]


def _blocks(items: Iterable[Any], count: int, *, exact: bool, always_rest: bool = False) -> Iterator[list[Any]]:
    """Split items into lists of `count`. The originals check after adding item `count`, so their first has one more."""
    block: list[Any] = []
    for number, item in enumerate(items, 1 if exact else 0):
        block.append(item)
        if number >= count and number % count == 0:
            yield block
            block = []
    if block or always_rest:
        yield block


@contextmanager
def _draft_writer(path: str, compressor: Compressor, chunk_bytes: int) -> Iterator[Writer]:
    with _draft_of(path) as draft, Writer(draft, compressor=compressor, chunk_bytes=chunk_bytes) as writer:
        yield writer


@contextmanager
def _draft_of(path: str) -> Iterator[str]:
    """Yield the path of a draft, hidden from patterns, which replaces `path` once it is written."""
    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{name}.draft")
    try:
        yield draft
        os.replace(draft, path)
    except BaseException:
        if os.path.exists(draft):
            os.unlink(draft)
        raise


def _numbered(suffix: str, number: int) -> str:
    try:
        return suffix % number
    except (TypeError, ValueError):
        raise ValueError(
            f"suffix is {suffix!r} and needs one placeholder for the number, such as train-%05d.pickle"
        ) from None


def _require_callable(name: str, given: object) -> None:
    if not callable(given):
        raise TypeError(f"{name} should be callable.")


def _require_positive(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise ValueError(f"{name} is {number} and must be 1 or more")
