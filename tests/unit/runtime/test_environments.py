"""Which environment a task asks for, and at which package its build failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.runtime import environments
from paddlecloud.runtime.environments import Environment, MissingError
from paddlecloud.runtime.taskfile import TaskFile
from tests.unit.runtime.orders import alone

PYPROJECT = '[project]\nname = "x"\ndependencies = ["a"]\n'


def task(tree: Path, **changes: object) -> TaskFile:
    return alone(tree=str(tree), mount=str(tree), environments="/envs/someone", **changes)


def wanted(found: TaskFile) -> Environment:
    environment = environments.wanted(found)
    assert environment is not None
    return environment


def test_nothing_is_asked_for_where_nothing_is_named(tmp_path: Path) -> None:
    assert environments.wanted(task(tmp_path)) is None
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    assert environments.wanted(task(tmp_path)) is None
    (tmp_path / "requirements.txt").write_text("a\n")
    assert environments.wanted(task(tmp_path, requirements="none")) is None
    assert environments.wanted(alone(tree=str(tmp_path))) is None


def test_requirements_come_before_a_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    assert wanted(task(tmp_path)).file == f"{tmp_path}/pyproject.toml"
    (tmp_path / "requirements.txt").write_text("a\n")
    assert wanted(task(tmp_path)).file == f"{tmp_path}/requirements.txt"
    assert wanted(task(tmp_path, requirements="pyproject.toml")).file == f"{tmp_path}/pyproject.toml"


def test_each_content_and_each_python_has_a_folder_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("a\n")
    first = wanted(task(tmp_path)).folder
    assert wanted(task(tmp_path)).folder == first
    others = [wanted(task(tmp_path, python="3.12")).folder, wanted(task(tmp_path, uv="/bin/uv")).folder]
    file.write_text("b\n")
    others.append(wanted(task(tmp_path)).folder)
    assert len({first, *others}) == 4
    assert all(folder.startswith("/envs/someone/") for folder in others)


def test_a_python_alone_is_an_environment_too(tmp_path: Path) -> None:
    found = wanted(task(tmp_path, python="3.12"))
    assert (found.file, found.python, found.machines) == ("", "python3.12", False)
    assert "install" not in found.script()


@pytest.mark.parametrize("name", ["gone.txt", "out.txt", "up/requirements.txt"])
def test_what_is_not_in_the_folder_is_missed(tmp_path: Path, name: str) -> None:
    (tmp_path / "requirements.txt").write_text("a\n")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "out.txt").symlink_to(tmp_path / "requirements.txt")
    (tree / "up").symlink_to(tmp_path)
    with pytest.raises(MissingError, match="is not in the job's folder"):
        environments.wanted(task(tree, requirements=name))


@pytest.mark.parametrize(
    ("said", "package"),
    [
        ("ERROR: No matching distribution found for nosuch==3.1\n", "nosuch==3.1"),
        (
            "  × No solution found when resolving dependencies:\n  ╰─▶ Because nosuch was not found in the provided\n",
            "nosuch",
        ),
        ("Because there is no version of six==99 and you require six==99", "six==99"),
        ("ERROR: Failed building wheel for broken\nFailed to build broken\n", "broken"),
        ("ERROR: Invalid requirement: 'a b c': Expected end\n", "a b c"),
        ("some words that say nothing", ""),
    ],
)
def test_the_package_that_a_build_failed_at_is_named(said: str, package: str) -> None:
    assert environments.culprit(said) == package
