"""A job's own packages: built once for each content, shared by its user's jobs, never half there."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from paddlecloud.backends import local
from paddlecloud.backends.base import Launch
from paddlecloud.files.environments import Environments, Kept
from paddlecloud.model.task import TaskState
from paddlecloud.runtime.environments import CACHE
from tests.contract.local import Room, log
from tests.launches import ended, started, wait_for
from tests.waiting import wait_until
from tests.wheels import wheel

USE = "python -c 'import greeting; print(greeting.WORDS)'"


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "packages"
    wheel(folder, "greeting", "WORDS = 'hello from a package'\n")
    return folder


def folder_with(room: Room, packages: Path, *lines: str, name: str = "requirements.txt") -> Path:
    tree = room.folder / "tree"
    tree.mkdir(exist_ok=True)
    (tree / name).write_text("\n".join([f"--no-index\n--find-links {packages}", *lines, ""]))
    return tree


def built(room: Room) -> list[str]:
    return [kept.name for kept in environments(room)]


def environments(room: Room) -> list[Kept]:
    """All but the cache of builds, which is beside them."""
    return [kept for kept in Environments(room.folder / "environments").all() if kept.name != CACHE]


def run(room: Room, command: str, tree: Path, **more: object) -> tuple[TaskState, str]:
    launch = room.launch(command, tree=tree, **more)  # type: ignore[arg-type]
    task = room.run(launch)
    return task.state, log(launch) + task.reason


def test_what_requirements_name_is_there_and_is_built_once(room: Room, packages: Path) -> None:
    tree = folder_with(room, packages, "greeting")
    state, said = run(room, USE, tree)
    assert state is TaskState.SUCCEEDED, said
    assert "building its environment from requirements.txt" in said
    assert said.endswith("hello from a package\n")
    state, said = run(room, f"{USE}; touch $(python -c 'import greeting; print(greeting.__file__)')", tree)
    assert "building" not in said
    assert said.startswith("hello from a package\n")
    assert len(built(room)) == 1
    if room.isolated:
        assert state is TaskState.FAILED, "an environment is not to be changed by who runs in it"


def test_two_tasks_at_once_build_one(room: Room, packages: Path) -> None:
    tree = folder_with(room, packages, "greeting")
    launch = room.launch(USE, USE, tree=tree)
    room.backend.start(launch)
    report = wait_for(room.backend, launch.handle, ended)
    assert [task.state for task in report.tasks] == [TaskState.SUCCEEDED] * 2
    told = log(launch, "trainer-0") + log(launch, "trainer-1")
    assert told.count("building its environment") == 1
    assert told.count("hello from a package") == 2


def test_another_content_is_another_environment(room: Room, packages: Path) -> None:
    wheel(packages, "greeting", "WORDS = 'hello again'\n", version="2.0")
    assert "hello from a package" in run(room, USE, folder_with(room, packages, "greeting==1.0"))[1]
    assert "hello again" in run(room, USE, folder_with(room, packages, "greeting==2.0"))[1]
    assert len(built(room)) == 2


def test_environments_of_a_user_share_the_files_that_they_have_in_common(room: Room, packages: Path) -> None:
    wheel(packages, "more", "WORDS = 'and more'\n")
    assert "hello" in run(room, USE, folder_with(room, packages, "greeting"))[1]
    assert "hello" in run(room, USE, folder_with(room, packages, "greeting", "more"))[1]
    files = list((room.folder / "environments").glob("*/*/env/lib/python*/site-packages/greeting.py"))
    assert len(files) == 2
    assert len({file.stat().st_ino for file in files}) == 1, "one file, linked"


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_a_failed_build_names_the_package(tmp_path: Path, packages: Path, tool: str) -> None:
    with Room(tmp_path, uv=local.find_uv() if tool == "uv" else None) as room:
        tree = folder_with(room, packages, "greeting", "nosuchpackage==3.1")
        launch = room.launch(USE, tree=tree)
        task = room.run(launch)
        assert task.state is TaskState.FAILED
        assert task.reason.startswith("its environment could not be built from requirements.txt: nosuchpackage"), log(
            launch
        )
        assert "nosuchpackage" in task.tail


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_a_pyproject_names_packages_too(tmp_path: Path, packages: Path, tool: str) -> None:
    with Room(tmp_path, uv=local.find_uv() if tool == "uv" else None) as room:
        tree = tmp_path / "tree"
        tree.mkdir()
        (tree / "pyproject.toml").write_text('[project]\nname = "job"\nversion = "1"\ndependencies = ["greeting"]\n')
        env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(packages), "UV_OFFLINE": "1", "UV_FIND_LINKS": str(packages)}
        state, said = run(room, USE, tree, env=env)
        assert (state, said.endswith("hello from a package\n")) == (TaskState.SUCCEEDED, True), said


def test_a_file_that_is_named_is_taken_and_one_that_is_not_there_is_missed(room: Room, packages: Path) -> None:
    tree = folder_with(room, packages, "greeting", name="gpu.txt")
    assert run(room, USE, tree)[0] is TaskState.FAILED
    assert "hello from a package" in run(room, USE, tree, requirements="gpu.txt")[1]
    said = run(room, USE, tree, requirements="cpu.txt")[1]
    assert said.endswith("could not start: cpu.txt, which is to name its packages, is not in the job's folder")


def test_none_is_built_where_none_is_wanted_or_the_machine_has_all(room: Room, packages: Path) -> None:
    nothing = folder_with(room, packages, "# nothing")
    state, said = run(room, "python -c 'import sys; print(sys.prefix == sys.base_prefix)'", nothing)
    assert state is TaskState.SUCCEEDED, said
    assert "no need: this machine's Python has all of requirements.txt" in said
    assert "was built" not in said
    unwanted = folder_with(room, packages, "nosuchpackage")
    assert run(room, "true", unwanted, requirements="none")[0] is TaskState.SUCCEEDED


def test_a_build_that_was_broken_off_is_begun_again(room: Room, packages: Path) -> None:
    tree = folder_with(room, packages, "greeting")
    launch = room.launch(USE, tree=tree)
    room.backend.start(launch)
    wait_until(lambda: built(room), "its folder is there")
    assert not started(room.backend.report([launch.handle])[launch.handle]), "its program has not begun"
    os.kill(room.supervisor(launch), signal.SIGKILL)
    wait_for(room.backend, launch.handle, ended)
    state, said = run(room, USE, tree)
    assert (state, said.endswith("hello from a package\n")) == (TaskState.SUCCEEDED, True), said


def test_an_environment_goes_only_while_nobody_runs_in_it(room: Room, packages: Path) -> None:
    tree = folder_with(room, packages, "greeting")
    launch: Launch = room.launch(f"{USE}; sleep 1000", tree=tree)
    room.backend.start(launch)
    wait_until(lambda: "hello" in log(launch), "it runs in its environment")
    kept = Environments(room.folder / "environments")
    [one] = environments(room)
    assert not kept.remove(one.user, one.name, lambda: None)
    room.backend.stop(launch.handle)
    wait_for(room.backend, launch.handle, ended)
    wait_until(lambda: kept.remove(one.user, one.name, lambda: None), "its lock is let go of")
    assert kept.remove(one.user, CACHE, lambda: None)
    assert list((room.folder / "environments" / one.user).iterdir()) == []
    assert "hello from a package" in run(room, USE, tree)[1]


def test_what_a_build_leaves_leads_the_server_nowhere(room: Room, packages: Path) -> None:
    """A package may bring any code, which runs while it is built, and may put links where the server is to write."""
    elsewhere = room.folder / "elsewhere"
    elsewhere.write_text("the server's own")
    tree = folder_with(room, packages, "greeting")
    launch = room.launch(USE, tree=tree)
    room.run(launch)
    [one] = environments(room)
    made = room.folder / "environments" / one.user
    names = [f"{name}{ending}" for name in (one.name, CACHE) for ending in ("", ".lock", ".ready")]
    assert sorted(path.name for path in made.iterdir()) == sorted(names)
    assert [path.name for path in (made / one.name).iterdir()] == ["env"]
    plant = f"for name in ready ready.part .ready; do ln -sf {elsewhere} $VIRTUAL_ENV/../$name; done"
    run(room, plant, tree)
    assert run(room, USE, tree)[0] is TaskState.SUCCEEDED
    assert elsewhere.read_text() == "the server's own"
