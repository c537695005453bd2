"""A job's own packages by the real command: built once, in the job's log, counted by df, and gone by last use."""

from __future__ import annotations

import json
from pathlib import Path

from tests.flow.lab import Lab
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
    wait_until(lambda: "environments" in lab.out("df", "--collect"), "it has been unused for a second")
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
