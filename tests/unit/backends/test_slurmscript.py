"""The batch script is a pure function of the launch: nothing that a user writes gets out of its place in it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from paddlecloud.backends.base import Launch, RefusedError
from paddlecloud.backends.slurmscript import OURS, check_option, groups, in_order, render
from paddlecloud.model.job import Resources
from tests.launches import make_launch

RUN = ["python3", "-I", "-S", "/data/run time", "/data/job-1-1"]
STEP = "--export=ALL --distribution=block --kill-on-bad-exit=0 --wait=0 --mpi=none"
ADDRESSES = r"s/^NodeName=\([^ ]*\) .*NodeAddr=\([^ ]*\) .*/\1=\2/p"


def script(launch: Launch, **more: Any) -> str:
    asked: dict[str, Any] = {
        "options": {},
        "command": RUN,
        "output": "/data/job-1-1/slurm.out",
        "wall_time_seconds": None,
    }
    return render(launch, **{**asked, **more})


def launch(*commands: str, gpus: int = 0, **more: Any) -> Launch:
    made = make_launch(Path("/results"), *commands, job="job-1", **more)
    tasks = [
        replace(task, resources=replace(task.resources, gpus=gpus)) if task.role == "trainer" else task
        for task in made.placement.tasks
    ]
    return dataclasses.replace(made, placement=replace(made.placement, tasks=tuple(tasks)))


def test_one_task_is_the_batch_script_itself() -> None:
    assert script(launch("true"), wall_time_seconds=61) == (
        "#!/bin/sh\n"
        "#SBATCH --job-name=job-1-1\n"
        '#SBATCH --comment="someone a-test"\n'
        "#SBATCH --output=/data/job-1-1/slurm.out\n"
        "#SBATCH --no-requeue\n"
        "#SBATCH --export-file=/dev/null\n"
        "#SBATCH --chdir=/\n"
        "#SBATCH --time=2\n"
        "#SBATCH --ntasks=1\n"
        "#SBATCH --cpus-per-task=1\n"
        "#SBATCH --mem-per-cpu=512M\n"
        'export PATH="${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin"\n'
        "exec python3 -I -S '/data/run time' /data/job-1-1\n"
    )


def test_several_alike_are_one_step_whose_tasks_know_their_addresses() -> None:
    text = script(launch("a", "b", "c", cpus=1.5, memory_bytes=(1 << 30) + 1), options={"partition": "batch"})
    assert text.endswith(
        "#SBATCH --ntasks=3\n"
        "#SBATCH --cpus-per-task=2\n"
        "#SBATCH --mem-per-cpu=513M\n"
        "#SBATCH --partition=batch\n"
        'export PATH="${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin"\n'
        'export PADDLECLOUD_ADDRESSES="$(scontrol -o show node "$SLURM_JOB_NODELIST" '
        f"| sed -n '{ADDRESSES}' | tr '\\n' ' ')\"\n"
        f"exec srun {STEP} --ntasks=3 --cpus-per-task=2 python3 -I -S '/data/run time' /data/job-1-1\n"
    )
    assert "hetjob" not in text


def test_tasks_with_nodes_of_their_own_ask_for_as_many() -> None:
    assert "#SBATCH --ntasks=3\n#SBATCH --nodes=3\n" in script(launch("a", "b", "c"), own_nodes=True)
    assert "--nodes" not in script(launch("a", "b", "c"))


def test_tasks_with_and_without_gpus_are_parts_of_which_each_is_told_all() -> None:
    mixed = launch("a", "b", pservers=["c"], gpus=2)
    text = script(mixed, options={"qos": "high"}, wall_time_seconds=60)
    first, second = text.split("#SBATCH hetjob\n")
    assert "#SBATCH --ntasks=2\n" in first
    assert "#SBATCH --gpus-per-task=2\n" in first
    assert "--gpus-per-task" not in second
    for part in (first, second):
        for line in ("--job-name=job-1-1", "--qos=high", "--time=1", "--no-requeue", "--export-file=/dev/null"):
            assert f"#SBATCH {line}\n" in part
    own = "python3 -I -S '/data/run time' /data/job-1-1"
    assert text.endswith(
        f"exec srun {STEP} --het-group=0 --ntasks=2 --cpus-per-task=1 {own} : "
        f"{STEP} --het-group=1 --ntasks=1 --cpus-per-task=1 {own}\n"
    )
    assert '"$SLURM_JOB_NODELIST_HET_GROUP_0,$SLURM_JOB_NODELIST_HET_GROUP_1"' in text
    assert [task.name for task in in_order(mixed)] == ["trainer-0", "trainer-1", "pserver-0"]


def test_tasks_that_differ_in_cpus_and_memory_alone_share_nodes() -> None:
    made = launch("a", pservers=["b"])
    large = replace(made.placement.tasks[0], resources=Resources(cpus=4, memory_bytes=1 << 30))
    placement = replace(made.placement, tasks=(large, made.placement.tasks[1]))
    [part] = groups(dataclasses.replace(made, placement=placement))
    assert (part.count, part.cpus, part.megabytes, part.gpus) == (2, 4, 1024, 0)


def test_what_a_task_does_not_ask_for_is_not_asked_for() -> None:
    text = script(launch("a", cpus=0, memory_bytes=0))
    assert "cpus-per-task" not in text
    assert "mem" not in text


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("", "--exclusive"),
        ("true", "--exclusive"),
        ("True", "--exclusive"),
        ("1", "--exclusive=1"),
        ("a&(b|c)", '--exclusive="a&(b|c)"'),
        ("$(reboot)", '--exclusive="$(reboot)"'),
        ("a b", '--exclusive="a b"'),
        ("gpu:v100:2", "--exclusive=gpu:v100:2"),
    ],
)
def test_an_option_is_one_line(value: str, line: str) -> None:
    assert f"#SBATCH {line}\n" in script(launch("a"), options={"exclusive": value})


def test_an_option_that_is_false_takes_back_what_the_cluster_says() -> None:
    assert "exclusive" not in script(launch("a"), options={"exclusive": "false"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[(name, "x") for name in sorted(OURS)],
        ("outp", "/etc/passwd"),
        ("wra", "reboot"),
        ("o", "x"),
        ("", "x"),
        ("-p", "x"),
        ("Partition", "x"),
        ("partition\n#SBATCH --uid", "0"),
        ("partition", "a\nreboot"),
        ("partition", "a\rb"),
        ("partition", 'a" --uid="0'),
        ("partition", "a\\"),
        ("partition", "ü"),
        ("partition", "a\0b"),
        ("partition", "x" * 201),
        ("p" * 41, "x"),
    ],
)
def test_hostile_options_are_refused(name: str, value: str) -> None:
    assert check_option(name, value)
    with pytest.raises(RefusedError, match="Slurm option"):
        script(launch("a"), options={name: value})


@pytest.mark.parametrize(
    "name", ["partition", "qos", "account", "constraint", "gres", "nodelist", "mem-bind", "time-min"]
)
def test_options_that_say_where_are_had(name: str) -> None:
    assert check_option(name, "a") == ""


@pytest.mark.parametrize("name", ['a"b', "a\nb\n#SBATCH --uid=0", "a\\", "$(reboot)", "`x`", "'", "名前", "a" * 500])
def test_a_jobs_name_is_only_a_comment(name: str) -> None:
    plain = script(launch("a"))
    named = script(dataclasses.replace(launch("a"), name=name))
    lines = [line for line in named.splitlines() if line not in plain.splitlines()]
    assert len(lines) == 1
    assert lines[0].startswith('#SBATCH --comment="someone ')
    assert lines[0].endswith('"')
    assert not set("\"\\$`'\n") & set(lines[0][len('#SBATCH --comment="') : -1])


def test_a_folders_name_is_taken_as_it_is() -> None:
    text = script(launch("a"), output='/d "x" 100%j/out')
    assert '#SBATCH --output="/d \\"x\\" 100%%j/out"\n' in text
    for wrong in ("/d\n#SBATCH --uid=0/out", "/d\\/out"):
        with pytest.raises(RefusedError, match="data folder"):
            script(launch("a"), output=wrong)
