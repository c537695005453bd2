"""Layers a private virtual environment, in a task's HOME, over that of `jobs.python`, so that `pip install` can write.

Invariant: other tasks see none of it, and it goes with the task. pip finds everything in the environment below
installed, and puts another version of a package before it. A Python that is no virtual environment needs no layer: pip
writes to HOME by itself where it may not write to the Python's own folders.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Mapping, Optional

from paddlecloud.runtime import smallfiles

FOLDER = ".local"  # of HOME: where pip puts packages of one user, too
_PACKAGES = "site-packages"
_PYTHON = """#!/bin/sh
exec {python} "$@"
"""
# Whichever python3 is first on PATH. Environments that uv makes have no pip: that of the interpreter does it then.
_PIP = """#!/bin/sh
python3 -c 'import pip' 2>/dev/null && exec python3 -m pip "$@"
exec {python} -m pip --python "$(command -v python3)" "$@"
"""


def commands(interpreter: str) -> "dict[str, str]":
    """The scripts that come first on the PATH of every task, by name."""
    python = "'" + interpreter.replace("'", "'\\''") + "'"
    found = {name: _PYTHON.format(python=python) for name in ("python", "python3")}
    found.update({name: _PIP.format(python=python) for name in ("pip", "pip3")})
    return found


def environment(told: Mapping[str, str], home: str, python: str, scripts: str) -> "dict[str, str]":
    """The variables of a task that runs `python`, for which an environment is made if need be; `scripts` is the folder
    of `commands`."""
    below = os.path.dirname(os.path.dirname(python))
    found = dict(told)
    version = _version(below)
    if version is None:
        return found
    own = f"{home}/{FOLDER}"
    with suppress(OSError):  # it is there if the task was started again; on a full disk `python` is the one below
        _make(own, below, version, python)
    found["PATH"] = f"{own}/bin:{scripts}:{told.get('PATH', '')}"
    found["VIRTUAL_ENV"] = own
    # For scripts of the environment below, which name its own python in their first line.
    before = f"{told['PYTHONPATH']}:" if told.get("PYTHONPATH") else ""
    found["PYTHONPATH"] = f"{before}{own}/lib/{version}/{_PACKAGES}"
    return found


def _version(environment: str) -> Optional[str]:
    """`python3.11`, of a virtual environment; None: it is none."""
    if not os.path.exists(f"{environment}/pyvenv.cfg"):
        return None
    return next((name for name in os.listdir(f"{environment}/lib") if name.startswith("python3")), None)


def _make(own: str, below: str, version: str, python: str) -> None:
    packages = f"{own}/lib/{version}/{_PACKAGES}"
    os.makedirs(packages)
    os.mkdir(f"{own}/bin")
    smallfiles.write_new(f"{own}/pyvenv.cfg", smallfiles.read(f"{below}/pyvenv.cfg"), 0o644)
    line = f"import site; site.addsitedir({f'{below}/lib/{version}/{_PACKAGES}'!r})\n"
    smallfiles.write_new(f"{packages}/paddlecloud.pth", line.encode(), 0o644)
    for name in ("python", "python3"):
        os.symlink(python, f"{own}/bin/{name}")
