"""What keeps the tasks of different users, and the server, from each other on one machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from paddlecloud.backends.base import Launch
from tests.contract.local import Room, log


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of the server's account, with its data folder and a secret file in it."""
    (tmp_path / "home/share/data/results").mkdir(parents=True)
    (tmp_path / "home/share/data/key").write_text("secret")
    (tmp_path / "home/.pgpass").write_text("secret")
    return tmp_path / "home"


@pytest.fixture
def room(home: Path) -> Iterator[Room]:
    data = home / "share/data"
    with Room(data, hidden=(data, home / ".pgpass", home / "absent")) as room:
        if "mount" not in room.backend.isolation:
            pytest.skip(room.backend.isolation)
        yield room


def of(user: str, launch: Launch) -> Launch:
    return replace(launch, user=user)


def test_no_task_changes_what_another_runs_as_python(room: Room) -> None:
    shim = "${PATH%%:*}/python"
    change = f"echo 'echo stolen' > {shim}; rm -f {shim}; mv {shim} {shim}2; touch ${{PATH%%:*}}/new"
    room.run(of("alice", room.launch(change)))
    bobs = of("bob", room.launch("python -c 'print(1)'; ls ${PATH%%:*}"))
    assert room.run(bobs).exit_code == 0
    assert log(bobs) == "1\npip\npip3\npython\npython3\n"


def test_what_is_above_the_data_folder_cannot_be_moved_away_to_look_into_it(room: Room, home: Path) -> None:
    away = f"mv {home}/share {home}/away; mv {home} {home}2; mkdir -p {home}/share/data; cat {home}/away/data/key"
    launch = room.launch(f"{away}; cat {home}/share/data/key; echo done")
    room.run(launch)
    assert "secret" not in log(launch)
    assert log(launch).endswith("done\n")
    assert (home / "share/data/key").read_text() == "secret"


def test_a_file_of_the_servers_account_reads_as_empty_and_stays(room: Room, home: Path) -> None:
    launch = room.launch(f"cat {home}/.pgpass; echo mine > {home}/.pgpass; rm -f {home}/.pgpass; echo done")
    room.run(launch)
    assert "secret" not in log(launch)
    assert (home / ".pgpass").read_text() == "secret"


def test_a_log_that_became_a_link_is_not_followed_by_the_next_attempt(room: Room) -> None:
    bobs = of("bob", room.launch("echo private"))
    room.run(bobs)
    results = "$(dirname $OUTPUT_PATH)"
    first = of("alice", room.launch(f"rm -r {results}/log; ln -s {bobs.results}/log {results}/log"))
    room.run(first)
    again = replace(first, handle=first.handle[:-1] + "2", attempt=2)
    assert "could not start: no log" in room.run(again).reason
    assert log(bobs) == "private\n"
    assert os.readlink(first.results / "log") == f"{bobs.results}/log"


def test_a_log_that_became_a_pipe_holds_nobody_up(room: Room) -> None:
    file = "$(dirname $OUTPUT_PATH)/log/trainer-0.log"
    first = room.launch(f"rm {file}; mkfifo {file}")
    room.run(first)
    again = replace(first, handle=first.handle[:-1] + "2", attempt=2)
    assert "no plain file" in room.run(again).reason


def test_control_groups_and_the_kernels_settings_cannot_be_changed(room: Room) -> None:
    # What is written back changes nothing, should it be let through.
    found = "$(find /sys/fs/cgroup -name pids.max | head -n 50)"
    groups = f"for f in {found}; do v=$(cat $f); echo $v > $f && echo changed $f; done"
    settings = "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger; do test -w $f && echo writable $f; done"
    launch = room.launch(f"({groups}; {settings}; mkdir /sys/fs/cgroup/*/mine && echo made) 2> /dev/null; echo done")
    room.run(launch)
    assert log(launch) == "done\n"


def test_a_folder_is_used_again_by_the_same_user_only(room: Room) -> None:
    room.run_and_clean(of("alice", room.launch("true")))
    [spare] = room.tasks.glob(".spare-*")
    room.run(of("bob", room.launch("true")))
    assert spare.exists()
    room.run(of("alice", room.launch("true")))
    assert not spare.exists()
