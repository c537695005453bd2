"""What a person sees at a terminal of 80 columns, in whatever encoding, and what they need not type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flow.lab import Lab, a_free_port
from tests.flow.terminal import Terminal
from tests.waiting import wait_until


def failed_job(desk: Lab) -> str:
    """A job that imports a module which is not there, under a long name."""
    desk.folder(train_py="import numpi\n")
    words = ("--name", "a-long-name-of-a-job", "job", "--", "python3", "train.py")
    job = desk.out("submit", *words).strip()
    desk.ends(job, "failed")
    return job


def test_the_cause_of_a_failure_is_in_ls_and_in_error_msg(desk: Lab) -> None:
    job = failed_job(desk)
    told = "trainer-0 failed first: No module named 'numpi' (exit code 1)"
    assert desk.field(job, "error_msg") == told
    assert told in next(line for line in desk.out("ls").splitlines() if job in line)


def test_80_columns_show_short_ids_and_keep_the_reason(desk: Lab) -> None:
    job = failed_job(desk)
    lines = Terminal(desk, "ls").ends().splitlines()
    assert lines[0].split()[:2] == ["JOB", "NAME"]
    assert lines[0].split()[-1] == "WHY"
    line = next(line for line in lines if line.startswith(job[:12]))
    assert "No module named 'numpi'" in line
    assert job not in line
    assert max(map(len, lines)) <= 80
    assert job in desk.out("show", job[:12])
    assert job in Terminal(desk, "ls", columns=200).ends()


def test_the_last_job_is_meant_where_none_is_named(desk: Lab) -> None:
    desk.folder(run_sh="echo weights > $OUTPUT_PATH/model; echo said\n")
    job = desk.out("submit", "job", "--", "sh", "run.sh").strip()
    waited = desk.type("wait")
    assert waited.stdout.split() == [job, "success"]
    assert f"your last job: {job} (tmp_job)" in waited.stderr
    assert job in desk.out("show")
    assert desk.out("logs") == "said\n"
    desk.type("cp")
    assert [path.read_text() for path in desk.work.glob(f"output-{job[4:12]}/{job}/rank-0/model")] == ["weights\n"]
    assert "TARGET is missing" in desk.type("cp", job, code=2).stderr
    assert "JOB is missing" in desk.type("kill", code=2).stderr


def test_nobody_is_shown_a_last_job_that_they_do_not_have(lab: Lab) -> None:
    for verb in ("show", "logs", "wait", "cp"):
        assert "you have no job yet" in lab.type(verb, code=None).stderr


def test_ls_watch_lists_a_job_again_when_it_changes(desk: Lab) -> None:
    desk.folder()
    watched = Terminal(desk, "ls", "-w", "--name", "watched")
    watched.read_until(lambda text: "no job matches" in text)
    job = desk.out("submit", "--name", "watched", "job", "--", "exit 3").strip()
    desk.ends(job, "failed")
    text = watched.read_until(lambda text: "exit code 3" in text)
    assert text.count("JOB ") == 1
    assert job[:12] in text
    watched.interrupt()
    watched.ends(130)
    assert "--watch follows jobs, not files" in desk.type("ls", "-w", "/pfs/local", code=2).stderr


@pytest.mark.parametrize("on_terminal", [True, False])
def test_what_cannot_be_encoded_is_replaced(desk: Lab, on_terminal: bool) -> None:
    desk.folder(run_sh="echo '训练 café'\n")
    job = desk.out("submit", "--name", "naïve-名", "job", "--", "sh", "run.sh").strip()
    desk.ends(job, "success")
    for words in (["ls"], ["show", job], ["logs", job], ["query_job", f"--job_id={job}"], ["ls", "-o", "wide"]):
        done = (
            Terminal(desk, *words, LC_ALL="C", PYTHONIOENCODING="ascii").ends()
            if on_terminal
            else desk.type(*words, LC_ALL="C", PYTHONIOENCODING="ascii").stdout
        )
        assert "?" in done, words
        assert "Traceback" not in done
    shown = desk.type("show", job, "-o", "json", LC_ALL="C", PYTHONIOENCODING="ascii").stdout
    assert json.loads(shown)["job"]["spec"]["name"] == "naïve-名"


def test_who_follows_a_log_is_told_when_another_server_answers(lab: Lab, tmp_path: Path) -> None:
    """As after a restart with another data folder: at the same address, with other jobs and keys."""
    port = a_free_port()
    lab.configure(f"[server]\nport = {port}\n")
    job = lab.submit("echo begun; sleep 1000")
    followed = lab.begin("logs", "-f", job)
    assert followed.stdout is not None
    assert followed.stdout.readline() == "begun\n"
    lab.type("kill", job)
    (tmp_path / "other").mkdir()
    other = Lab(tmp_path / "other")
    other.configure(f"[server]\nport = {port}\n")
    lab.kill_server()
    other.type("up")
    try:
        _, said = followed.communicate(timeout=60)
        assert f"another server answers at http://127.0.0.1:{port} since the connection broke" in said
        assert "was it started with another data folder?" in said
        assert followed.returncode not in (0, 1)
    finally:
        other.close()
        lab.type("up")


def test_a_misspelt_option_is_told_the_one_that_is_meant(desk: Lab) -> None:
    for words, meant in (
        (("submit", "--nam", "x", "job", "--", "true"), "--name"),
        (("submit", "-nam", "x", "job", "--", "true"), "-name"),
        (("run", "--nam=x", "job", "--", "true"), "--name"),
        (("submit_job", "--nam=x"), "--job_name"),
    ):
        assert f"did you mean '{meant}'?" in desk.type(*words, code=2).stderr


def test_the_command_reads_yaml_as_the_server_does(desk: Lab) -> None:
    desk.folder()
    text = "name: on\nworkdir: job\nrun: 'echo $A $B $C'\nenv: {A: yes, B: 12:30:45, C: off}\n"
    (desk.work / "job.yaml").write_text(text)
    job = desk.out("submit", "-f", "job.yaml").strip()
    desk.ends(job, "success")
    assert desk.out("logs", job) == "yes 12:30:45 off\n"
    assert desk.field(job, "job_name") == "on"
    (desk.work / "job.yaml").write_text("workdir: job\njob_type: tpu\nroles: {trainer: {run: 'true'}}\n")
    assert "job_type 'tpu' is not known" in desk.type("submit", "-f", "job.yaml", code=2).stderr


def test_openpai_reads_the_same_commands_here_and_there(desk: Lab, tmp_path: Path) -> None:
    desk.folder()
    (desk.work / "pai.yaml").write_text(
        "protocolVersion: 2\nname: words\ntype: job\nprerequisites:\n- {type: dockerimage, name: i, uri: u}\n"
        "taskRoles: {a: {instances: 1, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0},"
        " commands: [echo, 'echo x', on]}}\n"
    )
    done = desk.type("submit", "pai.yaml", code=None)
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip().split()[-1]
    wait_until(lambda: desk.client().get(job).job.state.final, "it ends")
