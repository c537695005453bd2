"""A file that holds secrets: mode 0600, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write(file: Path, body: bytes) -> None:
    import tempfile  # hundreds of lines that those who only read can do without

    # A link, as of a config that is kept elsewhere, stays one.
    file = file.resolve()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # mkstemp opens with mode 0600.
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    try:
        with open(descriptor, "wb") as stream:
            stream.write(body)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise
