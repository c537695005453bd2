"""The root folder of a task on this machine: /pfs, what seed 001's programs find there, and what stays shut."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.backends.base import WHOLE_MACHINE, Mount, RefusedError, View
from paddlecloud.model.task import TaskState
from tests.contract.local import UID, Room, log
from tests.launches import make_launch

HOME = "/pfs/local/home/me@example.com"

# As seed 001 writes it, with its two placeholders filled in.
GEN_TRAIN_LIST = """
import glob

TRAIN_FILE_PATTERN = "/pfs/local/home/me@example.com/user001_space/part-*.gz"
TEST_FILE_PATTERN  = "/pfs/local/home/me@example.com/user001_space_test/part-*.gz"

def gen_train_list(data_dir):
    # write "/train.list" and "/test.list" for each node
    trainer_id = -1
    trainer_count = -1
    with open("/trainer_id", "r") as f:
        trainer_id = int(f.readline()[:-1])
    with open("/trainer_count", "r") as f:
        trainer_count = int(f.readline()[:-1])

    train_file_list = glob.glob(TRAIN_FILE_PATTERN)
    train_file_list.sort()
    my_train_list = []
    for idx, f in enumerate(train_file_list):
        if idx % trainer_count == trainer_id:
            my_train_list.append(f)
    with open("/train.list", "w") as f:
        f.write('\\n'.join(my_train_list))

    test_file_list = glob.glob(TEST_FILE_PATTERN)
    test_file_list.sort()
    my_test_list = []
    for idx, f in enumerate(test_file_list):
        if idx % trainer_count == trainer_id:
            my_test_list.append(f)
    with open("/test.list", "w") as f:
        f.write('\\n'.join(my_test_list))

gen_train_list("unused")
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The folder of the datacenters, with one that has two users."""
    local = tmp_path / "data/pfs/local"
    (local / "home/me@example.com/package").mkdir(parents=True)
    (local / "home/me@example.com/package/train.py").write_text("print('trained')\n")
    (local / "home/other").mkdir()
    (local / "home/other/model").write_text("secret")
    (local / "public/dataset").mkdir(parents=True)
    (local / "public/dataset/words").write_text("for all\n")
    return local.parent


@pytest.fixture
def mounts(store: Path) -> list[Mount]:
    public = store / "local/public"
    return [
        Mount(source=public, target="/pfs/public", writable=False),
        Mount(source=public, target="/pfs/local/public", writable=False),
        Mount(source=store / "local/home/me@example.com", target=HOME, writable=True),
    ]


@pytest.fixture(params=["of one person", "shared"])
def room(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Room]:
    data = tmp_path / "data"
    shared = request.param == "shared"
    view, uid = (View(), UID) if shared else (WHOLE_MACHINE, None)
    with Room(data, hidden=(data,), view=view, uid=uid) as room:
        if "mount" not in room.backend.isolation:
            pytest.skip(room.backend.isolation)
        yield room


def said(room: Room, command: str, mounts: list[Mount], cwd: str | None = None) -> str:
    launch = room.launch(command, mounts=mounts, cwd=cwd)
    room.run(launch)
    return log(launch)


def test_seed_001s_gen_train_list_runs_as_it_is_written(room: Room, store: Path, mounts: list[Mount]) -> None:
    home = store / "local/home/me@example.com"
    (home / "package/train.py").write_text(GEN_TRAIN_LIST)
    for folder, count in (("user001_space", 5), ("user001_space_test", 2)):
        (home / folder).mkdir()
        for number in range(count):
            (home / folder / f"part-{number}.gz").touch()
    command = "python train.py && cat /train.list && echo && cat /test.list"
    launch = room.launch(command, command, mounts=mounts, cwd=f"{HOME}/package")
    room.run(launch)
    train, test = f"{HOME}/user001_space/part-{{}}.gz", f"{HOME}/user001_space_test/part-{{}}.gz"
    expected = [[train.format(0), train.format(2), train.format(4), test.format(0)]]
    expected += [[train.format(1), train.format(3), test.format(1)]]
    assert [log(launch, f"trainer-{rank}").splitlines() for rank in range(2)] == expected
    assert not Path("/train.list").exists()


@pytest.mark.parametrize(
    ("path", "writable"),
    [
        ("/new", True),
        ("/run/new", True),
        ("/tmp/new-of-a-test", True),
        ("/var/tmp/new-of-a-test", True),
        ("/dev/shm/new-of-a-test", True),
        (f"{HOME}/new", True),
        ("$PWD/new", True),
        ("$HOME/new", True),
        ("$TMPDIR/new", True),
        ("$OUTPUT_PATH/new", True),
        ("/pfs/new", False),
        ("/pfs/local/new", False),
        ("/pfs/local/home/new", False),
        ("/pfs/public/new", False),
        ("/pfs/local/public/new", False),
        ("/pfs/public/dataset/words", False),
        ("/usr/new", False),
        ("/bin/new", False),
        ("/etc/new", False),
        ("/etc/passwd", False),
        ("/var/new", False),
        ("/sys/kernel/new", False),
    ],
)
def test_what_a_task_may_write_is_its_own_and_what_is_for_all(
    room: Room, mounts: list[Mount], path: str, writable: bool
) -> None:
    # What is there is written to, but nothing into it.
    remove = f"rm {path}" if path.endswith(("new", "test")) else "true"
    assert said(room, f": >> {path} && echo written && {remove}", mounts).endswith("written\n") is writable


def test_the_pfs_is_what_is_the_users_and_what_is_for_all(room: Room, store: Path, mounts: list[Mount]) -> None:
    look = "find /pfs -mindepth 1 | LC_ALL=C sort; cat /pfs/public/dataset/words"
    keep = "echo kept > $PADDLECLOUD_PFS/local/home/me@example.com/kept"
    assert said(room, f"{look}; {keep}", mounts).splitlines() == [
        "/pfs/local",
        "/pfs/local/home",
        HOME,
        f"{HOME}/package",
        f"{HOME}/package/train.py",
        "/pfs/local/public",
        "/pfs/local/public/dataset",
        "/pfs/local/public/dataset/words",
        "/pfs/public",
        "/pfs/public/dataset",
        "/pfs/public/dataset/words",
        "for all",
    ]
    assert (store / "local/home/me@example.com/kept").read_text() == "kept\n"


@pytest.mark.parametrize(
    "way",
    [
        "cat {store}/local/home/other/model",
        f"cat {HOME}/../other/model",
        f"cd {HOME} && cat ../other/model ../../../../{{store}}/local/home/other/model",
        f"ln -s {{store}}/local/home/other {HOME}/link; cat {HOME}/link/model",
        f"ln {{store}}/local/home/other/model {HOME}/hard; cat {HOME}/hard",
        f"cat {HOME}/planted/model",
        "cat /pfs/local/home/*/model {store}/*/home/*/model",
        "cat /..{store}/local/home/other/model /proc/1/root{store}/local/home/other/model",
        "cat /proc/*/cwd/../../other/model",
        "umount /pfs/local/home/me@example.com; umount {store}; cat {store}/local/home/other/model",
    ],
)
def test_no_way_leads_to_another_users_files(room: Room, store: Path, mounts: list[Mount], way: str) -> None:
    (store / "local/home/me@example.com/planted").symlink_to(store / "local/home/other")
    assert "secret" not in said(room, way.format(store=store), mounts)
    assert (store / "local/home/other/model").read_text() == "secret"


def test_the_old_root_cannot_be_reached_by_whoever_may_change_roots(room: Room, mounts: list[Mount]) -> None:
    python = (
        'import os; os.mkdir("/d"); os.chroot("/d"); [os.chdir("..") for _ in range(64)]; os.chroot("."); '
        'print(os.path.exists("/trainer_id")); open("/usr/new", "w"); print("written")'
    )
    found = said(room, f"cat /../trainer_id; python -c '{python}'", mounts)
    assert found.startswith("0\n")
    assert "written" not in found
    assert "False" not in found


def test_a_persons_task_sees_that_persons_machine_and_any_other_a_short_list(room: Room, mounts: list[Mount]) -> None:
    found = set(said(room, "ls -A /", mounts).splitlines())
    if room.view.whole_machine:
        assert found >= set(os.listdir("/"))
        assert found - set(os.listdir("/")) == {"pfs", "trainer_id", "trainer_count"}
        return
    programs = {"bin", "lib", "lib32", "lib64", "libx32", "sbin", "usr"} & set(os.listdir("/"))
    own = {str(path).split("/")[1] for path in (room.folder, sys.base_prefix, room.uv) if path is not None}
    assert found - own == programs | {
        "dev",
        "etc",
        "pfs",
        "proc",
        "run",
        "sys",
        "tmp",
        "var",
        "trainer_id",
        "trainer_count",
    }


def test_a_task_finds_no_one_in_run_who_starts_processes_for_it(room: Room, mounts: list[Mount]) -> None:
    """Whoever asks systemd, D-Bus or a container engine gets a process outside all walls, also as a plain user."""
    asked = "systemd/private dbus/system_bus_socket user docker.sock containerd podman secrets"
    assert (
        said(room, f"cd /run; for name in {asked}; do [ -e $name ] && echo $name; done; find . -type s", mounts) == ""
    )


def test_a_task_opens_no_disk(room: Room, mounts: list[Mount]) -> None:
    if not os.path.isdir("/sys/class/block"):
        pytest.skip("this machine shows no disks")
    look = "find /dev -type b | while read disk; do test -b $disk -a -r $disk && echo $disk; done; echo done"
    assert said(room, look, mounts) == "done\n"


def test_the_top_of_the_root_is_private_small_and_gone_afterwards(room: Room, mounts: list[Mount]) -> None:
    found = said(room, "echo mine > /shared; head -c 200m /dev/zero > /large; stat -c %s /large", mounts)
    assert 60 << 20 < int(found.splitlines()[-1]) <= 64 << 20
    assert "No such file" in said(room, "cat /shared", mounts)
    assert not Path("/shared").exists()


def test_a_task_starts_in_the_folder_it_is_told(room: Room, mounts: list[Mount]) -> None:
    found = said(room, "pwd; echo $PWD $TRAINER_PACKAGE; python train.py", mounts, f"{HOME}/package")
    assert found == f"{HOME}/package\n{HOME}/package {HOME}/package\ntrained\n"


def test_a_folder_to_start_in_that_is_not_there_is_named(room: Room, mounts: list[Mount]) -> None:
    task = room.run(room.launch("true", mounts=mounts, cwd=f"{HOME}/gone"))
    assert task.reason == f"could not start: No such file or directory ({HOME}/gone)"


def test_results_are_seen_within_the_home(room: Room, tmp_path: Path, mounts: list[Mount]) -> None:
    (tmp_path / "data/results/earlier").mkdir(parents=True)
    output = Mount(source=tmp_path / "data/results", target=f"{HOME}/output", writable=False)
    found = said(room, f"ls {HOME}/output; touch {HOME}/output/new || echo no", [output, *mounts])
    assert "earlier\n" in found
    assert found.endswith("no\n")


def test_no_folder_is_shown_through_a_link_of_the_users(room: Room, store: Path, mounts: list[Mount]) -> None:
    (store / "local/home/me@example.com/output").symlink_to("/etc")
    output = Mount(source=store / "local/home/other", target=f"{HOME}/output", writable=False)
    task = room.run(room.launch("true", mounts=[*mounts, output]))
    assert (task.state, task.exit_code) == (TaskState.FAILED, None)
    assert task.reason.startswith("could not start: Not a directory")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a folder in /var")
@pytest.mark.root
def test_a_servers_folder_below_a_system_folder_leaves_tasks_what_is_theirs(mounts: list[Mount]) -> None:
    with tempfile.TemporaryDirectory(prefix="paddlecloud-test-", dir="/var/lib") as folder:
        with Room(Path(folder), hidden=(Path(folder),)) as room:
            if "mount" not in room.backend.isolation:
                pytest.skip(room.backend.isolation)
            written = said(room, "python -c 1 && touch here $HOME/x $TMPDIR/x $OUTPUT_PATH/x && echo all", mounts)
            refused = said(room, f"touch {folder}/new $LOCAL_MOUNT_PATH/x || echo none", mounts)
        assert written == "all\n"
        assert refused.endswith("none\n")


def test_without_mounts_of_its_own_a_task_is_told_where_the_pfs_is(tmp_path: Path, store: Path) -> None:
    mount = Mount(source=store / "local/home/me@example.com", target=HOME, writable=True)
    with Room(tmp_path / "bare", isolated=False) as room:
        launch = room.launch("pwd; echo $PADDLECLOUD_PFS", mounts=[mount], cwd=f"{HOME}/package", pfs=store)
        room.run(launch)
        assert log(launch) == f"{mount.source}/package\n{store}\n"


def test_where_tasks_cannot_be_isolated_they_start_only_if_that_is_allowed(tmp_path: Path) -> None:
    with Room(tmp_path, isolated=False) as room:
        assert not room.backend.isolated
        running = room.launch("true")
        room.run(running)
        room.allow_unisolated = False
        launch = room.launch("true")
        with pytest.raises(RefusedError, match="isolate = false.*set it to true.*allow"):
            room.backend.start(launch)
        assert room.backend.report([launch.handle]) == {}
        room.backend.start(running)


def test_where_tasks_are_isolated_nobody_is_asked(room: Room) -> None:
    room.allow_unisolated = False
    assert room.backend.isolated
    assert room.run(room.launch("true")).exit_code == 0


def test_tasks_of_two_jobs_listen_on_the_port_of_paddlepaddle_cloud_at_once(tmp_path: Path) -> None:
    python = (
        "import os, socket, time; here = (os.environ['POD_IP'], int(os.environ['PADDLE_INIT_PORT']))\n"
        "s = socket.create_server(here); open(os.environ['OUTPUT_PATH'] + '/listens', 'w')\n"
        "while not os.path.exists(os.environ['OTHER']): time.sleep(0.01)\n"
        "print(s.getsockname())"
    )
    with Room(tmp_path) as room:
        jobs = ["job-" + letter * 32 for letter in "ab"]
        launches = [
            make_launch(
                tmp_path / "results" / job,
                f'python -c "{python}"',
                job=job,
                address=f"127.0.77.{number}",
                env={"OTHER": str(tmp_path / "results" / jobs[1 - number] / "rank-0/listens")},
            )
            for number, job in enumerate(jobs)
        ]
        for launch in launches:
            room.backend.start(launch)
        for number, launch in enumerate(launches):
            assert room.run(launch).exit_code == 0, log(launch)
            assert log(launch) == f"('127.0.77.{number}', 7164)\n"
