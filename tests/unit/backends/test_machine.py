"""What this machine has, less what the groups around us allow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlecloud.backends.machine import count_gpus, cpu_quotas, machine, memory_limits
from paddlecloud.runtime.cgroups import Hierarchy


def test_this_machine_has_cpus_and_memory() -> None:
    found = machine()
    assert 0 < found.cpus <= (os.cpu_count() or 1)
    assert found.memory_bytes > 1 << 20


def test_every_group_around_us_counts(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "outer" / "memory.max").write_text("1000\n")
    (inner / "memory.max").write_text("max\n")
    (tmp_path / "outer" / "cpu.max").write_text("max 100000\n")
    (inner / "cpu.max").write_text("150000 100000\n")
    found = [Hierarchy(2, frozenset({"cpu", "memory"}), str(inner), str(tmp_path))]
    assert memory_limits(found) == [1000]
    assert cpu_quotas(found) == [1.5]


def test_version_1_writes_no_quota_as_minus_one(tmp_path: Path) -> None:
    (tmp_path / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "cpu.cfs_period_us").write_text("100000\n")
    assert cpu_quotas([Hierarchy(1, frozenset({"cpu"}), str(tmp_path), str(tmp_path))]) == []


@pytest.mark.parametrize(
    ("script", "count"), [("echo 0; echo 1", 2), ("echo 'No devices were found'", 0), ("echo 0; exit 9", 0)]
)
def test_gpus_are_counted_as_nvidia_smi_lists_them(tmp_path: Path, script: str, count: int) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    assert count_gpus(str(program)) == count


def test_without_nvidia_smi_there_are_no_gpus(tmp_path: Path) -> None:
    assert count_gpus(str(tmp_path / "nvidia-smi")) == 0
