"""PaddlePaddle Cloud's form of submit: a flag of the modern set counts, or is refused."""

from __future__ import annotations

import argparse

import pytest

from paddlecloud.cli import paddlepaddle
from paddlecloud.cli.verbs import VERBS, parser
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.paddlepaddle import job_spec

OLD = ("-jobname", "a", "-entry", "true")
SPEC = job_spec({"entry": "true"}, package="/pfs/local/home/ann/package")
VALUES = {
    "--memory": "1Gi",
    "--env": "A=1",
    "--time-limit": "2m",
    "--hang": "2m",
    "--slurm": "qos=high",
    "--compat": "v2",
    "--distribute": "NCCL2",
    "--job-type": "cpu",
}
COMPAT = "--compat"  # which submit itself acts upon
NOT_OF_THE_JOB = ("help", "output")


def modern() -> list[argparse.Action]:
    """Every flag of submit that is not of PaddlePaddle Cloud."""
    actions = parser(VERBS["submit"])._actions
    return [
        one
        for one in actions
        if any(flag.startswith("--") for flag in one.option_strings) and one.dest not in NOT_OF_THE_JOB
    ]


@pytest.mark.parametrize("action", modern(), ids=lambda action: str(action.dest))
def test_no_flag_is_dropped(action: argparse.Action) -> None:
    flag = next(flag for flag in action.option_strings if flag.startswith("--"))
    words = [flag] if action.nargs == 0 else [flag, VALUES.get(flag, "3")]
    args = parser(VERBS["submit"]).read([*OLD, *words, "package"])
    assert paddlepaddle.is_meant(args)
    if flag.removeprefix("--") in paddlepaddle._INSTEAD:
        with pytest.raises(InvalidError, match=f"^{flag} does not go with"):
            paddlepaddle._refuse_newer(args)
    elif flag != COMPAT:
        paddlepaddle._refuse_newer(args)
        assert paddlepaddle._with_newer(SPEC, args) != SPEC, f"{flag} is dropped"
