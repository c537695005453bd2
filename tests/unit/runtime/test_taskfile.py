"""A task file is understood wholly or not at all."""

from __future__ import annotations

import json

import pytest

from paddlecloud.runtime import taskfile
from paddlecloud.runtime.taskfile import TaskFileError
from tests.unit.runtime.orders import ALONE, alone


def test_a_task_file_comes_back_as_it_was_written() -> None:
    odd = alone(command="echo 'ü\n\udcff'", env={"A": "b c"}, gpus=[1, 3], tree="/a b", ports=[])
    assert taskfile.decode(taskfile.encode(odd)) == odd


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cpus": "many"}, "'cpus' must be float, not 'many'"),
        ({"attempt": True}, "'attempt' must be int"),
        ({"env": {"A": 1}}, "'env' must be dict"),
        ({"gpus": ["0"]}, "'gpus' must be list"),
        ({"command": None}, "'command' must be str, not None"),
        ({"roles": [["trainer", 1]]}, "'roles' must be list"),
        ({"inputs": [["a"]]}, "'inputs' must be list"),
        ({"surprise": 1}, "'surprise' is not a known field"),
        ({"format": 1}, "has format 1; this runtime reads format 10"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], words: str) -> None:
    plain = {**ALONE._asdict(), **change}
    with pytest.raises(TaskFileError, match=words):
        taskfile.decode(json.dumps(plain).encode())


def test_a_missing_field_is_named() -> None:
    plain = ALONE._asdict()
    del plain["command"]
    with pytest.raises(TaskFileError, match="'command' is missing"):
        taskfile.decode(json.dumps(plain).encode())


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff"])
def test_what_is_not_a_json_object_is_refused(text: bytes) -> None:
    with pytest.raises(TaskFileError, match="not "):
        taskfile.decode(text)
