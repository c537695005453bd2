"""The checks of how a server's machine keeps tasks apart: their accounts, their fences, the folders that they see."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paddlecloud.backends import examine
from paddlecloud.model.finding import Verdict, ok
from paddlecloud.runtime import rootless
from paddlecloud.server import checkup
from paddlecloud.server.checks import machine
from paddlecloud.server.checks.machine import Lack
from tests.unit.server.test_checkup import only, site

SLURM_ACCOUNTS = """\
[clusters.local]
[clusters.hpc]
backend = "slurm"
url = "https://box.example:8642"
accounts = {alice = "a123"}
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir(mode=0o700)
    return made


def test_a_shared_server_as_root_says_which_accounts_its_tasks_have(data: Path) -> None:
    found = only(machine.judged_account(0, site(data).settings, Lack()))
    assert found == ok("account", "root; tasks run as user ids 1900000000 to 1900065535, one for each user")
    other = site(data, '[jobs]\nuids = "1800000000-1800065535"').settings
    assert "1800000000 to 1800065535" in only(machine.judged_account(0, other, Lack())).text
    assert only(machine.judged_account(0, site(data, embedded=True).settings, Lack())).verdict is Verdict.OK
    unparted = site(data, "[clusters.local]\nisolate = false").settings
    found = only(machine.judged_account(0, unparted, Lack()))
    assert (found.verdict, "an account of its own" in found.remedy) == (Verdict.WARNING, True)


def test_a_range_of_ids_that_the_machine_uses_is_named(data: Path) -> None:
    if os.geteuid() == 0:
        overlapping = site(data, '[jobs]\nuids = "65000-131000"')  # nobody is 65534
        (found,) = checkup.run(overlapping, [machine.account], 10.0)
        assert (found.subject, found.verdict) == ("account", Verdict.FAILED)
        assert "in /etc/" in found.text
    assert only(machine.account(site(data, embedded=True))).verdict is Verdict.OK


def test_a_plain_account_is_told_why_its_tasks_share_it(data: Path) -> None:
    shared = site(data).settings
    found = only(machine.judged_account(1000, shared, Lack("there is no newuidmap", "install it")))
    assert (found.verdict, found.remedy) == (Verdict.WARNING, "install it")
    assert "user id 1000, one account for all tasks: there is no newuidmap" in found.text
    assert "ids of its range" in only(machine.judged_account(1000, shared, Lack())).text
    assert "run this as that account" in only(machine.judged_account(1000, shared, None)).text
    assert only(machine.judged_account(1000, site(data, embedded=True).settings, Lack())).verdict is Verdict.OK


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away, and be another user")
def test_why_tasks_share_one_account_is_found_out(data: Path) -> None:
    os.chown(data, 12345, 12345)
    assert "run this as that account" in only(machine.account(site(data))).text
    assert "sudo does not work" in only(machine.account(site(data, SLURM_ACCOUNTS))).text
    assert examine.no_range() == rootless.problem()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can map ids of others")
def test_a_server_that_uses_the_range_of_its_account_is_told_from_outside(data: Path) -> None:
    with running_as(23456) as plain:
        (data / "lock").write_text(str(plain.pid))
        assert "run this as that account" in only(machine.account(site(data))).text
    with running_as(23456, "unshare", "--user", "--") as rootless_server:
        Path(f"/proc/{rootless_server.pid}/uid_map").write_text("0 23456 1\n1 1800000000 65536\n")
        (data / "lock").write_text(str(rootless_server.pid))
        assert only(machine.account(site(data))).text.startswith("user id 23456; tasks run as ids of its range")


@contextmanager
def running_as(user: int, *before: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is taken for a server and runs until the end."""
    words = [*before, "/bin/sh", "-c", "echo; read line", "paddlecloud"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=user, group=user, extra_groups=[], cwd="/"
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_folders_that_tasks_are_to_see_are_told_and_checked(data: Path, tmp_path: Path) -> None:
    assert "all that this account may see" in only(machine.task_folders(site(data, embedded=True))).text
    assert "visible of [clusters.local]" in only(machine.task_folders(site(data))).text
    there = tmp_path / "datasets"
    there.mkdir()
    there.chmod(0o777)
    shown = f'visible = ["{there}:rw", "/usr"]'
    found = only(machine.task_folders(site(data, f"[clusters.local]\n{shown}")))
    assert (found.verdict, f"{there}:rw, /usr" in found.text) == (Verdict.OK, True)
    found = only(machine.task_folders(site(data, f'[clusters.local]\nvisible = ["{tmp_path}/none", "/usr"]')))
    assert (found.subject, found.verdict) == ("folders of tasks on local", Verdict.WARNING)
    assert f"{tmp_path}/none in clusters.local.visible cannot be shown: No such file" in found.text
    on_slurm = site(data, '[clusters.hpc]\nbackend = "slurm"\nvisible = ["/nonexistent"]')
    found = only(machine.task_folders(on_slurm))
    assert (found.verdict, found.text) == (Verdict.OK, "of its nodes: /nonexistent")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only a server of root gives tasks accounts of their own")
def test_a_visible_folder_that_the_accounts_of_tasks_cannot_open_is_named(data: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o750)
    found = only(machine.task_folders(site(data, f'[clusters.local]\nvisible = ["{closed}"]')))
    assert (found.verdict, f"chmod o+rx {closed}" in found.remedy) == (Verdict.WARNING, True)
    closed.chmod(0o755)
    found = only(machine.task_folders(site(data, f'[clusters.local]\nvisible = ["{closed}:rw"]')))
    assert (found.verdict, f"chmod o+rwx {closed}" in found.remedy) == (Verdict.WARNING, True)


def test_a_shared_server_without_landlock_is_told_what_stays_open() -> None:
    said = "one account for all tasks, PID, mount, IPC namespaces, a filter of system calls, {}; limits by cgroups v2"
    found = only(machine.judged("isolation", said.format("no Landlock")))
    assert (found.verdict, "Linux 5.19" in found.remedy) == (Verdict.WARNING, True)
    assert "hands an open folder" in found.text
    assert only(machine.judged("isolation", said.format("no Landlock"), embedded=True)).verdict is Verdict.OK
    found = only(machine.judged("isolation", said.format("Landlock ABI 6")))
    assert (found.verdict, "Landlock ABI 6" in found.text) == (Verdict.OK, True)
