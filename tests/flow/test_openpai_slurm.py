"""A job of OpenPAI on a real Slurm, with the server's disk and without: its code, ports, variables, and secrets."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.lab import Lab, a_free_port
from tests.slurm import Slurm
from tests.waiting import wait_until

SECRET = "hunter2-on-nodes"


@pytest.fixture(params=["near", "far"])
def lab(request: pytest.FixtureRequest, tmp_path: Path, slurm: Slurm) -> Iterator[Lab]:
    """A server whose cluster is a Slurm that shares its disk, or fetches and sends by HTTP."""
    made, port = Lab(tmp_path), a_free_port()
    made.env |= {**slurm.env, "HOME": str(made.home), "TMPDIR": str(tmp_path)}
    url = f'url = "http://127.0.0.1:{port}"' if request.param == "far" else ""
    made.configure(
        f"""
        [server]
        port = {port}

        [clusters.hpc]
        backend = "slurm"
        policy = "open"
        {url}
        python = "{sys.executable}"
        sbatch = {{account = "{slurm.account}"}}
        """
    )
    made.type("up")
    yield made
    made.close()
    slurm.empty()


def test_code_ports_and_variables_are_there_on_nodes_too(lab: Lab) -> None:
    role = {
        "name": "demo_001",
        "taskNumber": 2,
        "memoryMB": 100,
        "portList": [{"label": "web", "portNumber": 2}],
        "command": "cd $PAI_JOB_NAME && echo x >> train.sh && wc -l train.sh; false; echo in $PAI_CODE_DIR; "
        "echo web $PAI_PORT_LIST_demo_001_1_web; cat /proc/$$/cmdline | tr '\\0' ' '",
    }
    job = {"jobName": "far", "image": "i", "codeDir": "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_JOB_NAME"}
    folder = lab.work / "project"
    folder.mkdir()
    (folder / "new_job.pai.json").write_text(json.dumps({**job, "taskRoles": [role]}))
    (folder / "train.sh").write_text("true\n")
    found = lab.out("submit", "project/new_job.pai.json").split()[-1]
    lab.ends(found, "success", seconds=120)
    name = lab.client().get(found).job.spec.name
    for task in ("demo_001-0", "demo_001-1"):
        said = lab.out("logs", found, "-w", task)
        assert "2 train.sh" in said
        assert f"/{name}" in said
        assert len(said.partition("web ")[2].split()[0].split(",")) == 2
        assert said.rstrip().endswith("/own/command"), "what it runs is in a file"


def test_a_secret_reaches_the_task_and_nothing_of_slurms(lab: Lab, slurm: Slurm) -> None:
    go = lab.work / "go"
    (lab.work / "second.pai.yaml").write_text(
        f"""
protocolVersion: 2
name: second
type: job
prerequisites: [{{name: image, type: dockerimage, uri: i}}]
secrets: {{password: {SECRET}}}
taskRoles:
  worker:
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 0}}
    commands:
      - echo <% $secrets.password %> | wc -c
      - until [ -e {go} ]; do sleep 0.1; done
"""
    )
    job = lab.out("submit", "second.pai.yaml").split()[-1]
    wait_until(lambda: str(len(SECRET) + 1) in lab.type("logs", job, code=None).stdout, "it runs", seconds=90)
    number = slurm.run("squeue", "--noheader", "--format=%A").split()[0]
    told = slurm.run("scontrol", "show", "job", "-dd", number) + slurm.run(
        "scontrol", "write", "batch_script", number, "-"
    )
    commands = _command_lines()
    go.touch()
    lab.ends(job, "success", seconds=120)
    assert SECRET not in told
    assert SECRET.encode() not in commands
    wait_until(lambda: not _holders(lab), "nothing holds the secret", seconds=60)


def _command_lines() -> bytes:
    """What every process of this machine was started with."""
    found = b""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += file.read_bytes()
    return found


def _holders(lab: Lab) -> list[Path]:
    found = []
    for path in lab.data.parent.rglob("*"):
        try:
            if path.is_file() and path.suffix != ".yaml" and SECRET.encode() in path.read_bytes():
                found.append(path)
        except OSError:
            continue
    return found
