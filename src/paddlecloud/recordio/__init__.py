"""Data for training: files of records, as PaddlePaddle's RecordIO writes them, and datasets made of such files.

`import recordio` gives the original's own names (`reader`, `writer`). It needs the standard library alone, but for two
of the codecs; the extra `recordio` makes snappy quick and small.
"""

from __future__ import annotations

from paddlecloud.recordio.compressors import Compressor
from paddlecloud.recordio.errors import (
    CorruptError,
    ForeignError,
    MissingPartError,
    OversizedError,
    Skipped,
    TruncatedError,
)
from paddlecloud.recordio.index import IndexedReader
from paddlecloud.recordio.stream import Reader, Writer

__all__ = [
    "Compressor",
    "CorruptError",
    "ForeignError",
    "IndexedReader",
    "MissingPartError",
    "OversizedError",
    "Reader",
    "Skipped",
    "TruncatedError",
    "Writer",
]
