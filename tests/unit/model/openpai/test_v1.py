"""OpenPAI's first job protocol: what each field becomes, and what each wrong one is told."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import Ports, Resources, Shell
from paddlecloud.model.openpai import v1
from paddlecloud.server.dialects.openpai.forms import parse_form

COMMAND = "pip3 --quiet install future && cd $PAI_JOB_NAME && ls -al && chmod +x train.sh && python3 run_samples.py"
SEED: dict[str, Any] = {
    "jobName": "train_couplet_demo",
    "image": "vzich/poet:tensorflow",
    "codeDir": "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_JOB_NAME",
    "taskRoles": [
        {
            "name": "demo_001",
            "taskNumber": 1,
            "cpuNumber": 2,
            "gpuNumber": 1,
            "memoryMB": 8192,
            "command": COMMAND,
        }
    ],
}
ROLE: dict[str, Any] = {"name": "r", "command": "true"}


def _job(**changed: Any) -> dict[str, Any]:
    return {"jobName": "j", "image": "i", "taskRoles": [ROLE], **changed}


def test_the_job_of_seed_004_is_understood_as_it_is() -> None:
    found = v1.job(SEED, user="alice")
    (role,) = found.spec.roles
    assert (found.spec.name, found.spec.image, found.virtual_cluster) == (
        "train_couplet_demo",
        "vzich/poet:tensorflow",
        "default",
    )
    assert found.code_dir == "$PAI_DEFAULT_FS_URI/alice/train_couplet_demo"
    assert (role.name, role.count, role.command, role.shell) == ("demo_001", 1, COMMAND, Shell.BASH)
    assert role.resources == Resources(cpus=2, memory_bytes=8192 << 20, gpus=1)
    assert (role.min_failed, role.min_succeeded, role.shared_memory_bytes) == (1, 0, 64 << 20)
    assert found.spec.first_role_ends
    assert found.warnings == ()
    assert found.config == SEED


def test_what_is_left_out_has_the_defaults_of_0_14() -> None:
    found = v1.job(_job(), user="u")
    (role,) = found.spec.roles
    assert role.resources == Resources(cpus=1, memory_bytes=100 << 20, gpus=0)
    assert (role.count, role.min_failed, role.min_succeeded) == (1, 1, 0)
    assert found.spec.openpai is not None
    assert found.spec.openpai.output_dir == "$PAI_DEFAULT_FS_URI/Output/u/j"
    assert found.code_dir == ""
    assert found.spec.retry.user_error == 0
    assert found.spec.retry.by_cause


def test_a_form_with_brackets_is_the_same_job_as_its_json() -> None:
    """As the VS Code client sends it: all is text, null is nothing, empty lists vanish."""
    pairs = [
        ("jobName", "train_couplet_demo"),
        ("image", "vzich/poet:tensorflow"),
        ("codeDir", "$PAI_DEFAULT_FS_URI/alice/train_couplet_demo"),
        ("jobEnvs[isDebug]", "true"),
        ("retryCount", "2"),
        ("taskRoles[0][name]", "demo_001"),
        ("taskRoles[0][taskNumber]", "3"),
        ("taskRoles[0][cpuNumber]", "2"),
        ("taskRoles[0][gpuNumber]", "1"),
        ("taskRoles[0][memoryMB]", "8192"),
        ("taskRoles[0][minFailedTaskCount]", ""),
        ("taskRoles[0][minSucceededTaskCount]", "2"),
        ("taskRoles[0][portList][0][label]", "web"),
        ("taskRoles[0][portList][0][beginAt]", "8080"),
        ("taskRoles[0][portList][0][portNumber]", "2"),
        ("taskRoles[0][command]", "true"),
    ]
    found = v1.job(parse_form(urlencode(pairs).encode()), user="alice", form=True)
    (role,) = found.spec.roles
    assert role.resources == Resources(cpus=2, memory_bytes=8192 << 20, gpus=1)
    assert (role.count, role.min_failed, role.min_succeeded) == (3, None, 2)
    assert role.ports == {"web": Ports(count=2, begin=8080)}
    assert found.spec.env == {"isDebug": "true"}
    assert found.spec.keep_on_failure
    assert found.spec.retry.user_error == 2


@pytest.mark.parametrize(
    ("count", "endless", "after_success"), [(3, False, False), (-1, True, False), (-2, True, True)]
)
def test_a_retry_count_below_zero_is_without_end(count: int, endless: bool, after_success: bool) -> None:
    retry = v1.job(_job(retryCount=count), user="u").spec.retry
    assert (retry.user_error, retry.endless, retry.after_success) == (max(count, 0), endless, after_success)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"jobName": "a b"}, "jobName"),
        ({"jobName": None}, "jobName"),
        ({"jobName": 3}, "jobName"),
        ({"jobName": "."}, "jobName"),
        ({"jobName": ".."}, "jobName"),
        ({"image": ""}, "image"),
        ({"retryCount": -3}, "retryCount"),
        ({"taskRoles": [{**ROLE, "name": ".r"}]}, "taskRoles[0].name"),
        ({"taskRoles": [{**ROLE, "name": "r" * 64}]}, "taskRoles[0].name"),
        ({"retryCount": "2"}, "retryCount"),
        ({"retryCount": True}, "retryCount"),
        ({"taskRoles": []}, "taskRoles"),
        ({"taskRoles": {}}, "taskRoles"),
        ({"taskRoles": ["r"]}, "taskRoles[0]"),
        ({"taskRoles": [{**ROLE, "name": "a-b"}]}, "taskRoles[0].name"),
        ({"taskRoles": [ROLE, ROLE]}, "taskRoles[1].name"),
        ({"taskRoles": [{**ROLE, "command": ""}]}, "taskRoles[0].command"),
        ({"taskRoles": [{**ROLE, "taskNumber": 0}]}, "taskRoles[0].taskNumber"),
        ({"taskRoles": [{**ROLE, "shmMB": 200}]}, "taskRoles[0].shmMB"),
        ({"taskRoles": [{**ROLE, "minFailedTaskCount": 2}]}, "taskRoles[0].minFailedTaskCount"),
        ({"taskRoles": [{**ROLE, "minSucceededTaskCount": 2}]}, "taskRoles[0].minSucceededTaskCount"),
        ({"taskRoles": [{**ROLE, "portList": [{"beginAt": 1}]}]}, "taskRoles[0].portList[0].label"),
        ({"taskRoles": [{**ROLE, "gpus": 1}]}, "taskRoles[0].gpus"),
        ({"jobEnvs": {"a": {}}}, "jobEnvs.a"),
        ({"priority": 1}, "priority"),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else None,
)
def test_what_is_wrong_is_named_by_its_field(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidError) as raised:
        v1.job(_job(**changed), user="u")
    assert raised.value.field == field
    assert field in raised.value.message


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"killAllOnCompletedTaskNumber": 1}, "killAllOnCompletedTaskNumber"),
        ({"authFile": "hdfs://x/auth"}, "authFile"),
        ({"gpuType": "K80"}, "gpuType"),
        ({"jobEnvs": {"paiAzRDMA": True}}, "paiAzRDMA"),
        ({"extras": {"x": 1}}, "extras.x"),
    ],
)
def test_what_is_not_done_is_said(changed: dict[str, Any], word: str) -> None:
    assert any(word in warning for warning in v1.job(_job(**changed), user="u").warnings)


@pytest.mark.parametrize("value", ["a\0b", "\ud800", 10**30, object()])
def test_a_value_that_no_file_could_mean_is_refused(value: object) -> None:
    with pytest.raises(InvalidError):
        v1.job(_job(extras={"x": value}), user="u")
