"""OpenPAI's VS Code client, re-enacted request by request: from adding a cluster to a job's results."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.flow.lab import Lab
from tests.flow.vscode import FallsOverError, VsCode
from tests.waiting import wait_until

PASSWORD = "correct horse"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("vscode"))
    lab.configure("[clusters.local]\ncpus = 16\nmemory = '32Gi'\npolicy = 'open'\n[jobs]\ngrace = '1s'\n")
    lab.type("up")
    yield lab
    lab.close()


@pytest.fixture
def code(server: Lab) -> VsCode:
    number = next(NUMBERS)
    name = f"alice{number}"
    server.type("user", "add", name, "--password", stdin=f"{PASSWORD}\n")
    # A name is believed from an address while nobody else has logged in there.
    made = VsCode(server.server["url"].partition("://")[2], name, PASSWORD, f"127.0.7.{number + 1}")
    made.add_cluster()
    return made


def a_job(name: str, command: str) -> dict[str, Any]:
    role = {
        "name": "demo_001",
        "taskNumber": 1,
        "cpuNumber": 1,
        "memoryMB": 512,
        "gpuNumber": 0,
        "portList": [{"label": "web", "beginAt": 0, "portNumber": 1}],
        "command": command,
    }
    return {
        "jobName": name,
        "image": "vzich/poet:tensorflow",
        "authFile": None,
        "dataDir": "",
        "codeDir": "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_JOB_NAME",
        "virtualCluster": "default",
        "taskRoles": [role],
        "jobEnvs": {"isDebug": False, "EPOCHS": 2},
        "extras": {},
        "retryCount": 0,
    }


def workspace(folder: Path) -> Path:
    (folder / "pkg").mkdir()
    (folder / "train.py").write_text("import os, pkg.m\nprint('epochs', os.environ['EPOCHS'], pkg.m.WORD)\n")
    (folder / "pkg" / "m.py").write_text("WORD = 'couplet'\n")
    (folder / "notes.txt").write_text("stays at home\n")
    return folder


def test_the_whole_flow_of_seed_004(server: Lab, code: VsCode, tmp_path: Path) -> None:
    assert code.cluster["protocol_version"] == "2"
    code.token()
    job = a_job("train_couplet_demo", "cd $PAI_JOB_NAME && python train.py && ls")
    name = code.submit_v1(job, workspace(tmp_path), ("**/*.py", "**/*.sh"), generate_name=True)
    assert code.list_folder(f"/{code.user}/{name}") == ["pkg", "train.py"]
    wait_until(lambda: code.state(name) in ("SUCCEEDED", "FAILED"), "it ends", seconds=60)
    found = next(job for job in code.list_jobs() if job["name"] == name)
    log = server.out("logs", found["debugId"])
    assert found["state"] == "SUCCEEDED", log
    assert "epochs 2 couplet" in log
    page = urllib3.request("GET", code.view(name), redirect=False)
    assert page.status == 303
    assert page.headers["Location"].startswith("/login.html?next=%2Fjob-detail.html")


def test_a_name_that_is_taken_is_told_before_anything_is_sent(code: VsCode, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    job = a_job("mine", "true")
    code.token()
    assert code.submit_v1(job, folder, ("**/*.py",), generate_name=False) == "mine"
    with pytest.raises(FallsOverError, match="mine already exists"):
        code.submit_v1(job, folder, ("**/*.py",), generate_name=False)


def test_a_job_of_the_second_protocol(code: VsCode) -> None:
    text = (
        "protocolVersion: 2\nname: second\ntype: job\nprerequisites:\n  - {name: i, type: dockerimage, uri: any}\n"
        "taskRoles:\n  main:\n    dockerImage: i\n    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}\n"
        "    commands:\n      - echo second\n"
    )
    code.submit_v2(text, "second")
    wait_until(lambda: code.state("second") == "SUCCEEDED", "it succeeds", seconds=60)
    with pytest.raises(FallsOverError, match="second already exists"):
        code.submit_v2(text, "second")


def test_the_view_that_logs_in_every_ten_seconds_costs_next_to_nothing(server: Lab, code: VsCode) -> None:
    for _ in range(20):
        assert code.list_jobs() == []
    entries = [entry for entry in server.client().accounts.audit(user=code.user) if entry.action == "login"]
    assert len(entries) == 1
    assert server.client().accounts.user(code.user).name == code.user


def test_the_explorer_of_files(code: VsCode) -> None:
    code.token()
    code.make_folder(f"/{code.user}/a/b")
    code.write_file(f"/{code.user}/a/b/x y%.txt", b"contents")
    assert code.list_folder(f"/{code.user}/a/b") == ["x y%.txt"]
    assert code.read_file(f"/{code.user}/a/b/x y%.txt") == b"contents"


def test_whoever_has_not_logged_in_is_told_the_remedy(server: Lab, code: VsCode) -> None:
    with pytest.raises(FallsOverError, match="webhdfs"):
        code.list_folder(f"/{code.user}")


def test_a_wrong_password_is_shown(server: Lab, code: VsCode) -> None:
    other = VsCode(code.host, code.user, "wrong horse")
    other.cluster = code.cluster
    with pytest.raises(FallsOverError, match="incorrect"):
        other.token()
