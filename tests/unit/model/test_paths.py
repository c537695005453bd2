"""The names we make up, and the paths we are given."""

from __future__ import annotations

import pytest

from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError, NotFoundError
from paddlecloud.model.user import check_user_name

JOB = "job-0650470e621f3688812ceda2079805f8"


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "..", "a/../b", "a//b", "./a", "a/", "a\0b", "x" * 256, "a/" * 2100 + "a", "\udcff"]
)
def test_a_path_that_could_escape_or_cannot_exist_is_refused(path: str) -> None:
    with pytest.raises(InvalidError):
        paths.check_relative(path)


@pytest.mark.parametrize("path", ["a", "a/b c/d\ne", "数据/训练", "...", "x" * 255])
def test_odd_but_honest_paths_are_kept(path: str) -> None:
    assert paths.check_relative(path) == path


@pytest.mark.parametrize(
    ("prefix", "below"),
    [
        ("/", ""),
        ("", ""),
        ("output", ""),
        (f"output/{JOB}", ""),
        (f"output/{JOB}/", ""),
        (f"/output/{JOB}/log", "log"),
        ("log", "log"),
        ("rank-0/model", "rank-0/model"),
    ],
)
def test_a_results_prefix_is_understood_in_every_spelling(prefix: str, below: str) -> None:
    assert paths.below_output(JOB, prefix) == below


@pytest.mark.parametrize("prefix", ["../x", f"output/{JOB}/../x", "log/../../x", "a\0"])
def test_a_prefix_that_climbs_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidError):
        paths.below_output(JOB, prefix)


def test_a_prefix_of_another_job_is_not_found() -> None:
    with pytest.raises(NotFoundError):
        paths.below_output(JOB, "output/job-" + "1" * 32 + "/log")


@pytest.mark.parametrize("name", ["ann", "张三@163.com", "a.b+c@d-e.org", "x" * 60])
def test_user_names_of_any_script_are_allowed(name: str) -> None:
    assert check_user_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "-x", ".ssh", "a/b", "a b", "a\0", "x" * 61, "a\n"])
def test_a_user_name_that_is_no_folder_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidError):
        check_user_name(name)
