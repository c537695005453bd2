"""The runtime as nodes get it: whole, compiled, and put in place once."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from paddlecloud.backends import shipped

UNCHECKED = b"\1\0\0\0"  # the flags of a compiled file, after its magic number


@pytest.fixture(params=["put", "fetched"])
def runtime(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "put":
        return shipped.put(tmp_path)
    with zipfile.ZipFile(io.BytesIO(shipped.archive())) as archive:
        archive.extractall(tmp_path / "runtime")
    return tmp_path / "runtime"


def test_it_is_compiled_for_this_python_and_stays_so_whatever_the_time_of_its_files_is(runtime: Path) -> None:
    modules = runtime / "paddlecloud" / "runtime"
    compiled = {path.name.partition(".")[0]: path.read_bytes()[4:8] for path in modules.glob("__pycache__/*.pyc")}
    assert compiled == {path.stem: UNCHECKED for path in modules.glob("*.py")}
    assert "node" in compiled


def test_nothing_is_compiled_when_it_runs(runtime: Path) -> None:
    loud = [sys.executable, "-I", "-S", "-v", str(runtime), "/nowhere"]
    said = subprocess.run(loud, capture_output=True, text=True, check=False).stderr
    assert "FileNotFoundError" in said  # it has run, and found no handle there
    assert f"# code object from '{runtime}/paddlecloud/runtime/__pycache__/node." in said
    assert f"# code object from {runtime}/paddlecloud/" not in said  # as it says of what it had to compile


def test_it_is_put_in_place_once(tmp_path: Path) -> None:
    first = shipped.put(tmp_path)
    (first / "mark").touch()
    assert shipped.put(tmp_path) == first
    assert (first / "mark").exists()
