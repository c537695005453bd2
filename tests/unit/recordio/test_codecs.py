"""Items become bytes and come back; what could run code is refused by all codecs but pickle."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.recordio.codecs import CODECS, JSON, MSGPACK, NUMPY, PLAIN_PICKLE, TEXT, Codec, UnsafeError

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.parametrize("codec", [JSON, MSGPACK, PLAIN_PICKLE], ids=lambda codec: codec.name)
@given(item=plain)
def test_plain_items_come_back(codec: Codec, item: object) -> None:
    try:
        record = codec.dumps(item)
    except UnicodeEncodeError:
        return  # half a surrogate pair, which msgpack has no bytes for
    assert codec.loads(record) == item


@given(line=st.binary())
def test_text_keeps_every_byte(line: bytes) -> None:
    assert TEXT.dumps(TEXT.loads(line)) == line
    assert TEXT.dumps(line) == line


def test_arrays_come_back_with_their_shapes_and_types() -> None:
    image, label = np.arange(12, dtype=np.float32).reshape(3, 4), np.int64(7)
    read_image, read_label = NUMPY.loads(NUMPY.dumps((image, label)))
    assert read_image.dtype == np.float32
    assert (read_image == image).all()
    assert read_label == 7
    assert (NUMPY.loads(NUMPY.dumps(image)) == image).all()


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda codec: codec.name)
def test_arrays_are_lists_in_json_and_msgpack(codec: Codec) -> None:
    assert codec.loads(codec.dumps((np.array([1.5, 2.5]), np.int64(3)))) == [[1.5, 2.5], 3]


def test_what_json_cannot_hold_is_told() -> None:
    with pytest.raises(TypeError, match="JSON cannot store set: use the codec"):
        JSON.dumps({1})


def test_a_pickle_that_would_run_something_runs_nothing() -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return exec, ("raise SystemExit('it ran')",)

    with pytest.raises(UnsafeError, match="imports builtins.exec, which may run code"):
        PLAIN_PICKLE.loads(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        NUMPY.dumps(np.array([Evil()], dtype=object))


def test_every_codec_is_known_by_its_name() -> None:
    assert {name: codec.name for name, codec in CODECS.items()} == {name: name for name in CODECS}
