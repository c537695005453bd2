"""Control groups of both versions, read from what the kernel prints on machines of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.runtime.cgroups import Groups, Hierarchy, Leaf, Limits, find, hierarchies, mounts, settings, writable

LIMITS = Limits(cpus=2.0, cpu_limit=False, memory_bytes=1 << 30, pids=100)
V1 = """\
33 30 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
34 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 30 0:30 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio
"""
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
UNIFIED = "36 30 0:31 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"


def _folders(found: list[Hierarchy]) -> dict[str, tuple[int, str]]:
    return {",".join(sorted(one.controllers)): (one.version, one.folder) for one in found}


def test_version_1_has_a_folder_for_each_controller() -> None:
    found = hierarchies("4:memory:/a/b\n3:blkio:/\n2:cpu,cpuacct:/c\n", V1)
    assert _folders(found) == {
        "memory": (1, "/sys/fs/cgroup/memory/a/b"),
        "cpu": (1, "/sys/fs/cgroup/cpu,cpuacct/c"),
    }


def test_version_2_has_one_folder(tmp_path: Path) -> None:
    (tmp_path / "user" / "me").mkdir(parents=True)
    (tmp_path / "user" / "me" / "cgroup.controllers").write_text("cpu memory pids\n")
    found = hierarchies("0::/user/me\n", V2.replace("/sys/fs/cgroup", str(tmp_path)))
    assert _folders(found) == {"cpu,memory,pids": (2, f"{tmp_path}/user/me")}


def test_hybrid_has_both() -> None:
    found = hierarchies("4:memory:/\n2:cpu,cpuacct:/\n0::/\n", V1 + UNIFIED)
    assert {(one.version, one.folder) for one in found} == {
        (1, "/sys/fs/cgroup/memory"),
        (1, "/sys/fs/cgroup/cpu,cpuacct"),
        (2, "/sys/fs/cgroup/unified"),
    }


def test_a_container_that_sees_part_of_the_hierarchy_finds_itself_in_it() -> None:
    mounts = "33 30 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    assert _folders(hierarchies("4:memory:/docker/abc/x\n", mounts)) == {"memory": (1, "/sys/fs/cgroup/memory/x")}
    assert _folders(hierarchies("4:memory:/docker/abc\n", mounts)) == {"memory": (1, "/sys/fs/cgroup/memory")}


@pytest.mark.parametrize(
    ("controller", "version", "expected"),
    [
        ("memory", 1, {"memory.limit_in_bytes": str(1 << 30), "memory.memsw.limit_in_bytes": str(1 << 30)}),
        ("memory", 2, {"memory.max": str(1 << 30), "memory.swap.max": "0"}),
        ("pids", 1, {"pids.max": "100"}),
        ("pids", 2, {"pids.max": "100"}),
        ("cpu", 1, {"cpu.shares": "2048"}),
        ("cpu", 2, {"cpu.weight": "79"}),
    ],
)
def test_limits_are_written_in_the_words_of_each_version(
    controller: str, version: int, expected: dict[str, str]
) -> None:
    assert {name: value for name, value, _ in settings(controller, version, LIMITS)} == expected


def test_cpus_are_capped_only_when_asked() -> None:
    capped = LIMITS._replace(cpu_limit=True, cpus=0.5)
    assert ("cpu.cfs_quota_us", "50000", True) in settings("cpu", 1, capped)
    assert ("cpu.max", "50000 100000", True) in settings("cpu", 2, capped)


def test_no_memory_limit_is_written_where_none_is_given() -> None:
    assert settings("memory", 1, LIMITS._replace(memory_bytes=0)) == []


@pytest.mark.parametrize(
    ("version", "name", "text", "expected"),
    [
        (1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", True),
        (1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", False),
        (2, "memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n", True),
        (2, "memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\n", False),
        (2, "memory.other", "", False),
    ],
)
def test_running_out_of_memory_is_seen(tmp_path: Path, version: int, name: str, text: str, expected: bool) -> None:
    (tmp_path / name).write_text(text)
    assert Leaf({"memory": (version, str(tmp_path))}, None).ran_out_of_memory() is expected


def test_where_no_group_can_be_made_none_is_used() -> None:
    found = find("name", [Hierarchy(1, frozenset({"memory"}), "/proc/nowhere", "/proc")])
    assert found == Groups({}, None, mounts())
    assert str(found) == "limits by rlimits, memory per process only"


def test_without_a_group_for_memory_its_limit_is_told_to_be_per_process() -> None:
    both = {"pids": (2, "/x"), "cpu": (2, "/x")}
    assert str(Groups(both, "/x")) == "limits by cgroups v2 (cpu, pids), memory per process only, cgroup.kill"
    assert "per process" not in str(Groups({"memory": (2, "/x")}, None))


@pytest.mark.parametrize("version", [1, 2])
def test_who_may_make_groups_is_told_by_owner_and_mode(tmp_path: Path, version: int) -> None:
    keeper = tmp_path / "keeper"
    keeper.mkdir()
    (tmp_path / "cgroup.subtree_control").touch()
    found = [Hierarchy(version, frozenset({"memory", "io"}), str(keeper), str(tmp_path))]
    owner = tmp_path.stat().st_uid
    assert writable(found, owner) == Groups({"memory": (version, str(tmp_path))}, None)
    assert writable(found, owner + 1) == Groups({}, None)
    assert writable([found[0]._replace(folder="/proc/nowhere")], owner) == Groups({}, None)
