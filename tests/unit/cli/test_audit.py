"""The audit record, typed."""

from __future__ import annotations

import json

from tests.unit.cli.command import Command
from tests.unit.server.running import Running


def test_an_admin_reads_who_did_what(server: Running, command: Command) -> None:
    job = server.submit(token=server.bob)
    command.variables["PADDLECLOUD_TOKEN"] = server.root
    lines = command.out("audit", "--user", "bob", "--action", "job", "--since", "1h").splitlines()
    assert lines[0].split() == ["WHEN", "USER", "FROM", "ACTION", "TARGET", "DETAIL"]
    assert lines[1].split()[2:] == ["bob", "127.0.0.1", "job.submit", job]
    (entry,) = json.loads(command.out("audit", "--user", "bob", "-o", "json", "--limit", "1"))
    assert (entry["target"], entry["action"]) == (job, "job.submit")
    assert entry["request_id"] in command.out("audit", "-o", "wide", "--limit", "5")
    assert "nothing of that is on record" in command.type("audit", "--user", "nobody").stderr
    assert "did you mean 'login'" in command.type("audit", "--action", "logn", code=2).stderr


def test_it_is_for_admins(server: Running, command: Command) -> None:
    assert "admin" in command.type("audit", code=3).stderr


def test_a_limit_of_0_is_all_as_it_is_of_ls(server: Running, command: Command) -> None:
    for _ in range(3):
        server.submit(token=server.bob)
    command.variables["PADDLECLOUD_TOKEN"] = server.root
    newest = command.type("audit", "--user", "bob", "-n", "2", "-o", "json")
    assert len(json.loads(newest.stdout)) == 2
    assert "the newest 2; -n 0 lists all" in newest.stderr
    every = command.type("audit", "--user", "bob", "--limit", "0", "-o", "json")
    assert len(json.loads(every.stdout)) >= 3
    assert every.stderr == ""


def test_a_time_that_is_none_is_answered_with_both_ways_to_write_one(server: Running, command: Command) -> None:
    command.variables["PADDLECLOUD_TOKEN"] = server.root
    said = command.type("audit", "--since", "xx", code=2).stderr
    assert "--since 'xx' is not a time: write how long ago (10m, 2h, 7d), or when (2026-11-16, 2026-" in said
    assert command.type("audit", "--since", "2026-11-16").returncode == 0
