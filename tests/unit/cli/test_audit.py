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
