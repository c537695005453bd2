"""What a cluster gives each user, in one line."""

from __future__ import annotations

import tomllib

import pytest

from paddlecloud.server import config
from paddlecloud.server.policy import policy_line


@pytest.mark.parametrize(
    ("text", "embedded", "line"),
    [
        (
            "",
            False,
            (
                "cluster local: free policy: 2 running jobs, 100 waiting jobs, 100 minutes a day, 30 min for a job, "
                '1 instance for a job; clusters.local.policy = "open" lifts it'
            ),
        ),
        ("", True, "cluster local: open policy: no limits"),
        (
            '[clusters.local]\npolicy = "open"\nrunning_jobs = 1\nwall_time = "2h"',
            False,
            "cluster local: open policy: 1 running job, 2 h for a job",
        ),
    ],
)
def test_a_policy_is_told_with_what_lifts_it(text: str, embedded: bool, line: str) -> None:
    assert policy_line(config.parse(tomllib.loads(text), embedded=embedded), "local") == line
