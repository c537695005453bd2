"""JSON in and out, strictly."""

from __future__ import annotations

import tracemalloc

import pytest

from paddlecloud.model import wire
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import JobSpec, Resources, RoleSpec

SPEC = JobSpec(
    roles=(RoleSpec(name="trainer", count=2, command="sh run.sh", resources=Resources(cpus=1.5)),),
    env={"A": "1"},
)


def test_a_value_comes_back_as_it_was() -> None:
    assert wire.decode(JobSpec, wire.encode(SPEC)) == SPEC


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        (b'{"roles": [], "nam": "x"}', "nam", "did you mean 'name'"),
        (
            b'{"roles": [{"name": "t", "count": "2", "command": "x"}]}',
            "roles[0].count",
            "must be a whole number, not text",
        ),
        (b'{"roles": [{"name": "t", "count": 1, "comand": "x"}]}', "roles[0].comand", "did you mean 'command'"),
        (
            b'{"roles": [{"name": "t", "count": 1, "command": "x", "resources": {"cpu": 1}}]}',
            None,
            "did you mean 'cpus'",
        ),
        (b'{"name": "x"}', "roles", "roles is missing"),
        (b'{"roles": []', None, "not JSON"),
        (b"\xff", None, "not JSON"),
        (b'{"roles": [], "env": {"A": 1}}', "env[...]", "must be text, not a whole number"),
        (b'{"roles": [], "' + b"x" * 100_000 + b'": 1}', "x" * 80, "not a known field"),
    ],
)
def test_a_wrong_body_is_refused_with_the_field_named(body: bytes, field: str | None, says: str) -> None:
    with pytest.raises(InvalidError, match=says.replace("[", r"\[")) as caught:
        wire.decode(JobSpec, body)
    if field is not None:
        assert caught.value.field == field


@pytest.mark.parametrize("field", [b"roles", b"else"])
def test_a_hostile_body_takes_no_more_memory_than_itself(field: bytes) -> None:
    body = b'{"' + field + b'": [' + b"[]," * 1_000_000 + b"[]]}"
    tracemalloc.start()
    try:
        with pytest.raises(InvalidError):
            wire.decode(JobSpec, body)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_what_holds_its_default_is_not_sent_since_an_older_server_may_not_know_it() -> None:
    spec = JobSpec(
        roles=(RoleSpec(name="trainer", count=2, command="true", resources=Resources(cpus=2)),), env={"A": "b"}
    )
    sent = wire.without_defaults(spec)
    assert sent == {
        "roles": [{"name": "trainer", "count": 2, "command": "true", "resources": {"cpus": 2.0}}],
        "env": {"A": "b"},
    }
    assert wire.convert(JobSpec, sent) == spec
