"""Inputs of a job: what is understood of them, and what is refused with a word on why."""

from __future__ import annotations

import pytest

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.inputs import MOST, default_target, normal
from paddlecloud.model.job import Input

PFS = "/pfs/dc/home/ann/x"


def one(source: str = PFS, target: str = "in", **more: object) -> Input:
    return Input(source=source, target=target, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (one("//pfs/dc/./home/ann//x/", "./in/"), one()),
        (one("/pfs/dc/home/bob/../ann/x"), one()),
        (one("hdfs://nn:54310//app/./x/", "a//b"), one("hdfs://nn:54310/app/x", "a/b")),
        (one("hdfs://nn"), one("hdfs://nn/")),
        (one(target="./"), one(target=".")),
        (one(target=""), one(target=".")),
        (one(list="./train.list"), one(list="train.list")),
        (one("hdfs://nn/x", user="ann"), one("hdfs://nn/x", user="ann")),
    ],
)
def test_paths_come_into_one_form(given: Input, wanted: Input) -> None:
    assert normal([given]) == (wanted,)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([one("/etc/passwd")], r"inputs\[0\].source \(from\) '/etc/passwd' is nothing that an input can come from"),
        ([one("s3://bucket/x")], "name a file or folder as /pfs/<datacenter>/… or hdfs://"),
        ([one("/pfs/\0")], "NUL"),
        ([one("hdfs:///x")], "names no file system"),
        ([one("hdfs://ann@nn/x")], "names no file system"),
        ([one("hdfs://nn/a/../b")], "'..'"),
        ([one(target="../x")], r"inputs\[0\].target \(to\) '../x' leads out of the working directory"),
        ([one(target="/x")], "leads out of the working directory"),
        ([one(target="a/../../x")], "leads out of the working directory"),
        ([one(list="/etc/list")], r"inputs\[0\].list \(list\) '/etc/list' leads out"),
        ([one(), one()], r"inputs\[1\].target \(to\) 'in' and inputs\[0\].target 'in' are in each other's way"),
        ([one(target="a"), one(target="a/b")], "in each other's way"),
        ([one(target="a/b"), one(target="a")], "in each other's way"),
        ([one(target="."), one(target="a")], "in each other's way"),
        ([one(target="a"), one(target="b", list="a/list")], r"inputs\[1\].list 'a/list' is in the way of"),
        ([one(target="a/b", list="a")], "is in the way of"),
        ([one(user="ann")], "is for HDFS"),
        ([one("hdfs://nn/x", user="ann,secret")], "is no name of a user"),
        ([one("hdfs://nn/x", user="a\nb")], "is no name of a user"),
        ([one(target=str(number)) for number in range(MOST + 1)], f"has {MOST + 1} inputs; {MOST} is the most"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(given: list[Input], why: str) -> None:
    with pytest.raises(InvalidError, match=why):
        normal(given)


def test_several_inputs_may_have_one_list_and_names_that_begin_alike() -> None:
    given = (one(target="a", list="all.list"), one(target="ab", list="all.list"), one(target=".a"))
    assert normal(given) == given


def test_the_target_is_the_last_name_of_the_source_if_nobody_says() -> None:
    assert [default_target(source) for source in ("/pfs/a/home/b/c/", "hdfs://nn:1/d/e", "hdfs://nn:1")] == [
        "c",
        "e",
        ".",
    ]
