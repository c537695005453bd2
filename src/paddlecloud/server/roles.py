"""The rules that a role of a job must keep for the job to be accepted: pure."""

from __future__ import annotations

import math
import re

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import NOTHING, Resources, RoleSpec

COMMAND_BYTES = 100_000
RESTARTS = 100
PORTS_OF_A_TASK = 100
_AWAITED_SECONDS = 86_400
_ROLE_NAME = re.compile(r"[A-Za-z0-9_~][A-Za-z0-9._~-]{0,62}")
_LABEL = re.compile(r"[A-Za-z0-9._~]{1,63}")


def check_role(role: RoleSpec, where: str, seen: set[str]) -> None:
    if not _ROLE_NAME.fullmatch(role.name) or role.name in seen:
        raise InvalidError(
            f"{where}.name {role.name!r} must be letters, digits, _, ~, . and -, 63 at most, and only once in a job",
            field=f"{where}.name",
        )
    if role.count < 1:
        raise InvalidError(
            f"{where}.count (instance_count) is {role.count}; it must be at least 1", field=f"{where}.count"
        )
    check_text(role.command, f"{where}.command", COMMAND_BYTES)
    if not role.command.strip():
        raise InvalidError(f"{where}.command (start_cmd) is empty: say what to run", field=f"{where}.command")
    if role.min_failed is not None and not 1 <= role.min_failed <= role.count:
        raise InvalidError(f"{where}.min_failed must be from 1 to count ({role.count})", field=f"{where}.min_failed")
    if not 0 <= role.successes_needed <= role.count:
        raise InvalidError(
            f"{where}.min_succeeded must be from 0 to count ({role.count})", field=f"{where}.min_succeeded"
        )
    if not 0 <= role.restarts <= RESTARTS:
        raise InvalidError(f"{where}.restarts must be from 0 to {RESTARTS}", field=f"{where}.restarts")
    if role.awaited_seconds is not None and not 0 <= role.awaited_seconds <= _AWAITED_SECONDS:
        raise InvalidError(
            f"{where}.awaited_seconds must be from 0 to {_AWAITED_SECONDS}", field=f"{where}.awaited_seconds"
        )
    if role.resources is not None:
        _check_resources(role.resources, f"{where}.resources")
    if not 0 <= role.shared_memory_bytes <= 2**60:
        raise InvalidError(f"{where}.shared_memory_bytes is no size", field=f"{where}.shared_memory_bytes")
    _check_ports(role, f"{where}.ports")


def _check_ports(role: RoleSpec, where: str) -> None:
    for label, asked in role.ports.items():
        place = f"{where}.{label[:63]}"
        if not _LABEL.fullmatch(label):
            raise InvalidError(f"{place}: a label must be letters, digits, _, . and ~, 63 at most", field=place)
        if asked.count < 1 or not (asked.begin == 0 or 1 <= asked.begin <= 65536 - asked.count):
            raise InvalidError(f"{place}: {asked.count} ports from {asked.begin} on cannot be", field=place)
    if (count := sum(asked.count for asked in role.ports.values())) > PORTS_OF_A_TASK:
        raise InvalidError(f"{where} asks for {count} ports of a task; {PORTS_OF_A_TASK} is the most", field=where)


def _check_resources(asked: Resources, where: str) -> None:
    """What is 0 is not asked for, but something must be."""
    if not math.isfinite(asked.cpus) or not 0 <= asked.cpus <= 100_000:
        raise InvalidError(f"{where}.cpus {asked.cpus} is not a number of CPUs", field=f"{where}.cpus")
    if not 0 <= asked.memory_bytes <= 2**60:
        raise InvalidError(
            f"{where}.memory_bytes {asked.memory_bytes} is not a number of bytes", field=f"{where}.memory_bytes"
        )
    if not 0 <= asked.gpus <= 100_000:
        raise InvalidError(f"{where}.gpus {asked.gpus} is not a number of GPUs", field=f"{where}.gpus")
    if asked == NOTHING:
        raise InvalidError(f"{where} asks for nothing: leave it out to get the default", field=where)


def check_text(text: str, where: str, most: int) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidError(f"{where} is not valid UTF-8", field=where) from None
    if "\0" in text:
        raise InvalidError(f"{where} contains a NUL byte", field=where)
    if size > most:
        raise InvalidError(f"{where} is {size} bytes long; {most} is the most: put it into a file", field=where)
