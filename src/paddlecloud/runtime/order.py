"""A task as its supervisor is given it: read before the fork, since what is done there is done once, and copies no
page."""

from __future__ import annotations

from typing import Callable, NamedTuple

from paddlecloud.runtime import environments, taskfile, variables
from paddlecloud.runtime.environments import Environment
from paddlecloud.runtime.folder import TaskFolder
from paddlecloud.runtime.inside import describe
from paddlecloud.runtime.machine import Machine
from paddlecloud.runtime.outcome import mark
from paddlecloud.runtime.root import Plan, plan
from paddlecloud.runtime.taskfile import TaskFile, TaskFileError


class Order(NamedTuple):
    folder: TaskFolder
    task: TaskFile | None
    environment: dict[str, str]
    machine: Machine | None  # its root folder is built from this; None: it runs in the machine's own root
    plan: Plan | None  # of that root folder, for a task that needs no environment
    problem: str  # what keeps it from starting, or ""


def read_order(
    path: str, look: Callable[[TaskFile], Machine] | None, settle: Callable[[TaskFile], TaskFile] | None = None
) -> Order:
    """`look` looks at this machine for a task; None: tasks get no root folder here. `settle` completes what the task
    file cannot know."""
    folder = TaskFolder(path)
    try:
        task = taskfile.read(folder.task_file)
        task = task if settle is None else settle(task)
    except (OSError, TaskFileError) as error:
        return Order(folder, None, {}, None, None, describe(error))
    machine = None if look is None else look(task)
    planned = None if machine is None else plan(task, folder, machine, None, building=False)
    return Order(folder, task, variables.environment(task), machine, planned, "")


def packages(task: TaskFile | None) -> tuple[Environment | None, str]:
    """The environment that a task asks for, or what keeps it from having one."""
    try:
        return None if task is None else environments.wanted(task), ""
    except (environments.MissingError, OSError) as error:
        return None, mark(error) + describe(error)
