"""PaddlePaddle's old file of one variable, byte by byte."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.frameworks import PYTHON, needs
from tests.unit.examples.plsc import tensor_file

# By `paddle.save(paddle.to_tensor([1, 2], dtype="int64"), path, use_binary_format=True)` of PaddlePaddle 3.3.1.
TWO = bytes.fromhex("00000000 0000000000000000 00000000 04000000 0803 1002 0100000000000000 0200000000000000")
SHAPES = {"float32": [64], "int64": [1], "float64": [3, 5], "int32": [128, 300], "uint8": [2, 3, 4]}


def test_sizes_are_those_of_the_manual(tmp_path: Path) -> None:
    tensor_file.write(str(tmp_path / "norm"), np.zeros(64, dtype=np.float32))
    tensor_file.write(str(tmp_path / "counter"), np.zeros(1, dtype=np.int64))
    assert (tmp_path / "norm").stat().st_size == 280
    assert (tmp_path / "counter").stat().st_size == 32


def test_bytes_are_those_that_paddlepaddle_wrote(tmp_path: Path) -> None:
    tensor_file.write(str(tmp_path / "two"), np.array([1, 2]))
    assert (tmp_path / "two").read_bytes() == TWO


@pytest.mark.parametrize("kind", SHAPES)
def test_what_is_written_is_read(tmp_path: Path, kind: str) -> None:
    values = np.arange(np.prod(SHAPES[kind])).reshape(SHAPES[kind]).astype(kind)
    tensor_file.write(str(tmp_path / "one"), values[..., ::1].T)
    read = tensor_file.read(str(tmp_path / "one"))
    assert read.dtype == values.dtype
    np.testing.assert_array_equal(read, values.T)
    read += 1  # may be written to


@pytest.mark.parametrize(
    "content",
    [
        b"",
        TWO[:10],
        TWO[:-1],
        TWO + b"\0",
        b"\1" + TWO[1:],
        TWO.replace(b"\x10\x02", b"\x10\xff"),  # a number without an end
        TWO.replace(b"\x10\x02", b"\x1a\x02"),  # a field that no variable has
        TWO.replace(b"\x08\x03", b"\x08\x63"),  # a type that there is not
        TWO.replace(b"\x04\0\0\0", b"\xff\xff\xff\x7f"),  # a length that would take all memory
        TWO[:20] + b"\x08\x03\x10\x7f" + TWO[24:],  # more values than it has
    ],
)
def test_what_is_not_whole_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bent").write_bytes(content)
    with pytest.raises(tensor_file.TensorFileError, match="bent"):
        tensor_file.read(str(tmp_path / "bent"))


@needs("paddle")
@pytest.mark.slow
def test_paddlepaddle_writes_the_same_bytes_and_reads_ours(tmp_path: Path) -> None:
    for kind, shape in SHAPES.items():
        tensor_file.write(str(tmp_path / kind), np.arange(np.prod(shape)).reshape(shape).astype(kind))
    script = (
        "import json, sys, numpy, paddle\n"
        "for kind, shape in json.loads(sys.argv[1]).items():\n"
        "    values = numpy.arange(numpy.prod(shape)).reshape(shape).astype(kind)\n"
        "    paddle.save(paddle.to_tensor(values), 'theirs', use_binary_format=True)\n"
        "    assert open('theirs', 'rb').read() == open(kind, 'rb').read(), kind\n"
        "    assert (numpy.asarray(paddle.load(kind)) == values).all(), kind\n"
    )
    done = subprocess.run(
        [str(PYTHON), "-c", script, json.dumps(SHAPES)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
