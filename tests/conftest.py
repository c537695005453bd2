"""What tests of every kind may ask for."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import hdfs, s3
from tests import postgres as engine
from tests import slurm as slurm_engine
from tests.absent import absent
from tests.hdfs import Hdfs
from tests.postgres import Postgres
from tests.s3 import S3Server
from tests.slurm import Slurm

# What a shell starts in the background ignores Ctrl-C, and so would every command that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Not below /tmp: tasks have a /tmp of their own, and jobs of many tests read what the test put into its folder.
_SCRATCH = Path("/srv/paddlecloud-tests") if os.geteuid() == 0 else Path.home() / ".cache/paddlecloud-tests"
_SCRATCH.mkdir(parents=True, exist_ok=True)
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_SCRATCH))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("absent"):
        if mark.args[0]:
            absent(mark.args[0])


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One PostgreSQL for all tests of this process, each of which makes databases of its own."""
    with engine.running() as made:
        yield made


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One S3 server for all tests of this process, each of which has stores of its own there."""
    with s3.running() as made:
        yield made


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """One Slurm of four nodes for all tests of this process; whoever stops a part of it starts it again."""
    with slurm_engine.running() as made:
        yield made


@pytest.fixture(scope="session")
def hdfs_cluster() -> Iterator[Hdfs]:
    """One HDFS for all tests of this process, each of which has stores of its own there."""
    with hdfs.running() as made:
        yield made
