"""Seed 001's `get`: its tables for people, plain records for programs."""

from __future__ import annotations

import json

from tests.unit.cli.command import Command
from tests.unit.server.running import Running

ROLES = [
    {"name": "trainer", "count": 2, "command": "go on"},
    {"name": "pserver", "count": 1, "command": "go on", "min_succeeded": 0},
]


def test_jobs_are_records_by_name_without_what_the_old_wire_puts_around_them(server: Running, command: Command) -> None:
    job = server.run(name="recorded", roles=ROLES)
    server.run(name="no-pservers")
    found = {one["name"]: one for one in json.loads(command.out("get", "jobs", "-o", "json"))}
    started = found["recorded"].pop("start_time")
    assert started.endswith("Z")
    assert found["recorded"] == {
        "name": "recorded",
        "terminating": False,
        "succeeded": 0,
        "failed": 0,
        "active": 2,
        "completion_time": None,
        "ps_ready": 1,
        "ps_total": 1,
    }
    assert (found["no-pservers"]["ps_ready"], found["no-pservers"]["ps_total"]) == (None, None)
    head, *lines = (line.split() for line in command.out("get", "jobs").splitlines())
    assert " ".join(head) == "NUM NAME SUCC FAIL START COMP ACTIVE PS_READY PS_TOTAL"
    (shown,) = [line[2:] for line in lines if line[1] == "recorded"]
    assert shown == ["<nil>", "<nil>", started, "<nil>", "2", "1", "1"]
    assert set(command.out("get", "jobs", "-o", "name").split()) == {"recorded", "no-pservers"}
    server.finish(job)


def test_workers_are_records_of_five_fields(server: Running, command: Command) -> None:
    server.run(name="worked", roles=ROLES)
    found = json.loads(command.out("get", "workers", "worked", "-o", "json"))
    assert len(found) == 2
    assert all(list(one) == ["name", "status", "start_time", "exit_code", "message"] for one in found)
    assert {(one["status"], one["exit_code"], one["message"]) for one in found} == {("Running", None, None)}
    head, *lines = (line.split() for line in command.out("get", "workers", "worked").splitlines())
    assert head == ["NAME", "STATUS", "START", "EXIT_CODE", "MSG"]
    assert [line[0] for line in lines] == [one["name"] for one in found]


def test_the_rule_of_the_quota_table_is_no_record(command: Command) -> None:
    shown = [line.split() for line in command.out("get", "quota").splitlines()]
    assert [line[0] for line in shown] == ["RESOURCE", "-----", "Memory", "CPU", "GPU", "MaxParallism"]
    assert json.loads(command.out("get", "quota", "-o", "json")) == [
        {"cluster": "local", "memory": "1024Gi", "cpu": 1000.0, "gpu": 0, "max_parallelism": None}
    ]
    assert command.out("get", "quota", "-o", "name") == "local\n"
    assert command.out("get", "quota", "-o", "wide").splitlines()[2].split()[-1] == "local"


def test_registry_secrets_are_listed_by_number_and_name(command: Command) -> None:
    words = ("-username", "u", "-password", "s3cret", "-server", "registry.example")
    assert command.out("registry", "-name", "mine", *words) == "registry: [mine] is added\n"
    assert command.out("get", "registry").split()[:5] == ["ID", "NAME", "DATA", "0", "mine"]
    (found,) = json.loads(command.out("get", "registry", "-o", "json"))
    assert (found["name"], found["server"], found["username"]) == ("mine", "registry.example", "u")
    assert "already" in command.type("registry", "-name", "mine", *words, code=1).stderr
    command.type("delete", "registry", "mine")
