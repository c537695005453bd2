"""What an install brings: the client stays small, and a developer's environment is pinned to the byte."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from paddlecloud import __version__
from tests.architecture.sources import ROOT

PACKAGES = 8
BYTES = 12_000_000
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_client_is_at_most_eight_packages_and_12_mb() -> None:
    needed = _with_dependencies([_name(line) for line in PROJECT["dependencies"]])
    assert len(needed) + 1 <= PACKAGES, sorted(needed)
    own = sum(file.stat().st_size for file in (ROOT / "src").rglob("*.py"))
    size = own + sum(_installed_bytes(name) for name in needed)
    assert size <= BYTES, f"{size / 1e6:.1f} MB"


@pytest.mark.parametrize("lock", ["server", "dev"])
def test_a_lock_pins_every_package_with_hashes_and_names_no_source(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    packages = text.replace("\\\n", " ").splitlines()
    packages = [line for line in packages if line and not line.startswith("#")]
    assert packages
    assert [line for line in packages if not re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line)] == []
    assert "://" not in text


@pytest.mark.parametrize(("lock", "extras"), [("server", ["server"]), ("dev", ["server", "ui", "dev"])])
def test_a_lock_holds_what_the_project_asks_for(lock: str, extras: list[str]) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    pinned = set(re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE))
    asked = PROJECT["dependencies"] + [line for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    assert {_name(line) for line in asked} <= pinned, "run `make lock`"


def test_the_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    files = [file for file in (ROOT / "src").rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    assert [name for file in files if (name := file.relative_to(ROOT / "src").as_posix()) not in held] == []
    assert "paddlecloud/py.typed" in held


def test_the_changelog_knows_this_version() -> None:
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def _with_dependencies(names: list[str]) -> set[str]:
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            names += [_name(line) for line in metadata.requires(name) or [] if "extra ==" not in line]
    return found


def _installed_bytes(name: str) -> int:
    files = metadata.files(name) or []
    paths = [Path(str(file.locate())) for file in files if "__pycache__" not in str(file)]
    return sum(path.stat().st_size for path in paths if path.exists())


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower().replace("_", "-")
