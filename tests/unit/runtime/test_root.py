"""The plan of a task's root folder, a pure function: what is in it, what may be written, what is left out."""

from __future__ import annotations

import stat

import pytest

from paddlecloud.runtime.folder import TaskFolder
from paddlecloud.runtime.machine import Entry, Machine
from paddlecloud.runtime.root import Bind, Cover, Device, File, Link, Memory, Plan, Room, accounts, plan
from paddlecloud.runtime.taskfile import TaskFile
from tests.unit.runtime.orders import alone

FOLDER = TaskFolder("/data/tasks/job-1-1/trainer-0")
PEOPLE, SERVERS = "/home", "/home/lab/data"


def folder(path: str) -> Entry:
    return Entry(path, stat.S_IFDIR | 0o755)


MACHINE = Machine(
    top=[*map(folder, ("/usr", "/home", "/root", "/srv", "/opt", "/etc", "/var", "/sys")), Entry("/bin", 0, "usr/bin")],
    run=[folder("/run/systemd/resolve")],
    etc_files={"resolv.conf": b"nameserver 127.0.0.53\n"},
    etc_folders=[folder("/etc/ssl")],
    gpu_devices=["/dev/nvidia0", "/dev/nvidiactl"],
    account=1000,
    interpreters=["/opt/python"],
    hidden={SERVERS: folder(SERVERS)},
    movable={SERVERS: ["/home/lab"]},
)


def made(**changes: object) -> Plan:
    return plan(alone(hidden=[SERVERS], **changes), FOLDER, MACHINE, None, building=False)


def shown(found: Plan) -> dict[str, Bind]:
    return {step.target: step for step in (*found.fixed, *found.own) if isinstance(step, Bind)}


def test_a_task_sees_programs_and_its_own_folders_and_nothing_else_of_the_machine() -> None:
    found = made()
    assert set(shown(found)) == {
        "/usr", "/sys", "/etc/ssl", "/opt/python", "/tmp", "/var/tmp", "/x/bin", FOLDER.own, "/results",
    }  # fmt: skip
    assert Link("/bin", "usr/bin") in found.fixed
    assert File("/etc/resolv.conf", b"nameserver 127.0.0.53\n") in found.fixed
    assert not [step for step in found.own if isinstance(step, Cover)]


def test_only_its_own_folders_are_writable() -> None:
    writable = {target for target, step in shown(made()).items() if not step.read_only}
    assert writable == {"/tmp", "/var/tmp", FOLDER.own, "/results"}
    assert all(step.read_only for step in made().fixed if isinstance(step, Bind))


def test_what_the_operator_lists_is_visible_as_it_is_listed() -> None:
    found = shown(made(visible=["/data/sets"], visible_writable=["/scratch"]))
    assert found["/data/sets"].read_only
    assert not found["/scratch"].read_only
    assert found["/scratch"].optional  # one node may lack it


def test_the_servers_files_are_covered_where_a_visible_folder_holds_them() -> None:
    found = made(visible_writable=["/home"])
    assert Cover(SERVERS, is_folder=True) in found.own
    # A task that may rename the folder above would otherwise look into it at its new place.
    assert Bind("/home/lab", "/home/lab", read_only=False) in found.own


def test_a_data_folder_below_tmp_is_not_shown_to_be_covered() -> None:
    at = folder("/tmp/lab/data")
    machine = MACHINE._replace(hidden={at.path: at}, movable={at.path: ["/tmp/lab"]})
    found = plan(alone(hidden=[at.path]), FOLDER, machine, None, building=False)
    assert "/tmp/lab" not in shown(found)
    assert not [step for step in found.own if isinstance(step, Cover)]


def test_a_persons_own_server_shows_that_persons_machine_without_the_servers_files() -> None:
    found = made(whole_machine=True)
    assert {"/home", "/root", "/srv", "/opt"} <= {at for at, step in shown(found).items() if not step.read_only}
    assert {"/usr", "/etc", "/var"} <= {at for at, step in shown(found).items() if step.read_only}
    assert Cover(SERVERS, is_folder=True) in found.own
    assert not shown(found)["/tmp"].source.startswith("/tmp")


@pytest.mark.parametrize(
    ("changes", "devices"),
    [({}, []), ({"gpus": [1]}, MACHINE.gpu_devices), ({"whole_machine": True}, MACHINE.gpu_devices)],
)
def test_gpus_are_there_for_tasks_that_asked_for_some(changes: dict[str, object], devices: list[str]) -> None:
    found = [step.path for step in made(**changes).devices if isinstance(step, Device)]
    assert [path for path in found if "nvidia" in path] == devices


def test_shared_memory_is_within_the_tasks_limit_and_its_accounts() -> None:
    [memory] = [step for step in made(uid=7, memory_bytes=1 << 30).devices if getattr(step, "target", "") == "/dev/shm"]
    assert memory == Memory("/dev/shm", f"mode=1777,uid=7,gid=7,size={1 << 30}")


def test_the_environment_of_a_task_is_writable_only_while_it_is_built() -> None:
    for building in (True, False):
        found = shown(plan(alone(), FOLDER, MACHINE, "/data/environments/me/1", building=building))
        assert found["/data/environments/me/1"].read_only is not building


@pytest.mark.parametrize(
    ("uid", "account", "lines"),
    [
        (None, "lab", ["root:x:0:0::/:/bin/sh", "lab:x:1000:1000::/run/home:/bin/sh"]),
        (7, "ann@example.com", ["root:x:0:0::/:/bin/sh", "ann@example.com:x:7:7::/run/home:/bin/sh"]),
        (7, "root", ["root:x:7:7::/run/home:/bin/sh"]),
        (0, "root", ["root:x:0:0::/run/home:/bin/sh"]),
    ],
)
def test_passwd_names_root_and_the_account_of_the_task(uid: int | None, account: str, lines: list[str]) -> None:
    task: TaskFile = alone(uid=uid, account=account, shared={"/pfs/a/shared/lab": 99})
    found = accounts(task, 1000)
    assert found["passwd"].splitlines() == lines
    assert "shared99:x:99:" in found["group"]


def test_the_pfs_is_sealed_around_the_folders_that_the_task_may_see() -> None:
    mounts = {"/pfs/a/home/me": "/data/pfs/a/home/me", "/pfs/a/public": "/data/pfs/a/public"}
    found = shown(made(mounts=mounts, writable=["/pfs/a/home/me"]))
    assert [found[target].read_only for target in sorted(mounts)] == [False, True]


def test_a_small_etc_that_is_ready_is_one_mount_with_the_folders_in_it() -> None:
    ready = MACHINE._replace(etc="/data/tasks/.etc-1-1", etc_folders=[folder("/etc/ssl"), Entry("/etc/java", 0, "x")])
    found = plan(alone(), FOLDER, ready, None, building=False)
    assert Bind("/data/tasks/.etc-1-1", "/etc") in found.fixed
    assert Bind("/etc/ssl", "/etc/ssl", is_folder=True) in found.fixed
    assert not [step for step in found.fixed if isinstance(step, (File, Link)) and step.target.startswith("/etc/")]


def test_a_folder_of_the_pfs_is_also_where_a_job_of_openpai_asks_for_it() -> None:
    mounts = {"/pfs/a/shared/sets": "/data/sets", "/mnt/sets": "/data/sets"}
    found = made(mounts=mounts, writable=["/mnt/sets"])
    assert [one.read_only for target, one in sorted(shown(found).items()) if target in mounts] == [False, True]
    assert Room("/mnt/sets") in found.own
