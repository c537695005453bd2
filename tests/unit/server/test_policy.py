"""What the server and its clusters give each user, in lines."""

from __future__ import annotations

import tomllib

import pytest

from paddlecloud.server import config
from paddlecloud.server.policy import policy_lines

_FREE = "2 running jobs, 100 waiting jobs, 100 minutes a day, 30 min for a job, 1 instance for a job for each user"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "",
            [
                (
                    "open policy: no limits for each user on all clusters together; "
                    'server.policy = "free" gives the manual\'s limits'
                )
            ],
        ),
        (
            '[server]\npolicy = "free"',
            [f'free policy: {_FREE} on all clusters together; server.policy = "open" lifts it'],
        ),
        (
            '[clusters.a]\npolicy = "free"\n[clusters.b]\nrunning_jobs = 1\nwall_time = "2h"\n[clusters.c]\n',
            [
                (
                    "open policy: no limits for each user on all clusters together; "
                    'server.policy = "free" gives the manual\'s limits'
                ),
                f'cluster a: {_FREE}; clusters.a.policy = "open" lifts it',
                "cluster b: 1 running job, 2 h for a job for each user",
            ],
        ),
    ],
)
def test_a_policy_is_told_with_what_changes_it(text: str, lines: list[str]) -> None:
    assert list(policy_lines(config.parse(tomllib.loads(text)))) == lines
