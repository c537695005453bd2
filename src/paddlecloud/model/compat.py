"""Adapts the commands of a job with `--compat v2`: they find the modules of PaddlePaddle v2 on their PYTHONPATH."""

from __future__ import annotations

import shlex

from msgspec.structs import replace

from paddlecloud.model import pfs
from paddlecloud.model.job import JobSpec

COMPATS = ("v2",)
FOLDER = ".paddle-v2"


def adapted(spec: JobSpec, folder: str = "") -> JobSpec:
    """The job with commands that find the modules of v2, wherever they go from where they start.

    `folder` is a path of the PFS; "": FOLDER is in the folder that was sent with the job.
    """
    place = f'"$PWD/{FOLDER}"'
    if folder:
        place = f'"${{PADDLECLOUD_PFS:-/{pfs.ROOT}}}"' + shlex.quote(folder.removeprefix(f"/{pfs.ROOT}"))
    first = f'export PYTHONPATH={place}"${{PYTHONPATH:+:$PYTHONPATH}}"; '
    return replace(spec, roles=tuple(replace(role, command=first + role.command) for role in spec.roles))
