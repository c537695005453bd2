"""What Slurm's commands say is read, and whatever else they may say does no harm."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from paddlecloud.backends.base import BusyError, RefusedError
from paddlecloud.backends.slurmcalls import Commands, did_not_answer, read_line, read_past
from paddlecloud.backends.slurmstate import Seen
from paddlecloud.model.errors import ConfigError, UnreachableError

AT = datetime(2026, 11, 16, 18, 2, 25, tzinfo=UTC)
NO_PARTITION = "sbatch: error: Batch job submission failed: Invalid partition name specified"
POLICY = (
    "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size "
    "and/or time limits)"
)
QUIET = "2026-11-16T18:02:25"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (
            f"12|ann|PENDING|Resources|{QUIET}|N/A|job-1-1",
            Seen(id=12, name="job-1-1", user="ann", state="PENDING", reason="Resources", start_at=AT),
        ),
        (
            f"12+1|ann|RUNNING|None|{QUIET}|{QUIET}|job-1-1",
            Seen(id=12, name="job-1-1", user="ann", state="RUNNING", reason="None", start_at=AT, end_at=AT),
        ),
        (
            "12_[1-9%2]|ann|PENDING|Priority|N/A|N/A|arr",
            Seen(id=12, name="arr", user="ann", state="PENDING", reason="Priority"),
        ),
        (
            "12|ann|FAILED|NonZeroExitCode|x|9999-99-99|a|b|",
            Seen(id=12, name="a|b|", user="ann", state="FAILED", reason="NonZeroExitCode"),
        ),
        ("12|||||| ", Seen(id=12, name=" ", state="")),
        ("12|RUNNING|None", None),
        ("", None),
        ("slurm_load_jobs error: x|y|z|a|b|c", None),
        ("||||||", None),
    ],
)
def test_a_line_of_squeue(line: str, found: Seen | None) -> None:
    assert read_line(line) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (f"12|CANCELLED by 0|{QUIET}|{QUIET}", Seen(id=12, state="CANCELLED", start_at=AT, end_at=AT)),
        ("12+0|COMPLETED|None|Unknown", Seen(id=12, state="COMPLETED")),
        ("12.batch|FAILED|None", None),
        ("sacct: error|||", None),
        ("", None),
    ],
)
def test_a_line_of_sacct(line: str, found: Seen | None) -> None:
    assert read_past(line) == found


@pytest.mark.parametrize(
    "words",
    [
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "squeue: error: Unable to contact slurm controller (connect failure)",
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "sbatch: error: Munge encode failed: Failed to access the socket",
        "sbatch: error: Batch job submission failed: Protocol authentication error",
        "sbatch: error: ClusterName needs to be specified\nsbatch: fatal: Unable to process configuration file",
        "sacct: error: Sending PersistInit msg: Connection refused",
        "sacct: error: Problem talking to the database: Connection refused",
        "sbatch: error: Batch job submission failed: Slurm backup controller in standby mode",
    ],
)
def test_who_is_not_reached(words: str) -> None:
    assert did_not_answer(words)


@pytest.mark.parametrize(
    "words",
    [
        f"sbatch: error: invalid partition specified: munge\n{NO_PARTITION}",
        f"sbatch: error: invalid partition specified: Connection refused\n{NO_PARTITION}",
        "sbatch: unrecognized option '--slurmctld=1'\nTry \"sbatch --help\" for more information",
        "sbatch: error: Invalid --time specification",
        "sbatch: error: Batch job submission failed: Requested node configuration is not available",
        "sudo: a password is required",
        "",
    ],
)
def test_what_a_user_writes_does_not_make_slurm_silent(words: str) -> None:
    assert not did_not_answer(words)


def commands(folder: Path, seconds: float = 10.0, **scripts: str) -> Commands:
    """Commands of Slurm that are scripts of a test."""
    for name, text in {"sbatch": "true", **scripts}.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return Commands(env={"PATH": f"{folder}:{os.environ['PATH']}"}, seconds=seconds)


def test_without_slurm_on_the_machine_the_config_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="slurm-client"):
        Commands(env={"PATH": str(tmp_path)})


@pytest.mark.parametrize(
    ("words", "kind", "says"),
    [
        ("sbatch: error: Batch job submission failed: Invalid qos specification", RefusedError, "Invalid qos"),
        (
            f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{POLICY}",
            BusyError,
            "QOSMaxSubmitJobPerUserLimit",
        ),
        (f"sbatch: error: AssocGrpSubmitJobsLimit\n{POLICY}", BusyError, "AssocGrpSubmitJobsLimit"),
        ("sbatch: error: I/O error writing script/environment to file", BusyError, "I/O error"),
        (
            f"sbatch: error: AssocMaxWallDurationPerJobLimit\n{POLICY}",
            RefusedError,
            "AssocMaxWall",
        ),
        (
            "sbatch: error: Batch job submission failed: Required partition not available (inactive or drain)",
            BusyError,
            "inactive or drain",
        ),
        ("sbatch: error: Batch job submission failed: Slurm job queue full, sleeping and retrying", BusyError, "full"),
        (
            f"sbatch: error: invalid partition specified: too many jobs\n{NO_PARTITION}",
            RefusedError,
            "Invalid partition",
        ),
        ("sudo: a password is required", BusyError, "a password"),
        ("", RefusedError, "no word of why"),
    ],
)
def test_what_slurm_will_never_have_is_refused_and_what_it_will_not_have_now_waits(
    tmp_path: Path, words: str, kind: type[Exception], says: str
) -> None:
    (tmp_path / "words").write_text(words)
    with pytest.raises(kind, match=says):
        commands(tmp_path, sbatch=f"cat {tmp_path}/words >&2; exit 1").submit("#!/bin/sh\n", None)


def test_an_answer_without_a_number_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="no number"):
        commands(tmp_path, sbatch="echo hello").submit("", None)
    assert commands(tmp_path, sbatch="echo '12;cluster'").submit("", None) == 12


def test_after_silence_nobody_waits_again_and_the_accounts_are_silent_by_themselves(tmp_path: Path) -> None:
    made = commands(tmp_path, 0.3, squeue="exec sleep 100", sacct="echo '5|COMPLETED|None|None'", scancel="exit 0")
    with pytest.raises(UnreachableError, match="did not answer squeue within"):
        made.jobs()
    began = time.monotonic()
    with pytest.raises(UnreachableError, match="a moment ago"):
        made.cancel(5, None)
    assert time.monotonic() - began < 0.2
    assert made.past([5])[5].state == "COMPLETED"


def test_bytes_that_are_no_text_and_lines_that_are_no_jobs_are_passed_over(tmp_path: Path) -> None:
    made = commands(
        tmp_path, squeue=r"printf '5|ann|RUNNING|None|N/A|N/A|\377\nnoise\n\n6|ann|PENDING|None|N/A|N/A|job-1-1\n'"
    )
    assert {number: seen.state for number, seen in made.jobs().items()} == {5: "RUNNING", 6: "PENDING"}


def test_only_our_own_jobs_and_those_of_mapped_accounts_are_asked_for(tmp_path: Path) -> None:
    commands(tmp_path, squeue=f'echo "$@" > {tmp_path}/asked')
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    Commands(env=env, accounts=["nobody", "no-such-account"]).jobs()
    asked = (tmp_path / "asked").read_text().split()
    users = ",".join(map(str, sorted({os.geteuid(), 65534})))
    assert f"--user={users}" in asked


@pytest.mark.parametrize(
    "words", ["scancel: error: Invalid job id 5", "scancel: error: Job/step already completing", ""]
)
def test_what_has_just_ended_is_not_there_to_be_ended(tmp_path: Path, words: str) -> None:
    commands(tmp_path, scancel=f"echo '{words}' >&2; exit 1" if words else "exit 1").cancel(5, None)


def test_a_cluster_without_accounts_has_none(tmp_path: Path) -> None:
    made = commands(tmp_path, sacct="echo 'Slurm accounting storage is disabled' >&2; exit 1")
    assert made.past([5]) == {}
    assert made.past([]) == {}
