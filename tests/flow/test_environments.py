"""A job's own packages by the real command: built once, in the job's log, counted by df, and gone by last use."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from paddlecloud.model.state import JobState
from tests.flow.lab import Lab, processes_with
from tests.waiting import wait_until
from tests.wheels import wheel


def with_package(lab: Lab, folder: Path) -> None:
    packages = folder / "packages"
    wheel(packages, "greeting", "WORDS = 'hello from a package'\n")
    lab.folder(
        run_sh="python -c 'import greeting; print(greeting.WORDS)'\n",
        requirements_txt=f"--no-index\n--find-links {packages}\ngreeting\n",
    )


def test_requirements_in_the_folder_are_installed_once_and_go_by_last_use(lab: Lab, tmp_path: Path) -> None:
    lab.configure('[retention]\nenvironments = "1s"\n')
    with_package(lab, tmp_path)
    first = lab.type("run", "job", "--", "sh", "run.sh").stdout
    assert "building its environment from requirements.txt" in first
    assert "hello from a package" in first
    second = lab.type("run", "job", "--", "sh", "run.sh").stdout
    assert "building" not in second
    assert "hello from a package" in second
    shares = json.loads(lab.out("df", "--now", "-o", "json"))["shares"]
    [share] = [one for one in shares if one["kind"] == "environments"]
    assert share["used"]["files"] > 10
    kept = lab.data / "environments"
    wait_until(
        lambda: lab.out("df", "--collect") and not [path for path in kept.glob("*/*") if path.is_dir()],
        "all have been unused for a second",
    )
    assert "building" in lab.type("run", "job", "--", "sh", "run.sh").stdout


def test_a_build_that_fails_and_a_setup_that_fails_are_told_apart(lab: Lab, tmp_path: Path) -> None:
    with_package(lab, tmp_path)
    (lab.work / "job" / "requirements.txt").write_text("--no-index\nnosuchpackage\n")
    job = lab.out("submit", "job", "--", "sh", "run.sh").split()[-1]
    lab.ends(job, "failed")
    assert "its environment could not be built from requirements.txt: nosuchpackage" in lab.field(job, "error_msg")
    (lab.work / "job.yaml").write_text(
        "workdir: job\nrun: echo ran\nrequirements: none\nsetup: [export GREETING=hi, test -d missing]\n"
    )
    job = lab.out("submit", "-f", "job.yaml").split()[-1]
    lab.ends(job, "failed")
    assert lab.out("logs", job) == "paddlecloud: setup failed: test -d missing\n"
    (lab.work / "job.yaml").write_text(
        "workdir: job\nrun: echo $GREETING\nrequirements: none\nsetup: [export GREETING=hi]\n"
    )
    job = lab.out("submit", "-f", "job.yaml").split()[-1]
    lab.ends(job, "success")
    assert lab.out("logs", job) == "hi\n"


def with_slow_package(lab: Lab, folder: Path) -> Path:
    """A job whose package is built once the file that is returned is there."""
    gate, source = folder / "gate", folder / "slow"
    made = wheel(folder, "slow", "WORDS = 'built'\n")
    source.mkdir()
    (source / "pyproject.toml").write_text(
        '[project]\nname = "slow"\nversion = "1.0"\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (source / "backend.py").write_text(
        "import os, shutil, time\n"
        "def build_wheel(directory, *_):\n"
        f"    while not os.path.exists({str(gate)!r}):\n"
        "        time.sleep(0.05)\n"
        f"    return os.path.basename(shutil.copy({str(made)!r}, directory))\n"
    )
    lab.folder(
        run_sh="python -c 'import slow; print(slow.WORDS)'\n",
        requirements_txt=f"--no-index\nslow @ {source.as_uri()}\n",
    )
    return gate


def test_building_packages_is_shown_as_schedule_and_counts_against_no_time(lab: Lab, tmp_path: Path) -> None:
    gate = with_slow_package(lab, tmp_path)
    watch = lab.begin("submit_job", "--files=job", "--start_cmd=sh run.sh", "--wall_time=2s", "--watch_mode=1")
    assert watch.stdout is not None
    job = watch.stdout.readline().strip()
    wait_until(
        lambda: lab.field(job, "queue_reason").startswith("building packages: requirements.txt, with "), "it is built"
    )
    assert lab.field(job, "job_status") == "schedule"
    assert [one.id for one in lab.client().list(states=[JobState.SCHEDULE])] == [job]
    [line] = lab.out("ls").splitlines()[1:]
    assert "schedule" in line
    assert "building packages: requirements.txt" in line
    assert "building packages: requirements.txt" in lab.out("show", job)
    placed = next(moved.at for moved in lab.client().get(job).history if moved.to_state is JobState.SCHEDULE)
    wait_until(lambda: (datetime.now(UTC) - placed).total_seconds() > 4, "more than its wall time has passed")
    gate.touch()
    said, _ = watch.communicate(timeout=60)
    assert "schedule  building packages: requirements.txt, with " in said
    assert lab.field(job, "job_status") == "success", lab.out("show", job)
    assert "built" in lab.out("logs", job)
    detail = lab.client().get(job)
    assert [moved.to_state.value for moved in detail.history] == ["submit", "schedule", "running", "success"]
    assert lab.client().quota().overall.minutes_today * 60 < 2.5
    assert lab.field(job, "queue_reason") == ""


def test_a_build_that_takes_too_long_fails_its_job_with_the_last_lines(lab: Lab, tmp_path: Path) -> None:
    lab.configure('[jobs]\nbuild_limit = "2s"\ngrace = "1s"\n')
    with_slow_package(lab, tmp_path)
    job = lab.out("submit", "job", "--nodes", "2", "--", "sh", "run.sh").split()[-1]
    lab.ends(job, "failed")
    error = lab.field(job, "error_msg")
    assert "its environment could not be built from requirements.txt: it is not done within" in error
    assert "(jobs.build_limit)" in error
    assert "building its environment from requirements.txt" in lab.out("show", job)
    states = [moved.to_state.value for moved in lab.client().get(job).history]
    assert states in (["submit", "schedule", "killing", "failed"], ["submit", "schedule", "failed"])
    assert lab.client().quota().overall.minutes_today == 0


def test_a_killed_job_builds_no_further(lab: Lab, tmp_path: Path) -> None:
    with_slow_package(lab, tmp_path)
    job = lab.out("submit", "job", "--", "sh", "run.sh").split()[-1]
    wait_until(lambda: lab.field(job, "queue_reason").startswith("building packages"), "it is built")
    lab.type("kill", job)
    lab.ends(job, "killed")
    assert processes_with(job) == []


def test_a_wrong_word_is_refused_before_anything_is_sent(lab: Lab) -> None:
    lab.folder()
    for words, told in (
        (["--requirements", "../up.txt"], "requirements '../up.txt'"),
        (["--requirements", "list"], "must be a requirements.txt or a pyproject.toml"),
        (["--python", "3.12; rm -r /"], "must be a version such as 3.12"),
    ):
        done = lab.type("submit", "job", *words, "--", "true", code=None)
        assert done.returncode != 0
        assert told in done.stderr
