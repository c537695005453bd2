"""One variable in a file, as PaddlePaddle has saved it since fluid, read and written with numpy alone.

    u32 version 0 | u64 levels of detail, 0 | u32 version 0 | i32 length | TensorDesc, a protocol buffer | the values

It is what `paddle.save(tensor, path, use_binary_format=True)` writes, byte by byte, and `paddle.load` reads.
"""

from __future__ import annotations

import math
import os
import struct

import numpy as np

_HEAD = struct.Struct("<IQIi")
_TYPE, _DIMENSION = 0x08, 0x10  # fields 1 and 2 of TensorDesc, as numbers
_CODES = {
    "bool": 0,
    "int16": 1,
    "int32": 2,
    "int64": 3,
    "float16": 4,
    "float32": 5,
    "float64": 6,
    "uint8": 20,
    "int8": 21,
}
_TYPES = {code: name for name, code in _CODES.items()}
_LONGEST_DESCRIPTION = 4096


class TensorFileError(Exception):
    """The file is not a whole variable."""


def write(path: str, values: np.ndarray) -> None:
    values = np.asarray(values)
    if values.dtype.name not in _CODES:
        raise TensorFileError(f"{path}: {values.dtype} has no place in this format")
    description = bytes([_TYPE, _CODES[values.dtype.name]])
    for length in values.shape:
        description += bytes([_DIMENSION]) + _varint(length)
    with open(path, "wb") as file:
        file.write(_HEAD.pack(0, 0, 0, len(description)) + description)
        file.write(np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False).tobytes())
        file.flush()
        os.fsync(file.fileno())


def read(path: str) -> np.ndarray:
    """Its values; what its head says is believed only if the file has just that size."""
    with open(path, "rb") as file:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise TensorFileError(f"{path} ends within its head")
        *zeros, length = _HEAD.unpack(head)
        if any(zeros) or not 2 <= length <= _LONGEST_DESCRIPTION:
            raise TensorFileError(f"{path} is not a variable in PaddlePaddle's binary format")
        kind, shape = _described(path, file.read(length))
        size = math.prod(shape) * kind.itemsize
        if os.fstat(file.fileno()).st_size != _HEAD.size + length + size:
            raise TensorFileError(f"{path} should have {size} bytes of values after its head, and has not")
        return np.frombuffer(file.read(size), dtype=kind).reshape(shape).astype(kind.newbyteorder("="))


def _described(path: str, description: bytes) -> tuple[np.dtype, list[int]]:
    kind, shape, at = None, [], 0
    while at < len(description):
        field = description[at]
        value, at = _from_varint(path, description, at + 1)
        if field == _TYPE:
            kind = _TYPES.get(value)
        elif field == _DIMENSION:
            shape.append(value)
        else:
            raise TensorFileError(f"{path} has the field {field:#x}, which no variable has")
    if kind is None:
        raise TensorFileError(f"{path} does not say of what type its values are")
    return np.dtype(kind).newbyteorder("<"), shape


def _varint(number: int) -> bytes:
    made = b""
    while number > 0x7F:
        made += bytes([number & 0x7F | 0x80])
        number >>= 7
    return made + bytes([number])


def _from_varint(path: str, data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 63, 7):
        if at >= len(data):
            break
        number |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return number, at
    raise TensorFileError(f"{path} has a number without an end in its head")
