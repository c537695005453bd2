"""Jobs of OpenPAI by the real command and a real server: their code, secrets, ends and retries, and what is told."""

from __future__ import annotations

import hashlib
import json
import socket
from pathlib import Path
from typing import Any

from tests.flow.lab import Lab
from tests.waiting import wait_until

SECRET = "hunter2-of-alice"
V2 = """
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - {{name: image, type: dockerimage, uri: some/image}}
secrets:
  password: {secret}
parameters: {{rounds: 2}}
{more}
taskRoles:
  worker:
    instances: {instances}
    {completion}
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 200, gpu: 0}}
    commands:
{commands}
"""


def v2(
    lab: Lab, *commands: str, name: str = "second", more: str = "", instances: int = 1, completion: str = ""
) -> Path:
    lines = "\n".join(f"      - {json.dumps(command)}" for command in commands)
    file = lab.work / f"{name}.pai.yaml"
    file.write_text(
        V2.format(name=name, secret=SECRET, commands=lines, more=more, instances=instances, completion=completion)
    )
    return file


def v1(lab: Lab, command: str, *, folder: str = "project", **more: Any) -> Path:
    role = {"name": "demo_001", "memoryMB": 300, "command": command}
    job = {"jobName": "first", "image": "some/image", "taskRoles": [{**role, **more.pop("role", {})}], **more}
    path = lab.work / folder
    path.mkdir(exist_ok=True)
    (path / "new_job.pai.json").write_text(json.dumps(job, indent="\t"))
    return path / "new_job.pai.json"


def vscode(file: Path, **settings: object) -> None:
    folder = file.parent / ".vscode"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({f"pai.job.{name}": value for name, value in settings.items()}))


def submit(lab: Lab, file: Path, *more: str) -> str:
    return lab.out("submit", str(file), *more).split()[-1]


def test_a_job_in_json_is_submitted_as_it_is_with_the_code_beside_it(desk: Lab) -> None:
    command = "cd $PAI_JOB_NAME && chmod +x train.sh && ./train.sh; false; echo and on in $PAI_JOB_NAME; pwd; ls"
    file = v1(desk, command, codeDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_JOB_NAME")
    vscode(file, **{"upload.include": ["**/*.sh", "**/*.py"], "generateJobName.enabled": True})
    (file.parent / "train.sh").write_text("#!/bin/bash\npython3 pkg/m.py > made && cat made\n")
    (file.parent / "pkg").mkdir()
    (file.parent / "pkg" / "m.py").write_text("print('trained')\n")
    (file.parent / "large.bin").write_text("stays here")
    job = submit(desk, file)
    desk.ends(job, "success")
    spec = desk.client().get(job).job.spec
    assert spec.name.startswith("first_")
    said = desk.out("logs", job).splitlines()
    assert "runs in the environment of the machine itself" in said[0]
    user = desk.client().profile.user
    assert said[1:3] == ["trained", f"and on in {user}~{spec.name}"]
    assert said[3].endswith(f"/{spec.name}")
    assert said[4:] == ["made", "pkg", "train.sh"]
    assert "first_" in desk.out("ls")


def test_a_job_in_yaml_has_its_commands_secrets_and_the_strictness_of_bash(desk: Lab) -> None:
    file = v2(
        desk,
        "for i in $(seq <% $parameters.rounds %>); do echo round $i; done",
        'echo "<% $secrets.password %>" | sha256sum | cut -c1-8',
        "cat /proc/*/cmdline | tr '\\0' ' ' | grep -c hunter[2] || true",
        "env | grep -c hunter[2] || true",
        "echo $UNSET",
        "echo never",
        name="strict",
    )
    job = submit(desk, file)
    desk.ends(job, "failed")
    digest = hashlib.sha256(f"{SECRET}\n".encode()).hexdigest()[:8]
    said = desk.out("logs", job)
    assert said.splitlines()[1:6] == ["round 1", "round 2", digest, "0", "0"]
    assert "never" not in said
    told = desk.out("show", job)
    assert "its script uses a variable that is not set" in told
    assert "what to do:" in told
    assert SECRET not in told
    assert "<% $secrets.password %>" in told


def test_a_secret_is_nowhere_once_its_job_is_over_and_in_no_record_ever(lab: Lab) -> None:
    lab.type("up")
    file = v2(
        lab, "test -e go", f"echo <% $secrets.password %> | wc -c; until [ -e {lab.work}/go ]; do sleep 0.1; done"
    )
    text = file.read_text().replace('- "test -e go"\n', "")
    file.write_text(text)
    job = submit(lab, file)
    client = lab.client()
    wait_until(lambda: client.get(job).job.state.label == "running", "it runs")
    found = holders(lab)
    assert found, "it must be somewhere for the task to have it"
    assert all("/tasks/" in path for path in found), found
    (lab.work / "go").touch()
    lab.ends(job, "success")
    wait_until(lambda: not holders(lab), "nothing holds the secret", seconds=30)
    config = client.http.request("GET", f"/v1/jobs/{job}/config").data.decode()
    assert '"******"' in config
    assert "<% $secrets.password %>" in config


def holders(lab: Lab) -> list[str]:
    """The files of the server that have the secret in them."""
    found = []
    for path in lab.data.rglob("*"):
        try:
            if path.is_file() and SECRET.encode() in path.read_bytes():
                found.append(str(path))
        except OSError:
            continue
    return found


def test_a_job_and_its_secret_survive_kill_9_and_a_retry(lab: Lab) -> None:
    lab.type("up")
    waits = f"touch {lab.work}/second; until [ -e {lab.work}/go ]; do sleep 0.1; done; exit 9"
    commands = (
        f"test -e {lab.work}/second || {{ {waits}; }}",
        "echo <% $secrets.password %> | wc -c",
    )
    job = submit(lab, v2(lab, *commands, more="jobRetryCount: 1"))
    wait_until((lab.work / "second").exists, "it runs")
    lab.kill_server()
    (lab.work / "go").touch()
    lab.type("up")
    lab.ends(job, "success")
    assert str(len(SECRET) + 1) in lab.out("logs", job)
    assert lab.client().get(job).job.attempt == 2


def test_the_first_role_to_succeed_ends_the_job_and_names_who_did(desk: Lab) -> None:
    file = v2(
        desk,
        "if [ $PAI_TASK_INDEX = 1 ]; then exit 0; fi",
        "sleep 100",
        name="ends",
        instances=2,
        completion="completion: {minSucceededInstances: 1}",
    )
    job = submit(desk, file)
    desk.ends(job, "success")
    assert "worker-1 succeeded" in desk.out("show", job)


def test_a_failure_that_no_attempt_mends_is_not_tried_again(desk: Lab) -> None:
    job = submit(desk, v2(desk, "python3 -c 'import no_such_module'", name="hopeless", more="jobRetryCount: 3"))
    desk.ends(job, "failed")
    detail = desk.client().get(job)
    assert detail.job.attempt == 1
    assert "no attempt follows" in detail.job.error
    assert "pip3 install" in desk.out("show", job)


def test_code_that_is_not_there_or_too_large_is_refused_when_it_is_submitted(lab: Lab) -> None:
    lab.configure("[openpai]\ncode_limit = 1000\n")
    lab.type("up")
    file = v1(lab, "test ! -e none", codeDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/none")
    vscode(file, **{"upload.enabled": False})
    assert "does not exist" in lab.type("submit", str(file), code=None).stderr
    vscode(file, **{"upload.enabled": True})
    (file.parent / "large.py").write_text("#" * 1001)
    assert "is 1001 bytes; 1000 is the most" in lab.type("submit", str(file), code=None).stderr
    (file.parent / "large.py").write_text("")
    job = submit(lab, file)
    lab.ends(job, "success")


def test_what_is_wrong_with_a_file_is_said_before_anything_is_sent(desk: Lab) -> None:
    file = v1(desk, "true", role={"taskNumber": 0})
    assert "taskRoles[0].taskNumber" in desk.type("submit", str(file), code=None).stderr
    second = v2(desk, "true")
    second.write_text(second.read_text().replace("dockerImage: image", "dockerImage: other"))
    assert "Prerequisite other does not exist." in desk.type("submit", str(second), code=None).stderr


def test_a_name_is_taken_once_and_what_is_not_done_is_told(desk: Lab) -> None:
    file = v2(desk, "true", name="once", more="extras: {jobStatusChangeNotification: {failed: true}}")
    said = desk.type("submit", str(file))
    assert "extras.jobStatusChangeNotification" in said.stderr
    assert "already exists" in desk.type("submit", str(file), code=None).stderr
    assert submit(desk, file, "--name", "twice")


def test_a_storage_is_seen_where_the_file_asks_for_it_and_nothing_is_made_on_the_machine(lab: Lab) -> None:
    lab.type("up")
    lab.type("share", "add", "demo", "--write", "default")
    (lab.work / "data").write_text("shared\n")
    lab.type("cp", "data", "/pfs/local/shared/demo/data")
    more = (
        "extras:\n  storages: [{name: demo}, {name: demo, mountPath: /data/in/demo}]\n"
        "  com.microsoft.pai.runtimeplugin:\n"
        "    - {plugin: teamwise_storage, parameters: {storageConfigNames: [demo]}}"
    )
    mine = ["cat /mnt/demo/data /data/in/demo/data", "echo made > /mnt/demo/made", "echo there: $(ls /mnt)"]
    on_the_machine = sorted(one.name for one in Path("/mnt").iterdir())
    for alone in (True, False):  # a person's machine as it is, and what a server shows to one of several users
        if not alone:
            lab.type("user", "add", "ann", "--password", stdin="correct horse\n")
        job = submit(lab, v2(lab, *mine, name=f"stored{alone}", more=more))
        lab.ends(job, "success")
        there = " ".join(sorted(["demo", *(on_the_machine if alone else [])]))
        assert f"shared\nshared\nthere: {there}\n" in lab.out("logs", job)
    assert lab.out("ls", "/pfs/local/shared/demo").split()[-1].endswith("made")
    assert sorted(one.name for one in Path("/mnt").iterdir()) == on_the_machine
    refused = lab.type("submit", str(v2(lab, "true", name="nfs", more="extras: {storages: [{name: nfs}]}")), code=None)
    assert "Storage nfs is not found: yours are demo" in refused.stderr


def test_what_to_do_about_a_job_whose_time_was_over_is_said_in_its_files_words(lab: Lab) -> None:
    lab.type("up")
    user = lab.client().profile.user
    asked = v2(lab, "sleep 100", name="asked", more="extras: {paddlecloud: {time_limit: 1s}}")
    first = submit(lab, asked)
    lab.ends(first, "timeout")
    said = lab.type("show", first).stdout
    assert "(extras: {paddlecloud: {time_limit: TIME}})" in said
    assert "--time-limit" not in said
    lab.type("user", "quota", user, "--wall-time", "1s")
    limited = submit(lab, v2(lab, "sleep 100", name="limited"))
    lab.ends(limited, "timeout")
    said = lab.type("show", limited).stdout
    assert "your jobs may run for 00:00:01 at most here: ask an admin for more time" in said
    assert "time_limit" not in said
    own = lab.out("submit", "--no-files", "--", "sleep", "100").split()[-1]
    lab.ends(own, "timeout")
    assert "--time-limit" not in lab.type("show", own).stdout


def test_a_wished_port_is_given_and_one_that_is_taken_is_another(desk: Lab) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        busy = taken.getsockname()[1]
        role = {"portList": [{"label": "web", "beginAt": busy, "portNumber": 1}]}
        job = submit(desk, v1(desk, "echo web=$PAI_CONTAINER_HOST_web_PORT_LIST", folder="busy", role=role))
        desk.ends(job, "success")
        assert f"web={busy}" not in desk.out("logs", job)
    job = submit(desk, v1(desk, "echo web=$PAI_CONTAINER_HOST_web_PORT_LIST", folder="free", role=role))
    desk.ends(job, "success")
    assert f"web={busy}" in desk.out("logs", job)


def test_a_job_without_end_goes_on_until_it_is_killed(desk: Lab) -> None:
    job = submit(desk, v1(desk, "true", folder="always", retryCount=-2))
    client = desk.client()
    wait_until(lambda: client.get(job).job.attempt >= 3, "it is started again and again")
    desk.type("kill", job)
    desk.ends(job, "killed")


def test_run_stays_with_a_job_of_openpai_until_its_end(desk: Lab) -> None:
    file = v1(desk, "echo said; exit 3", folder="attended")
    said = desk.type("run", str(file), "--no-download", code=None)
    assert "said" in said.stdout
    assert said.returncode != 0
    assert "exit code 3" in said.stderr


def test_what_the_file_itself_says_is_not_said_by_flags(desk: Lab) -> None:
    file = v1(desk, "true", folder="flags")
    assert "cpus" in desk.type("submit", str(file), "--cpus", "2", code=None).stderr
    assert "no command can follow" in desk.type("submit", str(file), "--", "true", code=None).stderr


def test_a_task_is_started_again_on_its_own_where_its_job_asks_for_that(desk: Lab) -> None:
    first = f"test -e {desk.work}/was || {{ touch {desk.work}/was; exit 4; }}"
    file = v2(desk, first, "echo again", name="alone", more="extras: {gangAllocation: false}")
    file.write_text(file.read_text().replace("    dockerImage", "    taskRetryCount: 1\n    dockerImage"))
    said = desk.type("submit", str(file))
    assert "the tasks of a job start together here all the same" in said.stderr
    job = said.stdout.split()[-1]
    desk.ends(job, "success")
    detail = desk.client().get(job)
    assert (detail.job.attempt, detail.tasks[0].restarts) == (1, 1)
    assert "notes" in desk.out("show", job)
