"""What PaddlePaddle Cloud's submit asks for, as a job of ours."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from paddlecloud.model import paddle_pserver, paddlepaddle
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import Job, JobSpec, Resources, RoleSpec

PACKAGE = "/pfs/local/home/ann/jobs/ctr"
# What the last client sends, key by key.
SENT: dict[str, Any] = {
    "name": "ctr",
    "jobPackage": "package",
    "parallelism": 3,
    "cpu": 2,
    "gpu": 1,
    "memory": "2Gi",
    "pservers": 2,
    "pscpu": 1,
    "psmemory": "512Mi",
    "entry": "python train.py",
    "topology": "",
    "datacenter": "local",
    "passes": 4,
    "image": "",
    "registry": "",
    "faulttolerant": False,
    "maxInstance": 1,
    "minInstance": 1,
}


def test_trainers_and_pservers_get_what_was_asked_for_each() -> None:
    spec = paddlepaddle.job_spec(SENT, package=PACKAGE)
    trainer, pserver = spec.roles
    assert (trainer.name, trainer.count, trainer.command) == ("trainer", 3, "python train.py")
    assert trainer.resources == Resources(cpus=2.0, memory_bytes=2 * 2**30, gpus=1)
    assert (pserver.name, pserver.count, pserver.command) == ("pserver", 2, paddle_pserver.COMMAND)
    assert pserver.awaited_seconds == 2
    assert pserver.resources == Resources(cpus=1.0, memory_bytes=512 * 2**20)
    assert pserver.successes_needed == 0
    assert (spec.package, spec.datacenter, spec.face) == (PACKAGE, "local", "paddlepaddle")
    assert spec.env["PADDLE_INIT_NUM_PASSES"] == "4"
    assert spec.env["PYTHONPATH"] == PACKAGE


@pytest.mark.parametrize(
    ("asked", "trainer", "pserver"),
    [
        ({"topology": "net.py"}, "python train.py", paddle_pserver.COMMAND),
        ({"entry": "", "topology": "net.py"}, "python net.py", paddle_pserver.COMMAND),
        ({"entry": "PADDLECLOUD_PSENTRY='sh run.sh' sh run.sh"}, "sh run.sh", "sh run.sh"),
        ({"psentry": "python serve.py"}, "python train.py", "python serve.py"),
        ({"pservers": 0}, "python train.py", None),
    ],
)
def test_the_entry_wins_over_the_topology_and_pservers_run_what_is_named_for_them(
    asked: dict[str, Any], trainer: str, pserver: str | None
) -> None:
    commands = {role.name: role.command for role in paddlepaddle.job_spec(SENT | asked, package=PACKAGE).roles}
    assert commands == {"trainer": trainer} | ({} if pserver is None else {"pserver": pserver})


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("python train.py", ("python train.py", "", "")),
        ("PADDLECLOUD_COMPAT=v2 python train.py", ("python train.py", "", "v2")),
        (
            """A=1 PADDLECLOUD_PSENTRY='sh run.sh' B="x y" python t.py --c=1""",
            ("""A=1 B="x y" python t.py --c=1""", "sh run.sh", ""),
        ),
        (r"PADDLECLOUD_PSENTRY=serve\ me  sh a.sh; b", ("sh a.sh; b", "serve me", "")),
        ("A=$(date) PADDLECLOUD_COMPAT=v2 x", ("A=$(date) PADDLECLOUD_COMPAT=v2 x", "", "")),
        ("A=1; PADDLECLOUD_COMPAT=v2 x", ("A=1; PADDLECLOUD_COMPAT=v2 x", "", "")),
        ("PADDLECLOUD_COMPAT=v2", ("", "", "v2")),
        ("", ("", "", "")),
    ],
)
def test_an_entry_asks_by_the_variables_that_it_begins_with(text: str, read: tuple[str, str, str]) -> None:
    assert paddlepaddle.read_entry(text) == read


def test_pservers_are_given_one_program() -> None:
    with pytest.raises(InvalidError, match="name two programs"):
        paddlepaddle.job_spec(SENT | {"entry": "PADDLECLOUD_PSENTRY=a b", "psentry": "c"}, package=PACKAGE)


def test_what_an_older_client_leaves_out_has_its_default() -> None:
    spec = paddlepaddle.job_spec({"entry": "true"}, package=PACKAGE)
    assert spec.name == "paddle-cluster-job"
    assert [(role.name, role.count, role.resources) for role in spec.roles] == [
        ("trainer", 1, Resources(cpus=1.0, memory_bytes=2**30)),
        ("pserver", 1, Resources(cpus=1.0, memory_bytes=2**30)),
    ]
    assert all(role.restarts == 0 for role in spec.roles)


def test_tasks_of_a_fault_tolerant_job_are_started_again() -> None:
    spec = paddlepaddle.job_spec(SENT | {"faulttolerant": True}, package=PACKAGE)
    assert all(role.restarts == paddlepaddle.RESTARTS for role in spec.roles)


@pytest.mark.parametrize("given", ["mine", "pcloud-registry-mine"])
def test_a_registry_is_meant_in_both_spellings(given: str) -> None:
    assert paddlepaddle.job_spec(SENT | {"image": "x", "registry": given}, package=PACKAGE).registry == "mine"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"entry": "", "topology": ""}, "no topology or entry specified"),
        ({"name": "a_b"}, "jobname 'a_b'"),
        ({"name": ""}, "jobname ''"),
        ({"name": "ends-with-"}, "jobname"),
        ({"name": "a" * 64}, "at most 63"),
        ({"parallelism": "3"}, "parallelism must be a whole number"),
        ({"parallelism": -1}, "parallelism must be a whole number"),
        ({"parallelism": True}, "parallelism must be a whole number"),
        ({"memory": 5}, "memory must be a text"),
        ({"memory": "much"}, "much"),
        ({"faulttolerant": "yes"}, "faulttolerant must be true or false"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        paddlepaddle.job_spec(SENT | asked, package=PACKAGE)


@pytest.mark.parametrize("name", ["a", "my-paddlecloud-job", "v1.2", "A9"])
def test_names_are_of_seed_001s_characters(name: str) -> None:
    paddlepaddle.check_name(name)


def test_a_worker_has_the_old_kind_of_name_and_keeps_it() -> None:
    def job(number: int) -> Job:
        spec = JobSpec(roles=(RoleSpec(name="trainer", count=2, command="true"),), name="my-job")
        return Job(id=f"job-{number:032x}", user="ann", spec=spec, created_at=datetime(2026, 1, 1, tzinfo=UTC))

    names = {paddlepaddle.worker_name(job(number), f"trainer-{index}") for number in range(50) for index in range(2)}
    assert len(names) == 100
    assert all(name.startswith("my-job-trainer-") and len(name) == len("my-job-trainer-3s4nz") for name in names)
    assert paddlepaddle.worker_name(job(1), "trainer-0") == paddlepaddle.worker_name(job(1), "trainer-0")
