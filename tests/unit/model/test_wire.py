"""JSON in and out, strictly."""

from __future__ import annotations

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
        (b'{"roles": [{"name": "t", "count": "2", "command": "x"}]}', "roles[0].count", "Expected `int`"),
        (b'{"roles": [{"name": "t", "count": 1, "comand": "x"}]}', "roles[0].comand", "did you mean 'command'"),
        (
            b'{"roles": [{"name": "t", "count": 1, "command": "x", "resources": {"cpu": 1}}]}',
            None,
            "did you mean 'cpus'",
        ),
        (b'{"name": "x"}', None, "missing required field `roles`"),
        (b'{"roles": []', None, "not JSON"),
        (b"\xff", None, "not JSON"),
        (b'{"roles": [], "env": {"A": 1}}', "env[...]", "Expected `str`"),
    ],
)
def test_a_wrong_body_is_refused_with_the_field_named(body: bytes, field: str | None, says: str) -> None:
    with pytest.raises(InvalidError, match=says.replace("[", r"\[")) as caught:
        wire.decode(JobSpec, body)
    if field is not None:
        assert caught.value.field == field
