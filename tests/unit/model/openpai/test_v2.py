"""OpenPAI's second job protocol: what each part becomes, how its script reads, and what each wrong one is told."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import Ports, Resources, Shell
from paddlecloud.model.openpai import v2
from paddlecloud.model.openpai.submitted import MASKED

ROLE: dict[str, Any] = {
    "dockerImage": "image",
    "resourcePerInstance": {"cpu": 1, "memoryMB": 128, "gpu": 0},
    "commands": ["true"],
}
CMD = "com.microsoft.pai.runtimeplugin.cmd"


def _job(role: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    return {
        "protocolVersion": 2,
        "name": "job_1",
        "type": "job",
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "some/image"}],
        "taskRoles": {"worker": {**ROLE, **(role or {})}},
        **changed,
    }


def _script(job: dict[str, Any]) -> str:
    return v2.job(job).spec.roles[0].command


def test_a_job_of_two_roles_is_understood() -> None:
    role = {
        "instances": 2,
        "completion": {"minFailedInstances": 2, "minSucceededInstances": 1},
        "taskRetryCount": 3,
        "extraContainerOptions": {"shmMB": 1024},
        "resourcePerInstance": {"cpu": 4, "memoryMB": 2048, "gpu": 1, "ports": {"web": 2}},
    }
    whole = _job(role, jobRetryCount=4, defaults={"virtualCluster": "gpus"}, extras={"gangAllocation": False})
    whole["taskRoles"]["ps"] = ROLE
    found = v2.job(whole)
    worker, ps = found.spec.roles
    assert (worker.name, worker.count, worker.min_failed, worker.min_succeeded) == ("worker", 2, 2, 1)
    assert (worker.restarts, worker.shell, worker.shared_memory_bytes) == (3, Shell.STRICT, 1024 << 20)
    assert worker.resources == Resources(cpus=4, memory_bytes=2048 << 20, gpus=1)
    assert worker.ports == {"web": Ports(count=2)}
    assert (ps.count, ps.min_failed, ps.min_succeeded, ps.shared_memory_bytes) == (1, 1, 1, 512 << 20)
    assert (found.virtual_cluster, found.spec.image, found.spec.retry.user_error) == ("gpus", "some/image", 4)
    assert found.spec.first_role_ends
    assert [warning for warning in found.warnings if "gangAllocation" in warning]


@pytest.mark.parametrize(
    ("completion", "failed", "succeeded"),
    [
        (None, 1, 3),
        ({}, 1, 3),
        ({"minFailedInstances": None}, 1, 3),
        ({"minFailedInstances": -1, "minSucceededInstances": -1}, None, 0),
        ({"minSucceededInstances": None}, 1, 0),
        ({"minFailedInstances": 3, "minSucceededInstances": 2}, 3, 2),
        ({"minFailedInstances": 4, "minSucceededInstances": 4}, None, 0),
    ],
)
def test_completion_is_what_openpai_does_rather_than_what_its_docs_say(
    completion: object, failed: int | None, succeeded: int
) -> None:
    (role,) = v2.job(_job({"instances": 3, "completion": completion})).spec.roles
    assert (role.min_failed, role.min_succeeded) == (failed, succeeded)


def test_commands_are_trimmed_joined_by_newlines_and_filled() -> None:
    role = {
        "commands": ["  echo <% $parameters.a.b %> ", "echo <%$parameters.list[1]%> # not the end", "echo \\\n  x\n"]
    }
    assert _script(_job(role, parameters={"a": {"b": 1.0}, "list": [1, True]})) == (
        "echo 1\necho true # not the end\necho \\\n  x"
    )


def test_what_a_template_does_not_know_stays_and_is_told() -> None:
    found = v2.job(_job({"commands": ["echo <% $parameters.none %> <% other %>"]}))
    assert found.spec.roles[0].command == "echo <% $parameters.none %> <% other %>"
    assert [warning for warning in found.warnings if "$parameters.none" in warning]


def test_the_active_deployment_stands_around_the_commands() -> None:
    deployments = [
        {"name": "a", "taskRoles": {"worker": {"preCommands": ["pre"], "postCommands": [" post "]}}},
        {"name": "b", "taskRoles": {"worker": {"preCommands": ["other"]}}},
    ]
    assert _script(_job(deployments=deployments)) == "true"
    assert _script(_job(deployments=deployments, defaults={"deployment": "a"})) == "pre\ntrue\npost"


def test_scripts_outputs_and_data_are_known_by_the_role_that_names_them() -> None:
    prerequisites = [
        {"name": "image", "type": "dockerimage", "uri": "i"},
        {"name": "code", "type": "script", "uri": "u", "branch": "dev"},
        {"name": "set", "type": "data", "uri": ["x", "y"]},
    ]
    role = {"script": "code", "data": "set", "commands": ["<% $script.uri %> <% $script.branch %> <% $data.uri[1] %>"]}
    assert _script(_job(role, prerequisites=prerequisites)) == "u dev y"


def test_callbacks_and_plugins_run_in_order_before_and_in_reverse_after(tmp_path: Path) -> None:
    def callbacks(name: str, **more: Any) -> dict[str, Any]:
        starts = {"event": "taskStarts", "commands": [f"echo start {name}"]}
        succeeds = {"event": "taskSucceeds", "commands": [f"echo end {name}"]}
        return {"name": name, "type": "script", "plugin": CMD, "callbacks": [starts, succeeds], **more}

    failing = {"name": "c", "type": "script", "plugin": CMD, "failurePolicy": "ignore"}
    failing["callbacks"] = [{"event": "taskStarts", "commands": ["false", "echo not here"]}]  # type: ignore[assignment]
    prerequisites = [
        {"name": "image", "type": "dockerimage", "uri": "i"},
        callbacks("a", require=["b"]),
        callbacks("b"),
        failing,
    ]
    plugin = {"plugin": "cmd", "parameters": {"preCommands": ["echo plugin"], "postCommands": ["echo unplug"]}}
    job = _job(
        {"prerequisites": ["a", "c"], "commands": ["echo own", "exit 0"]},
        prerequisites=prerequisites,
        extras={"com.microsoft.pai.runtimeplugin": [plugin]},
    )
    said = _run(_script(job), tmp_path)
    assert said.stdout.split("\n")[:-1] == [
        "start b",
        "start a",
        "plugin",
        "own",
        "unplug",
        "end a",
        "end b",
    ]
    assert said.returncode == 0


def test_what_comes_after_does_not_run_if_the_commands_fail(tmp_path: Path) -> None:
    plugin = {"plugin": "cmd", "parameters": {"postCommands": ["echo after"]}}
    job = _job({"commands": ["(exit 7)", "echo on"]}, extras={"com.microsoft.pai.runtimeplugin": [plugin]})
    said = _run(_script(job), tmp_path)
    assert (said.returncode, said.stdout) == (7, "")


def _run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "script"
    file.write_text(f"set -o errexit\nset -o nounset\nset -o pipefail\n{script}\n")
    return subprocess.run(["bash", str(file)], capture_output=True, text=True, timeout=20)


def test_secrets_are_neither_in_the_spec_nor_in_what_is_shown() -> None:
    found = v2.job(_job({"commands": ["login <% $secrets.password %>"]}, secrets={"password": "hunter2"}))
    assert found.secrets == {"password": "hunter2"}
    assert found.config["secrets"] == MASKED
    assert found.spec.roles[0].command == "login <% $secrets.password %>"
    assert found.warnings == ()
    again = v2.job(found.config)
    assert again.secrets == {}
    assert [warning for warning in again.warnings if "secrets" in warning]


@pytest.mark.parametrize(
    ("extras", "word"),
    [
        ({"com.microsoft.pai.runtimeplugin": [{"plugin": "ssh", "parameters": {"jobssh": True}}]}, "SSH"),
        ({"com.microsoft.pai.runtimeplugin": [{"plugin": "tensorboard"}]}, "TensorBoard"),
        ({"storages": [{"mountPath": "/mnt/x"}]}, "extras.storages[0]"),
        ({"com.microsoft.pai.runtimeplugin": [{"plugin": "teamwise_storage"}]}, "storageConfigNames"),
        ({"hivedScheduler": {"taskRoles": {}}}, "hivedScheduler.taskRoles"),
        ({"jobStatusChangeNotification": {"running": True}}, "jobStatusChangeNotification"),
        ({"something": 1}, "extras.something"),
    ],
)
def test_what_is_not_done_is_said(extras: dict[str, Any], word: str) -> None:
    assert any(word in warning for warning in v2.job(_job(extras=extras)).warnings)


def test_storages_are_where_they_are_asked_for() -> None:
    team = {"plugin": "teamwise_storage", "parameters": {"storageConfigNames": ["team", "more"]}}
    listed = [{"name": "demo"}, {"name": "sets", "mountPath": "/data/sets/"}]
    found = v2.job(_job(extras={"storages": listed, "com.microsoft.pai.runtimeplugin": [team]}))
    assert found.storages == {"/mnt/demo": "demo", "/data/sets": "sets", "/mnt/team": "team", "/mnt/more": "more"}
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("storages", "words"),
    [
        ([{"name": "a", "mountPath": "data"}], "absolute"),
        ([{"name": "a", "mountPath": "/"}], "absolute"),
        ([{"name": "a", "mountPath": "/mnt/../etc"}], "absolute"),
        ([{"name": "../a"}], "absolute"),
        ([{"name": "a", "mountPath": "/usr/local/a"}], "/usr is a folder of the system's"),
        ([{"name": "a"}, {"name": "b", "mountPath": "/mnt/a/b"}], "the storage a is at /mnt/a"),
        ([{"name": "a"}, {"name": "b", "mountPath": "/mnt"}], "the storage a is at /mnt/a"),
    ],
)
def test_a_storage_at_a_place_that_cannot_be_is_refused(storages: list[dict[str, str]], words: str) -> None:
    with pytest.raises(InvalidError, match="mountPath") as raised:
        v2.job(_job(extras={"storages": storages}))
    assert words in raised.value.message


def test_more_retries_than_are_made_here_are_told_and_taken_for_the_most() -> None:
    found = v2.job(_job({"taskRetryCount": 1000}, jobRetryCount=1000, extras={"gangAllocation": False}))
    assert (found.spec.retry.user_error, found.spec.roles[0].restarts) == (100, 100)
    assert len([warning for warning in found.warnings if "1000 is taken for 100" in warning]) == 2


@pytest.mark.parametrize(("said", "priority"), [("crit", 200), ("prod", 100), ("test", 0), ("oppo", -100)])
def test_a_priority_class_is_a_priority(said: str, priority: int) -> None:
    assert v2.job(_job(extras={"hivedScheduler": {"jobPriorityClass": said}})).spec.priority == priority


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (_job(protocolVersion=3), "protocolVersion"),
        (_job(protocolVersion=True), "protocolVersion"),
        (_job(type="x"), "type"),
        (_job(name="a b"), "name"),
        (_job(name="a" * 256), "name"),
        (_job(unknown=1), "unknown is not a known field"),
        (_job(jobRetryCount=-1), "jobRetryCount"),
        (_job(taskRoles={"a" * 64: ROLE}), "taskRoles.aaa"),
        (_job(taskRoles={}), "taskRoles"),
        (_job(taskRoles={"0a": ROLE}), "taskRoles.0a"),
        (_job({"commands": []}), "taskRoles.worker.commands"),
        (_job({"commands": [" "]}), "taskRoles.worker.commands"),
        (_job({"commands": [1]}), "taskRoles.worker.commands[0]"),
        (_job({"instances": 0}), "taskRoles.worker.instances"),
        (_job({"resourcePerInstance": {"cpu": 1, "gpu": 0}}), "taskRoles.worker.resourcePerInstance.memoryMB"),
        (_job({"completion": {"minFailedInstances": -2}}), "minFailedInstances"),
        (_job({"completion": {"minSucceededInstances": 0}}), "minSucceededInstances"),
        (_job({"dockerImage": "none"}), "Prerequisite none does not exist."),
        (_job({"prerequisites": ["none"]}), "Prerequisite none does not exist."),
        (_job({"script": "none"}), "Prerequisite none does not exist."),
        (_job(defaults={"deployment": "x"}), "Default deployment x does not exist."),
        (_job(deployments=[{"name": "d", "taskRoles": {}}] * 2), "Duplicate deployments d."),
        (_job(deployments=[{"name": "d", "taskRoles": {"x": {}}}]), "no task role x"),
        (_job(extras={"hivedScheduler": {"jobPriorityClass": "x"}}), "jobPriorityClass"),
        (_job(prerequisites=[{"name": "image", "type": "dockerimage", "uri": "i", "x": 1}]), "prerequisites[0].x"),
        (_job(secrets=[]), "secrets"),
        ("text", "mapping"),
        (None, "mapping"),
        ({1: 2}, "no text"),
    ],
)
def test_what_is_wrong_is_named(job: object, words: str) -> None:
    with pytest.raises(InvalidError) as raised:
        v2.job(job)
    assert words in raised.value.message


def test_prerequisites_that_require_each_other_are_refused() -> None:
    two = [{"name": name, "type": "script", "require": [other]} for name, other in (("a", "b"), ("b", "a"))]
    with pytest.raises(InvalidError, match="require each other"):
        v2.job(_job({"script": "a"}, prerequisites=[{"name": "image", "type": "dockerimage", "uri": "i"}, *two]))


def test_a_value_that_grows_when_its_aliases_are_followed_is_refused() -> None:
    level: Any = ["x"] * 10
    for _ in range(8):
        level = [level] * 10
    with pytest.raises(InvalidError, match="values"):
        v2.job(_job(parameters={"a": level}))


@pytest.mark.parametrize(
    "job",
    [
        _job({"commands": ["<% $parameters.a %>" * 60]}, parameters={"a": "x" * 100_000}),
        _job({"commands": ["<% $secrets.a %>" * 60]}, secrets={"a": "x" * 100_000}),
        _job(parameters={"a": ["x" * 1_000_000] * 5}),
    ],
    ids=["parameters", "secrets", "aliases"],
)
def test_what_grows_beyond_measure_when_it_is_filled_in_is_refused(job: dict[str, Any]) -> None:
    with pytest.raises(InvalidError, match="characters"):
        v2.job(job)


@pytest.mark.parametrize(("said", "seconds"), [("24h", 86400), (90, 90), (None, None)])
def test_how_long_a_job_may_run_is_said_in_our_own_words(said: object, seconds: int | None) -> None:
    assert v2.job(_job(extras={"paddlecloud": {"time_limit": said}})).spec.wall_time_seconds == seconds


@pytest.mark.parametrize("said", ["soon", "30", 0, -1, True, 1.5, []])
def test_a_time_limit_that_is_none_is_refused(said: object) -> None:
    with pytest.raises(InvalidError, match="time_limit"):
        v2.job(_job(extras={"paddlecloud": {"time_limit": said}}))


def test_one_image_is_the_jobs_and_others_are_told_of() -> None:
    whole = _job(prerequisites=[{"name": name, "type": "dockerimage", "uri": name} for name in ("image", "other")])
    whole["taskRoles"]["second"] = {**ROLE, "dockerImage": "other"}
    found = v2.job(whole)
    assert found.spec.image == "image"
    assert any("2 images" in warning for warning in found.warnings)


def test_templates_cannot_make_a_script_of_more_than_a_job_may_have() -> None:
    """A job of a few kilobytes would be gigabytes in the server's memory, or in that of what starts its tasks."""
    long = "x" * 40_000
    tags = "<% $parameters.a %>" * 200
    around = {"name": "around", "type": "script", "callbacks": [{"event": "taskStarts", "commands": [long]}]}
    image = _job()["prerequisites"]
    each = {f"role{number}": {**ROLE, "script": "around"} for number in range(200)}
    for hostile in (
        _job({"commands": [tags]}, parameters={"a": long}),
        _job({"commands": [tags]}, parameters={"a": [long] * 3}),
        _job({"commands": [tags.replace("parameters", "secrets")]}, secrets={"a": long}),
        _job({"commands": [long] * 200}),
        _job(prerequisites=[*image, around], taskRoles=each),
    ):
        with pytest.raises(InvalidError) as told:
            v2.job(hostile)
        assert len(told.value.message) < 300


def test_prerequisites_that_require_each_other_without_end_are_refused_at_once() -> None:
    image = _job()["prerequisites"]
    chain = [{"name": f"p{n}", "type": "data", "require": [f"p{n + 1}"]} for n in range(3000)]
    last = {"name": "p3000", "type": "data"}
    with pytest.raises(InvalidError, match="prerequisites"):
        v2.job(_job({"prerequisites": ["p0"]}, prerequisites=[*image, *chain, last]))
    with pytest.raises(InvalidError, match="prerequisites"):
        v2.job(_job(prerequisites=[*image, *({"name": f"p{n}", "type": "data"} for n in range(6000))]))
