"""What this machine has to give out: CPUs, memory and GPUs, as far as this process may use them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from paddlecloud.model.job import Resources
from paddlecloud.runtime import cgroups
from paddlecloud.runtime.cgroups import Hierarchy

_NVIDIA_SMI_SECONDS = 20


def machine() -> Resources:
    """All of it, or less where an affinity or a group of ours sets a limit."""
    found = cgroups.hierarchies_of()
    return Resources(
        cpus=min([float(len(os.sched_getaffinity(0))), *cpu_quotas(found)]),
        memory_bytes=min([_memory_total(), *memory_limits(found)]),
        gpus=count_gpus(),
    )


def cpu_quotas(found: list[Hierarchy]) -> list[float]:
    """The CPUs that each group around us allows, where it sets a quota."""
    quotas = []
    for folder, version in _around(found, "cpu"):
        if version == 2:
            quota, _, period = _text(folder / "cpu.max").partition(" ")
        else:
            quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(quota) > 0:
            quotas.append(int(quota) / int(period))
    return quotas


def memory_limits(found: list[Hierarchy]) -> list[int]:
    """The bytes that each group around us allows, where it sets a limit."""
    names = {1: "memory.limit_in_bytes", 2: "memory.max"}
    limits = [_text(folder / names[version]) for folder, version in _around(found, "memory")]
    return [int(limit) for limit in limits if limit.isdigit()]


def count_gpus(program: str = "nvidia-smi") -> int:
    """NVIDIA's GPUs; none where its tool is missing or does not answer."""
    path = shutil.which(program)
    if path is None:
        return 0
    try:
        answer = subprocess.run(
            [path, "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=_NVIDIA_SMI_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return sum(line.strip().isdigit() for line in answer.stdout.splitlines()) if answer.returncode == 0 else 0


def _around(found: list[Hierarchy], controller: str) -> list[tuple[Path, int]]:
    """Every group from ours up to the root of the mount: a limit on any of them holds for us."""
    groups = []
    for hierarchy in found:
        if controller not in hierarchy.controllers:
            continue
        folder, mount = Path(hierarchy.folder), Path(hierarchy.mount)
        groups += [(above, hierarchy.version) for above in (folder, *folder.parents) if above.is_relative_to(mount)]
    return groups


def _memory_total() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
