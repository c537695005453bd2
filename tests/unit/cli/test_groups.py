"""Groups typed: made, shown, changed and taken away by an admin; a member lists their own."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.command import Command
from tests.unit.server.running import Running


@pytest.fixture
def admin(server: Running, command: Command) -> Command:
    command.variables["PADDLECLOUD_TOKEN"] = server.root
    return command


def test_a_group_is_made_shown_changed_and_removed(server: Running, admin: Command) -> None:
    assert admin.out("group", "add", "lab", "--description", "the lab", "--members", "ann") == "lab\n"
    admin.type("group", "join", "lab", "bob", "ann")
    admin.type("group", "set", "lab", "--running-jobs", "3", "--space", "10Gi")
    shown = admin.out("group", "set", "lab", "--cluster", "local", "--wall-time", "01:00:00")
    assert "limits           running jobs 3, space 10.0 GiB" in shown
    assert "limits on local  wall time 01:00:00" in shown
    assert "ann, bob" in admin.out("group", "show", "lab")
    head, *rows = admin.out("group", "list").splitlines()
    assert head.split() == ["NAME", "MEMBERS", "QUEUES", "LIMITS", "DESCRIPTION", "SINCE"]
    assert [row.split()[0] for row in rows] == ["default", "admin", "lab"]
    admin.type("group", "set", "lab", "--cluster", "local", "--reset")
    admin.type("group", "set", "lab", "--reset", "--description", "")
    kept = json.loads(admin.out("group", "show", "lab", "-o", "json"))
    assert (kept["quotas"], kept["quota"]["running_jobs"], kept["description"]) == ({}, None, "")
    admin.type("group", "leave", "lab", "bob")
    assert json.loads(admin.out("group", "show", "lab", "-o", "json"))["members"] == ["ann"]
    assert admin.out("known_groups").split() == ["default", "admin", "lab"]
    admin.type("group", "remove", "lab")
    assert "no group 'lab'" in admin.type("group", "show", "lab", code=102).stderr


def test_who_is_no_admin_sees_their_own_groups_and_changes_none(server: Running, command: Command) -> None:
    assert command.out("group", "list", "-o", "name") == "default\n"
    assert "only an admin" in command.type("group", "add", "mine", code=3).stderr


def test_a_name_or_a_user_that_cannot_be_is_refused_with_what_to_do(server: Running, admin: Command) -> None:
    assert "letters, digits and _" in admin.type("group", "add", "my-lab", code=2).stderr
    assert "user add" in admin.type("group", "add", "lab", "--members", "nobody", code=102).stderr
    assert "did you mean 'remove'?" in admin.type("group", "delete", "lab", code=2).stderr
