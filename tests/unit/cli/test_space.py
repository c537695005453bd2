"""`paddlecloud df`, typed by a user and by an admin."""

from __future__ import annotations

import json
import re

from paddlecloud.model.pfs import Who
from tests.unit.cli.command import Command
from tests.unit.server.running import Running


def rows(said: str) -> dict[str, str]:
    return {line.split()[0]: line for line in said.splitlines()}


def test_a_user_sees_what_is_theirs_of_what_they_may_keep_and_what_only_admins_see(
    server: Running, command: Command
) -> None:
    server.services.pfs.write(Who(user="ann"), "/pfs/local/home/ann/data", [b"x" * 8192], size=8192)
    said = command.type("df", "--now")
    assert re.match(r"pfs +\S+ KiB +1 ", rows(said.stdout)["pfs"])
    assert "until you remove them" in rows(said.stdout)["pfs"]
    assert "this is ann's alone; what others keep, and how full the disks are, only admins see" in said.stderr
    assert "counted just now" in said.stderr
    admin = Command(command.folder, {**command.variables, "PADDLECLOUD_TOKEN": server.root})
    admin.type("user", "quota", "ann", "--space", "2Gi")
    try:
        assert re.match(r"pfs +\S+ KiB of 2.0 GiB +1 ", rows(command.out("df"))["pfs"])
        (share,) = [one for one in json.loads(command.out("df", "-o", "json"))["shares"] if one["kind"] == "pfs"]
        assert share["limit_bytes"] == 2 * 1024**3
    finally:
        admin.type("user", "quota", "ann", "--reset")


def test_an_admin_sees_everything_and_is_told_how_old_the_figures_are(server: Running, command: Command) -> None:
    command.variables["PADDLECLOUD_TOKEN"] = server.root
    said = command.type("df")
    assert "until their users remove them" in rows(said.stdout)["pfs"]
    assert "free on the disk of" in said.stderr
    assert "counted" in said.stderr
    assert "only admins see" not in said.stderr


def test_what_only_admins_may_is_refused_with_what_a_user_may(command: Command) -> None:
    for flag in ("--users", "--collect", "--dry-run"):
        said = command.type("df", flag, code=3).stderr
        assert "only admins see" in said
        assert "`paddlecloud df` shows what is yours" in said
