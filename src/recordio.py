"""PaddlePaddle's RecordIO under its own name, so that programs which `import recordio` run as they are.

`writer(path)` writes snappy in chunks of 32 MiB, `reader("a-*,b-*")` reads; paddlecloud.recordio has the rest.
"""

from __future__ import annotations

from paddlecloud.recordio import (
    Compressor,
    CorruptError,
    ForeignError,
    IndexedReader,
    MissingPartError,
    OversizedError,
    Reader,
    Skipped,
    TruncatedError,
    Writer,
)

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
    "reader",
    "writer",
]

reader = Reader
writer = Writer
