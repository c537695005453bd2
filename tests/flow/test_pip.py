"""`pip3 install` in a task, as OpenPAI's users do it: it works, its commands are found, and it goes with the task."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flow.lab import Lab
from tests.wheels import wheel

PASSWORD = "correct horse"
DEBIANS = Path("/usr/bin/python3")
# What is installed is seen by python, by commands of its own, by a command that was there, and by pip itself.
JOB = """
set -e
pip3 --quiet install --no-index --find-links wheels extra greeting==2.0
python -c 'import extra, greeting; print("python sees", extra.WORD, greeting.WORD)'
extra-says
{there}
cat > later.py <<'END'
import subprocess, sys
subprocess.check_call([sys.executable, "-m", "pip", "-q", "install", "--no-index", "--find-links", "wheels", "late"])
END
python later.py
python3 -m pip list 2>/dev/null | grep -E '^(extra|greeting|late) '
"""
SEEN = "python sees more 2.0\nextra runs\n{there}extra 1.0\ngreeting 2.0\nlate 1.0\n"


def wheels(folder: Path) -> None:
    says = "WORD = {word!r}\ndef main():\n    print({line!r})\n"
    wheel(folder, "extra", says.format(word="more", line="extra runs"), script="extra-says")
    wheel(folder, "late", says.format(word="late", line=""))
    wheel(
        folder, "tool", "def main():\n    import greeting\n    print('tool sees', greeting.WORD)\n", script="tool-says"
    )
    for version in ("1.0", "2.0"):
        wheel(folder, "greeting", says.format(word=version, line=""), version=version)


def a_virtual_environment(folder: Path, packages: Path) -> Path:
    """One for all tasks, with a package and a command."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    words = ["install", "--quiet", "--no-index", "--find-links", str(packages), "greeting==1.0", "tool"]
    subprocess.run([str(folder / "bin" / "pip"), "--disable-pip-version-check", *words], check=True)
    return folder / "bin" / "python"


@pytest.fixture(params=["plain", "debians", "environment"])
def python(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    wheels(tmp_path / "wheels")
    if request.param == "environment":
        made = a_virtual_environment(tmp_path / "python", tmp_path / "wheels")
    elif request.param == "debians":
        if (
            not DEBIANS.exists()
            or subprocess.run([str(DEBIANS), "-m", "pip", "--version"], capture_output=True).returncode
        ):
            pytest.skip(f"{DEBIANS} has no pip: apt-get install python3-pip")
        made = DEBIANS
    else:
        made = Path(getattr(sys, "_base_executable", sys.executable))
    return request.param, made


def test_what_a_task_installs_works_and_goes_with_it(python: tuple[str, Path], lab: Lab, tmp_path: Path) -> None:
    kind, interpreter = python
    lab.configure(f'[jobs]\npython = "{interpreter}"\n')
    lab.type("up")
    lab.type("user", "add", "ann", "--password", stdin=f"{PASSWORD}\n")  # of several users each has another account
    token = {"PADDLECLOUD_SERVER": lab.server["url"], "PADDLECLOUD_TOKEN": _token(lab)}
    below = content(tmp_path / "python")
    has_tool = kind == "environment"
    folder = lab.folder(run_sh=JOB.format(there="tool-says" if has_tool else ""))
    os.rename(tmp_path / "wheels", folder / "wheels")
    said = lab.type("run", "job", "--", "bash", "run.sh", **token)
    lines = [" ".join(line.split()) for line in said.stdout.splitlines() if not line.startswith(("[", "WARNING"))]
    assert "\n".join(lines) + "\n" == SEEN.format(there="tool sees 2.0\n" if has_tool else ""), said
    after = (
        "python -c 'import greeting as g; print(g.WORD)' 2>/dev/null || echo none; command -v extra-says || echo gone"
    )
    again = lab.type("run", "job", "--", "sh", "-c", after, **token).stdout
    assert again.splitlines() == ["1.0" if has_tool else "none", "gone"]
    assert content(tmp_path / "python") == below


def test_the_environment_of_a_job_is_not_changed_by_what_its_tasks_install(lab: Lab, tmp_path: Path) -> None:
    # uv makes environments without pip, so there `python -m pip` is nothing; `pip` is.
    folder = lab.folder(run_sh=JOB.format(there="tool-says").partition("cat > later.py")[0])
    wheels(folder / "wheels")
    (folder / "requirements.txt").write_text("--no-index\n--find-links wheels\ngreeting==1.0\ntool\n")
    said = lab.type("run", "job", "--", "bash", "run.sh").stdout
    lines = "\n".join(" ".join(line.split()) for line in said.splitlines())
    assert SEEN.format(there="tool sees 2.0\n").partition("extra 1.0")[0] in f"{lines}\n", said
    again = lab.type("run", "job", "--", "python", "-c", "import greeting; print(greeting.WORD)").stdout
    assert again.splitlines()[-1] == "1.0"


def test_a_virtual_environment_that_a_task_makes_has_its_own_pip(lab: Lab, tmp_path: Path) -> None:
    wheels(tmp_path / "wheels")
    interpreter = a_virtual_environment(tmp_path / "python", tmp_path / "wheels")
    lab.configure(f'[jobs]\npython = "{interpreter}"\n')
    folder = lab.folder(
        run_sh="python3 -m venv mine && . mine/bin/activate && pip -q install --no-index --find-links wheels extra\n"
        "python -c 'import extra; print(extra.__file__)'\n"
    )
    os.rename(tmp_path / "wheels", folder / "wheels")
    assert "/mine/lib/" in lab.type("run", "job", "--", "sh", "run.sh").stdout


def content(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*") if "__pycache__" not in path.parts}


def _token(lab: Lab) -> str:
    return lab.client().accounts.login("ann", PASSWORD).secret
