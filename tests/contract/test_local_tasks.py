"""What a task on this machine finds: its environment, its files, its limits, and a clear word when it cannot start."""

from __future__ import annotations

import json
import math
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.backends.base import BusyError
from paddlecloud.model.errors import ConfigError
from paddlecloud.model.task import TaskState
from tests.contract.local import Room, log
from tests.launches import started, wait_for
from tests.waiting import wait_until

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small disk or to own a control group")


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    """A job's files as files/uploads lays them out: read-only."""
    root = tmp_path / "tree"
    (root / "package" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "train.py").write_text("print('hello')\n")
    (root / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "package" / "odd name\nwith\tall ü").write_text("odd")
    (root / "package" / "deep" / "link").symlink_to("../../train.py")
    with (root / "large.bin").open("wb") as file:
        file.truncate(64 << 20)
    for path in [*root.rglob("*"), root]:
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() or path.suffix == ".sh" else 0o444)
    yield root
    for path in [root, *root.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)


def _snapshot(tree: Path) -> dict[str, tuple[int, int, int, bytes]]:
    def content(path: Path) -> bytes:
        return path.read_bytes()[:4096] if path.is_file() else b""

    found = {}
    for path in sorted([tree, *tree.rglob("*")]):
        status = path.lstat()
        found[str(path)] = (status.st_mode & ~0o222, status.st_size, status.st_mtime_ns, content(path))
    return found


def test_the_environment_is_the_contract_and_nothing_of_the_servers(room: Room) -> None:
    python = 'import json, os, sys; json.dump([dict(os.environ), sys.executable, os.getcwd()], open("seen", "w"))'
    launch = room.launch(f"python3 -c '{python}' && cp seen $OUTPUT_PATH", env={"OMP_NUM_THREADS": "3", "MINE": "x y"})
    assert room.run(launch).state is TaskState.SUCCEEDED
    environment, executable, here = json.loads((launch.results / "rank-0" / "seen").read_text())
    assert environment["JOB_ID"] == launch.job
    assert environment["MINE"] == "x y"
    assert environment["OMP_NUM_THREADS"] == "3"
    assert environment["OUTPUT_PATH"] == str(launch.results / "rank-0")
    assert environment["LOCAL_LOG_PATH"] == str(launch.results / "log" / "trainer-0")
    assert environment["PWD"] == here
    assert not {"VIRTUAL_ENV", "PYTHONPATH", "PYTEST_CURRENT_TEST", "PYTEST_VERSION"} & set(environment)
    assert ".venv" not in executable
    for name in ("HOME", "TMPDIR", "LOCAL_LOG_PATH"):
        assert os.access(environment[name], os.W_OK), name


def test_python_is_the_interpreter_of_the_config(tmp_path: Path) -> None:
    asked = tmp_path / "it's mine"
    asked.write_text('#!/bin/sh\necho "mine: $*"\n')
    asked.chmod(0o755)
    with Room(tmp_path, python=str(asked)) as room:
        launch = room.launch("python -c 'a b'; python3 x")
        room.run(launch)
        assert log(launch) == "mine: -c a b\nmine: x\n"


def test_an_interpreter_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no program on this machine"):
        Room(tmp_path, python="/no/such/python")


def test_pservers_and_trainers_are_told_of_each_other(room: Room) -> None:
    command = "env | sort"
    ports = [_free_port() for _ in range(4)]
    launch = room.launch(
        command, command, pservers=[command] * 2, ports=ports, address="127.0.0.1", distribute="PSERVER"
    )
    room.run(launch)
    pservers = f"PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:{ports[2]},127.0.0.1:{ports[3]}\n"
    for task in ("trainer-0", "trainer-1", "pserver-0", "pserver-1"):
        assert pservers in log(launch, task)
        assert f"PADDLE_TRAINER_ENDPOINTS=127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}\n" in log(launch, task)
    assert "TRAINING_ROLE=PSERVER\n" in log(launch, "pserver-1")
    assert f"PADDLE_PORT={ports[3]}\n" in log(launch, "pserver-1")
    assert "PADDLE_TRAINER_ID=1\n" in log(launch, "pserver-1")
    assert (launch.results / "pserver-1").is_dir()


def test_a_task_may_write_everywhere_in_its_working_directory_and_the_tree_stays(room: Room, tree: Path) -> None:
    before = _snapshot(tree)
    write = "echo more >> train.py; echo x > package/deep/new; rm run.sh; echo top > top; mv package/deep empty/"
    launch = room.launch(f"set -e; {write}; cat train.py", tree=tree)
    task = room.run(launch)
    assert (task.state, task.tail) == (TaskState.SUCCEEDED, "")
    assert log(launch) == "print('hello')\nmore\n"
    assert _snapshot(tree) == before


def test_two_tasks_do_not_see_what_each_other_writes(room: Room, tree: Path) -> None:
    meet = ":> $OUTPUT_PATH/wrote; until [ -e $OUTPUT_PATH/../rank-{}/wrote ]; do sleep 0.01; done"
    command = f"echo $PADDLE_TRAINER_ID > mine; {meet}; cat mine"
    launch = room.launch(command.format(1), command.format(0), tree=tree)
    room.run(launch)
    assert (log(launch, "trainer-0"), log(launch, "trainer-1")) == ("0\n", "1\n")


def test_links_modes_and_odd_names_are_kept(room: Room, tree: Path) -> None:
    look = 'import os; print([(p, n, f) for p, n, f in sorted(os.walk("."))], os.readlink("package/deep/link"))'
    launch = room.launch(f"./run.sh; python -c '{look}'", tree=tree)
    room.run(launch)
    assert log(launch).startswith("ran\n")
    assert repr("odd name\nwith\tall ü") in log(launch)
    assert "../../train.py" in log(launch)
    assert "'./empty', [], []" in log(launch)


def test_a_large_file_is_not_copied(room: Room, tree: Path) -> None:
    launch = room.launch("stat -c '%s' large.bin; touch done", tree=tree)
    room.run(launch)
    assert log(launch) == f"{64 << 20}\n"
    own = 0
    for path in (room.tasks / launch.handle).rglob("*"):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_ino != (tree / "large.bin").stat().st_ino:
            own += status.st_size
    assert own < 1 << 20


def test_nothing_is_written_through_the_mount_path(room: Room, tree: Path) -> None:
    before = _snapshot(tree)
    launch = room.launch(
        "cat $LOCAL_MOUNT_PATH/train.py; echo x > $LOCAL_MOUNT_PATH/new; echo x >> $LOCAL_MOUNT_PATH/train.py; exit 4",
        tree=tree,
    )
    if os.geteuid() == 0 and not room.isolated:
        pytest.skip("without mounts of their own, nothing holds root back")
    assert room.run(launch).exit_code == 4
    assert log(launch).startswith("print('hello')\n")
    assert _snapshot(tree) == before


def test_without_files_the_working_directory_and_the_mount_path_are_empty(room: Room) -> None:
    launch = room.launch("ls -A; ls -A $LOCAL_MOUNT_PATH; touch here; touch $LOCAL_MOUNT_PATH/there || true")
    assert room.run(launch).exit_code == 0
    if os.geteuid() != 0 or room.isolated:
        assert not list((room.tasks / launch.handle / "trainer-0" / "mount").iterdir())
        assert log(launch).startswith("touch: ")


def test_in_its_pid_namespace_a_task_sees_itself_alone(tmp_path: Path) -> None:
    with Room(tmp_path) as room:
        if "PID" not in room.backend.isolation:
            pytest.skip(room.backend.isolation)
        launch = room.launch("ls /proc | grep -c '^[0-9]*$'; readlink /proc/self | wc -l; kill -0 1")
        room.run(launch)
        assert int(log(launch).split()[0]) < 8


def test_the_second_attempt_goes_on_in_the_log_and_shows_its_own_tail(room: Room) -> None:
    first = room.launch("printf 'no newline'")
    room.run(first)
    again = room.launch("seq 3; exit 1", job=first.job, attempt=2)
    task = room.run(again)
    assert log(again) == "no newline\n--- attempt 2 ---\n1\n2\n3\n"
    assert task.tail == "1\n2\n3"


def test_the_tail_is_the_last_twenty_lines(room: Room) -> None:
    task = room.run(room.launch("seq 30; exit 1"))
    assert task.tail.splitlines() == [str(number) for number in range(11, 31)]


def test_a_shell_and_a_signal_are_told_apart(room: Room) -> None:
    shell = room.run(room.launch("sh -c 'kill -9 $$'; exit $?"))
    assert (shell.exit_code, shell.signal, shell.outcome) == (137, None, "exit code 137: SIGKILL")
    direct = room.run(room.launch("kill -9 $$"))
    assert (direct.exit_code, direct.signal, direct.outcome) == (None, 9, "killed by SIGKILL")


def test_a_command_that_is_not_there_fails_with_that_reason(room: Room) -> None:
    launch = room.launch("no-such-command --now")
    task = room.run(launch)
    assert (task.exit_code, task.outcome) == (127, "exit code 127: command not found")
    assert "no-such-command" in task.tail


def test_what_keeps_a_task_from_starting_is_its_reason_and_in_its_log(room: Room, tmp_path: Path) -> None:
    launch = room.launch("true", tree=tmp_path / "gone")
    task = room.run(launch)
    assert task.state is TaskState.FAILED
    assert task.reason.startswith("could not start: No such file or directory")
    assert "gone" in task.reason
    assert log(launch) == f"paddlecloud: {task.reason}\n"


def test_a_command_too_long_for_this_machine_fails_with_that_reason(room: Room) -> None:
    task = room.run(room.launch("true " + "x" * 200_000))
    assert task.reason.startswith("could not start: Argument list too long")


def test_a_task_without_a_place_for_its_log_fails_with_that_reason(room: Room) -> None:
    launch = room.launch("true")
    launch.results.parent.mkdir(parents=True)
    launch.results.write_text("in the way")
    task = room.run(launch)
    assert task.reason.startswith("could not start: no log: ")


def test_a_damaged_task_file_fails_with_the_field_that_is_wrong(room: Room) -> None:
    launch = room.launch("true")
    room.write_down(launch)
    path = Path(room.task_folder(launch).task_file)
    path.write_text(json.dumps({**json.loads(path.read_text()), "cpus": "many"}))
    task = room.run(launch)
    assert task.reason.startswith("could not start: ")
    assert "'cpus' must be float" in task.reason


def test_out_of_memory_is_named_with_the_limit(tmp_path: Path) -> None:
    with Room(tmp_path) as room:
        if not room.backend.limits_memory:
            pytest.skip(room.backend.isolation)
        launch = room.launch("python -c 'x = bytearray(500 << 20)'; exit $?", memory_bytes=64 << 20)
        task = room.run(launch)
        assert task.outcome == "out of memory: used more than its limit of 64.0 MiB"
        assert task.exit_code == 137


def test_a_task_reaches_nothing_of_the_server_but_what_is_its_own(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "results" / "job-other").mkdir(parents=True)
    (data / "key").write_text("secret")
    with Room(data, hidden=(data,)) as room:
        if "mount" not in room.backend.isolation:
            pytest.skip(room.backend.isolation)
        tree = data / "tree"
        tree.mkdir()
        (tree / "run.sh").write_text("true")
        undo = f"umount {data}; umount -l {data}; unshare -Urm umount {data}; cat /proc/1/root{data}/key"
        launch = room.launch(
            f"{undo}; cat {data}/key; ls {data}; ls {data}/results; touch {data}/new; "
            "ls; cat $LOCAL_MOUNT_PATH/run.sh && python -c 'print(1)' && touch $HOME/x $TMPDIR/x $OUTPUT_PATH/x here",
            tree=tree,
        )
        assert room.run(launch).exit_code == 0
        log = (launch.results / "log" / "trainer-0.log").read_text()
        assert "secret" not in log
        assert "job-other" not in log
        assert "run.sh" in log
        assert not (data / "new").exists()
        assert (launch.results / "rank-0" / "x").exists()


@pytest.mark.parametrize(("asked", "allowed"), [(True, 0.6), (False, math.inf)])
def test_cpus_that_were_asked_for_are_a_limit_too(tmp_path: Path, asked: bool, allowed: float) -> None:
    spin = "import time; t = time.monotonic()\nwhile time.monotonic() < t + 1: pass\nprint(time.process_time())"
    with Room(tmp_path) as room:
        if "cpu" not in room.backend.isolation:
            pytest.skip(room.backend.isolation)
        launch = room.launch(f"python -c '{spin}'", cpus=0.2, cpu_limit=asked)
        assert room.run(launch).exit_code == 0
        assert float((launch.results / "log" / "trainer-0.log").read_text()) < allowed


def test_without_control_groups_memory_is_limited_for_each_process(tmp_path: Path) -> None:
    with Room(tmp_path, isolated=False) as room:
        task = room.run(room.launch("python -c 'x = bytearray(500 << 20)'", memory_bytes=64 << 20))
        assert task.exit_code == 1
        assert task.outcome == "out of memory: a process asked for more than its limit of 64.0 MiB"


@pytest.mark.parametrize("outlives", [False, True])
def test_no_control_group_is_left_after_the_last_task(tmp_path: Path, outlives: bool) -> None:
    room = Room(tmp_path)
    launch = room.launch("until [ -e $OUTPUT_PATH/go ]; do sleep 0.01; done")
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    folder = room.task_folder(launch)
    begun = folder.begun
    assert begun is not None
    if outlives:
        room.backend.close()
    wait_until((launch.results / "rank-0").is_dir, "the task has its folders")
    (launch.results / "rank-0" / "go").touch()
    wait_until(lambda: folder.ended, "the task ends")
    if not outlives:
        room.backend.close()
    groups = [Path(group).parent for group in begun.groups]
    wait_until(lambda: not any(group.exists() for group in groups), "the groups are removed")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], check=True)
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@AS_ROOT
@pytest.mark.root
@pytest.mark.parametrize("isolated", [True, False])
def test_on_a_full_disk_the_exit_code_is_not_lost(small_disk: Path, isolated: bool) -> None:
    with Room(small_disk, isolated=isolated) as room:
        launch = room.launch("cat /dev/zero > $OUTPUT_PATH/fill; exit 9")
        assert room.run(launch).exit_code == 9
        assert (launch.results / "rank-0" / "fill").stat().st_size > 0
        (launch.results / "rank-0" / "fill").unlink()


@AS_ROOT
@pytest.mark.root
def test_on_a_full_disk_a_start_says_so_and_leaves_nothing(small_disk: Path) -> None:
    with Room(small_disk) as room:
        fill = small_disk / "fill"
        with fill.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, os.statvfs(small_disk).f_bavail * 4096)
        launch = room.launch("true")
        with pytest.raises(BusyError, match="no space left"):
            room.backend.start(launch)
        assert room.backend.report([launch.handle]) == {}
        fill.unlink()
        assert room.run(launch).state is TaskState.SUCCEEDED


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("0.0.0.0", 0))
        return int(tried.getsockname()[1])
