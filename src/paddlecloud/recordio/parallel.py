"""Reads records with several processes, each of which reads, checks and decodes chunks.

Results come in the order of the files. At most two chunks per process are read ahead, so memory is bounded.
If a process is killed, the consumer gets an error instead of waiting forever.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from itertools import chain, islice
from typing import TypeVar

from paddlecloud.recordio.scan import LIMIT_BYTES, ChunkFile, Place
from paddlecloud.recordio.stream import found

T = TypeVar("T")
Made = Callable[[str, Place, int], list[T]]

_CHUNKS_AHEAD = 2


def mapped(
    function: Callable[[bytes], T],
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    processes: int | None = None,
    trainer_id: int = 0,
    trainer_count: int = 1,
    limit_bytes: int = LIMIT_BYTES,
) -> Iterator[T]:
    """Yield `function(record)` for this trainer's chunks, in order; by default one process per CPU.

    Use it when decoding is expensive: passing a record between processes costs more than reading it. Processes are
    spawned: the function must be importable, and a script needs `if __name__ == "__main__":`.
    """
    if not 0 <= trainer_id < trainer_count:
        raise ValueError(f"trainer_id is {trainer_id} and must be 0 to {trainer_count - 1}, less than trainer_count")
    places = islice(_places(found(paths), limit_bytes), trainer_id, None, trainer_count)
    count = processes or os.cpu_count() or 1
    if count == 1:
        return chain.from_iterable(_made(function, *place, limit_bytes) for place in places)
    return chain.from_iterable(_pooled(partial(_made, function), places, limit_bytes, count))


def _pooled(made: Made[T], places: Iterable[tuple[str, Place]], limit_bytes: int, count: int) -> Iterator[list[T]]:
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting: deque[Future[list[T]]] = deque()
        try:
            for path, place in places:
                waiting.append(pool.submit(made, path, place, limit_bytes))
                if len(waiting) >= _CHUNKS_AHEAD * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _places(files: Iterable[str], limit_bytes: int) -> Iterator[tuple[str, Place]]:
    for path in files:
        with ChunkFile(path, limit_bytes=limit_bytes) as file:
            for place in file.places():
                yield path, place


def _made(function: Callable[[bytes], T], path: str, place: Place, limit_bytes: int) -> list[T]:
    with ChunkFile(path, limit_bytes=limit_bytes) as file:
        return [function(record) for record in file.records(place)]
