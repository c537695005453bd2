"""Reads and writes training data: record files in PaddlePaddle's RecordIO format, and datasets of such files.

`import recordio` provides the original library's names (`reader`, `writer`). The package needs only the standard
library, except for two of the codecs; the extra `recordio` makes snappy fast and its files small.
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
