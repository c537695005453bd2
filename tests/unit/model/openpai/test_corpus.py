"""Files that use every field of OpenPAI's two protocols: each is a job, and no legal field is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlecloud import yamltext
from paddlecloud.model.openpai import v1, v2

FILES = sorted((Path(__file__).parent / "corpus").iterdir())
BASE = ("protocolVersion", "name", "version", "contributor", "description")
PLUGIN = "extras.com.microsoft.pai.runtimeplugin[]"
# As the schemas name them; `*` is a name that the file chooses, `[]` an element of a list.
FIELDS = {
    "yaml": {
        *BASE,
        *("type", "jobRetryCount", "parameters.*", "secrets.*"),
        *(f"prerequisites[].{field}" for field in (*BASE, "type", "uri", "uri[]", "plugin", "require[]")),
        *(f"prerequisites[].{field}" for field in ("failurePolicy", "callbacks[].event", "callbacks[].commands[]")),
        *(f"prerequisites[].auth.{field}" for field in ("username", "password", "registryuri")),
        *(f"taskRoles.*.{field}" for field in ("protocolVersion", "instances", "taskRetryCount", "prerequisites[]")),
        *(f"taskRoles.*.{field}" for field in ("dockerImage", "data", "output", "script", "commands[]")),
        *(f"taskRoles.*.completion.{field}" for field in ("minFailedInstances", "minSucceededInstances")),
        *(f"taskRoles.*.extraContainerOptions.{field}" for field in ("shmMB", "infiniband")),
        *(f"taskRoles.*.resourcePerInstance.{field}" for field in ("cpu", "memoryMB", "gpu", "ports.*")),
        *("deployments[].protocolVersion", "deployments[].name"),
        *(f"deployments[].taskRoles.*.{field}[]" for field in ("preCommands", "postCommands")),
        *("defaults.virtualCluster", "defaults.deployment", "extras.submitFrom", "extras.gangAllocation"),
        *("extras.hivedScheduler.jobPriorityClass", "extras.hivedScheduler.taskRoles.*.skuType"),
        *("extras.hivedScheduler.taskRoles.*.affinityGroupName", "extras.storages[].name"),
        *("extras.storages[].mountPath", f"{PLUGIN}.plugin", f"{PLUGIN}.failurePolicy"),
        *(f"{PLUGIN}.parameters.{field}[]" for field in ("preCommands", "postCommands", "storageConfigNames")),
        *(
            f"extras.jobStatusChangeNotification.{state}"
            for state in ("running", "succeeded", "stopped", "failed", "retried")
        ),
    },
    "json": {
        *("jobName", "image", "authFile", "dataDir", "outputDir", "codeDir", "virtualCluster", "gpuType"),
        *("retryCount", "killAllOnCompletedTaskNumber", "jobEnvs.*", "extras.submitFrom"),
        *(f"taskRoles[].{field}" for field in ("name", "taskNumber", "cpuNumber", "memoryMB", "shmMB", "gpuNumber")),
        *(f"taskRoles[].{field}" for field in ("command", "minFailedTaskCount", "minSucceededTaskCount")),
        *(f"taskRoles[].portList[].{field}" for field in ("label", "beginAt", "portNumber")),
    },
}
# Mappings whose keys are the file's own.
CHOSEN = ("parameters", "secrets", "jobEnvs", "taskRoles", "deployments[].taskRoles", "extras.hivedScheduler.taskRoles")


def fields(value: Any, place: str = "", chosen: bool = False) -> Iterator[str]:
    """The names of all fields in a value."""
    if isinstance(value, list):
        yield from (name for one in value for name in fields(one, f"{place}[]"))
    elif isinstance(value, dict):
        for key, inner in value.items():
            here = f"{place}.{'*' if chosen else key}".lstrip(".")
            yield from fields(inner, here, here in CHOSEN or here.endswith(".ports"))
    if place:
        yield place


def understood(file: Path) -> Any:
    text = file.read_text()
    return v2.job(yamltext.read(text)) if file.suffix == ".yaml" else v1.job(json.loads(text), user="alice")


@pytest.mark.parametrize("kind", FIELDS)
def test_the_files_use_every_legal_field(kind: str) -> None:
    read = [yamltext.read(file.read_text()) for file in FILES if file.suffix == f".{kind}"]
    assert FIELDS[kind] - {name for value in read for name in fields(value)} == set()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_file_is_a_job(file: Path) -> None:
    assert understood(file).spec.roles


@pytest.mark.parametrize("file", [file for file in FILES if file.stem != "everything"], ids=lambda file: file.name)
def test_what_a_file_leaves_to_the_server_is_no_reason_for_a_note(file: Path) -> None:
    notes = [note for note in understood(file).warnings if "auth" not in note and "hivedScheduler" not in note]
    assert notes == (["defaults.tier is not known here and does nothing"] if file.stem == "defaults" else [])


def test_everything_is_understood_as_it_is_meant() -> None:
    found = understood(next(file for file in FILES if file.name == "everything.yaml"))
    worker, ps = found.spec.roles
    assert 'fetching git.example.com/bob/digits at 84820935"' in worker.command
    assert "echo resnet20 32 Bob" in worker.command
    assert "--data https://data.example.com/digits.tar.gz --out hdfs://10.0.0.1:9000/core/model" in worker.command
    assert worker.command.index("echo before") < worker.command.index("echo resnet20") < worker.command.index("after")
    assert "plugged in" not in ps.command
    assert (worker.restarts, worker.min_failed, worker.min_succeeded, ps.min_succeeded) == (3, 1, 0, 0)
    assert found.storages == {"/mnt/demo": "demo", "/data/sets": "sets", "/mnt/team": "team"}
