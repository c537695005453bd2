"""Backends by name."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path

import pytest

from paddlecloud.backends import examine
from paddlecloud.backends.load import Setup, load
from paddlecloud.backends.machine import machine
from paddlecloud.model.errors import ConfigError


def _setup(root: Path, cpus: float | None = None) -> Setup:
    return Setup(
        root=root,
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        wake=lambda: None,
        grace_seconds=1,
        gate_seconds=1,
        build_seconds=60,
        cpus=cpus,
    )


def test_the_config_may_say_less_or_more_than_the_machine_has(tmp_path: Path) -> None:
    backend = load("local", _setup(tmp_path, cpus=64))
    capacity = backend.capacity()
    backend.close()
    assert capacity is not None
    assert (capacity.cpus, capacity.memory_bytes) == (64, machine().memory_bytes)


def test_the_config_may_do_without_isolation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    backend = load("local", dataclasses.replace(_setup(tmp_path), isolate=False))
    isolation, memory_limit = getattr(backend, "isolation", ""), examine.memory_limit_of(backend)
    backend.close()
    assert isolation == "one account for all tasks, no namespaces; limits by rlimits, memory per process only"
    assert memory_limit == "process"
    assert [record.getMessage() for record in caplog.records if "memory limit holds per process only" in record.message]


def test_an_unknown_backend_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'local'"):
        load("locl", _setup(tmp_path))
