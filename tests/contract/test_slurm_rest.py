"""Slurm by its REST service does what it does by its commands: the same backend, on the same real cluster."""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from paddlecloud.backends.base import Launch, RefusedError
from paddlecloud.backends.slurm import SlurmBackend
from paddlecloud.backends.slurmaddresses import Addresses
from paddlecloud.backends.slurmcalls import Calls, Commands
from paddlecloud.backends.slurmcluster import Cluster
from paddlecloud.backends.slurmnodes import Node
from paddlecloud.backends.slurmrest import Rest, request
from paddlecloud.backends.slurmstate import Seen
from paddlecloud.model.errors import ConfigError, UnreachableError
from paddlecloud.model.task import TaskState
from tests.launches import ended, make_launch, started, wait_for
from tests.slurm import Slurm
from tests.waiting import wait_until

Make = Callable[..., SlurmBackend]


@pytest.fixture
def token(slurm: Slurm, tmp_path: Path) -> Path:
    path = tmp_path / "root.token"
    path.write_text(slurm.run("scontrol", "token", "username=root", "lifespan=3600"))
    return path


@pytest.fixture
def make(slurm: Slurm, token: Path, tmp_path: Path) -> Make:
    def made(**more: str) -> SlurmBackend:
        options = {"account": slurm.account or "", **more}
        cluster = Cluster(name="hpc", python=sys.executable, options=options, accounts={}, grace_seconds=5)
        calls = Rest(f"{slurm.rest}/slurm/v0.0.38", f"{tmp_path}/{{account}}.token", "root")
        return SlurmBackend(tmp_path / "tasks", cluster, calls, clock=lambda: datetime.now(UTC))

    return made


def a_launch(folder: Path, *commands: str) -> Launch:
    return make_launch(folder / "results", *commands, job=f"job-{secrets.token_hex(16)}", memory_bytes=64 << 20)


def test_a_job_runs_and_tells_its_end(make: Make, tmp_path: Path) -> None:
    backend = make()
    launch = a_launch(tmp_path, "true", "exit 3", "true")
    backend.start(launch)
    tasks = wait_for(backend, launch.handle, ended).tasks
    assert [task.exit_code for task in tasks] == [0, 3, 0]
    backend.clean([launch.handle])


@pytest.mark.parametrize("count", [1, 2])
def test_a_job_is_stopped(make: Make, tmp_path: Path, count: int) -> None:
    backend = make()
    launch = a_launch(tmp_path, *["sleep 1000"] * count)
    backend.start(launch)
    wait_for(backend, launch.handle, started)
    backend.stop(launch.handle)
    assert {task.state for task in wait_for(backend, launch.handle, ended).tasks} == {TaskState.FAILED}


def test_what_waits_tells_why_and_can_be_stopped(make: Make, slurm: Slurm, tmp_path: Path) -> None:
    slurm.submit("sleep 1000", "--nodes=4", "--exclusive", f"--account={slurm.account}")
    try:
        backend = make()
        launch = a_launch(tmp_path, "true")
        backend.start(launch)
        report = wait_for(backend, launch.handle, lambda report: "(Resources)" in report.waits)
        assert "in the queue of Slurm on hpc" in report.waits
        backend.stop(launch.handle)
        wait_for(backend, launch.handle, ended)
    finally:
        slurm.empty()


def test_a_partition_that_is_not_there_is_refused_in_slurms_words(make: Make, tmp_path: Path) -> None:
    backend = make(partition="nowhere")
    with pytest.raises(RefusedError, match="partition"):
        backend.start(a_launch(tmp_path, "true"))


def test_an_option_that_the_service_has_no_word_for_is_refused(make: Make, tmp_path: Path) -> None:
    backend = make(exclusive="true")
    with pytest.raises(RefusedError, match="exclusive"):
        backend.start(a_launch(tmp_path, "true"))


def test_a_wrong_token_changes_nothing(make: Make, token: Path, tmp_path: Path) -> None:
    backend = make()
    token.write_text("SLURM_JWT=wrong")
    launch = a_launch(tmp_path, "true")
    with pytest.raises(UnreachableError):
        backend.start(launch)
    token.unlink()
    with pytest.raises(UnreachableError, match="token"):
        backend.start(launch)


def test_a_service_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "root.token").write_text("x")
    with pytest.raises(UnreachableError, match="does not answer"):
        Rest("http://127.0.0.1:1/slurm/v0.0.38", str(tmp_path / "root.token"), "root").jobs()


def test_a_cluster_that_does_not_answer_has_nothing_to_give(make: Make, token: Path) -> None:
    backend = make()
    assert backend.capacity() is None
    token.unlink()
    wait_until(lambda: not_answering(backend), "it says that it does not answer")


def not_answering(backend: SlurmBackend) -> bool:
    try:
        return backend.capacity() is not None
    except UnreachableError:
        return True


def test_the_nodes_are_those_that_the_commands_tell(make: Make, slurm: Slurm) -> None:
    by_commands = Commands(env=slurm.env)

    def told(calls: Calls) -> list[Node]:
        return sorted(calls.nodes(), key=lambda node: (node.partition, node.name))

    wait_until(lambda: told(make()._calls) == told(by_commands), "both tell the same")
    assert {node.name for node in by_commands.nodes()} == set(slurm.nodes)


def test_tasks_have_nodes_of_their_own(make: Make, slurm: Slurm, tmp_path: Path) -> None:
    backend = make()
    launch = replace(a_launch(tmp_path, "sleep 1000", "sleep 1000"), own_nodes=True)
    backend.start(launch)
    wait_for(backend, launch.handle, started)
    assert slurm.run("squeue", "--noheader", f"--name={launch.handle}", "--format=%D").strip() == "2"
    backend.stop(launch.handle)
    wait_for(backend, launch.handle, ended)


@pytest.mark.parametrize("url", ["http://ctl:6820", "ctl/slurm/v0.0.38", "http://ctl:6820/slurm"])
def test_an_address_without_its_version_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="version"):
        Rest(url, "token", "root")


def test_a_stranger_with_a_jobs_name_is_not_taken_for_it(make: Make, slurm: Slurm, tmp_path: Path) -> None:
    backend = make()
    launch = a_launch(tmp_path, "sleep 1000")
    backend.start(launch)
    wait_for(backend, launch.handle, started)
    seen = backend._calls.jobs()
    [own] = [one for one in seen.values() if one.name == launch.handle]
    assert own.user == "root"
    stranger = replace(own, id=own.id + 1, user="games")
    backend._calls = Told(backend._calls, {**seen, stranger.id: stranger})
    backend.stop(launch.handle)
    wait_for(backend, launch.handle, ended)
    assert stranger.id not in backend._calls.signalled


class Told:
    """Slurm with one more job in its answers, and a record of whom it was asked to signal."""

    def __init__(self, calls: Calls, seen: Mapping[int, Seen]) -> None:
        self.own = calls.own
        self.signalled: list[int] = []
        self._calls = calls
        self._more = seen

    def submit(self, script: str, account: str | None) -> int:
        return self._calls.submit(script, account)

    def jobs(self) -> Mapping[int, Seen]:
        return {**self._more, **self._calls.jobs()}

    def nodes(self) -> Sequence[Node]:
        return self._calls.nodes()

    def past(self, ids: Collection[int]) -> Mapping[int, Seen]:
        return self._calls.past(ids)

    def cancel(self, job: int, account: str | None) -> None:
        self.signalled.append(job)
        self._calls.cancel(job, account)

    def terminate(self, job: int, account: str | None, *, batch: bool) -> None:
        self.signalled.append(job)
        self._calls.terminate(job, account, batch=batch)

    def addresses(self) -> Collection[str]:
        return self._calls.addresses()


def test_what_the_service_refuses_to_tell_is_not_told_now(slurm: Slurm, token: Path) -> None:
    calls = Rest(f"{slurm.rest}/slurm/v0.0.1", str(token), "root")
    with pytest.raises(UnreachableError):
        calls.jobs()


def test_a_heterogeneous_script_is_several_jobs() -> None:
    script = '#!/bin/sh\n#SBATCH --ntasks=2\n#SBATCH --comment="a b"\n#SBATCH hetjob\n#SBATCH --gpus-per-task=1\ntrue\n'
    made = request(script)
    assert made["script"] == script
    assert [(job.get("tasks"), job.get("comment"), job.get("gpus_per_task")) for job in made["jobs"]] == [
        (2, "a b", None),
        (None, None, "1"),
    ]


def test_both_ways_tell_where_tasks_may_call_from(slurm: Slurm, token: Path) -> None:
    rest = Rest(f"{slurm.rest}/slurm/v0.0.38", str(token), "root")
    told = [sorted(calls.addresses()) for calls in (Commands(env=slurm.env), rest)]
    assert told[0] == told[1]
    assert len(told[0]) == 4
    nodes = Addresses(rest.addresses)
    assert all(nodes.has(socket.gethostbyname(name)) for name in told[0])
    assert not nodes.has("192.0.2.1")
