"""Seed 004's job from end to end: its three files as they are, its data and its results in HDFS as WebHDFS shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import hdfs
import pytest

from tests.flow.lab import Lab
from tests.wheels import wheel

EXAMPLE = Path(__file__).parents[2] / "examples" / "openpai-couplet"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A server whose machine has a GPU by its own word, a Python with `hdfs` for its tasks, and a folder `demo`."""
    made = Lab(tmp_path)
    python = _python_of_tasks(tmp_path / "python")
    made.configure(
        f'[jobs]\npython = "{python}"\n[clusters.local]\nbackend = "local"\ngpus = 1\ncpus = 4\nmemory = "10Gi"\n'
    )
    made.type("up")
    yield made
    made.close()


def _python_of_tasks(folder: Path) -> Path:
    """A Python that finds what these tests do, and in which the `pip3 install` of the seed has nothing to fetch."""
    venv.create(folder, with_pip=True, symlinks=True)
    packages = next(folder.glob("lib/python3.*/site-packages"))
    (packages / "tests.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    (folder / "pip.conf").write_text("[global]\nno-index = true\ndisable-pip-version-check = true\n")
    made = wheel(folder / "wheels", "future", "")
    subprocess.run([folder / "bin/pip3", "install", "--quiet", made], check=True, capture_output=True)
    return folder / "bin/python3"


def _filled_in(lab: Lab) -> Path:
    """The example, with the three variables of run_samples.py filled in."""
    project = lab.work / "couplet"
    shutil.copytree(EXAMPLE, project)
    script = project / "run_samples.py"
    text = script.read_text()
    values = {"hdfs_url": lab.server["url"], "hdfs_user_name": lab.client().profile.user, "root_dir": "/demo"}
    for name, value in values.items():
        text, count = re.subn(rf'^{name} = ".*"', f'{name} = "{value}"', text, flags=re.MULTILINE)
        assert count == 1
    script.write_text(text)
    return project


def test_the_couplet_is_trained_and_its_results_are_in_the_shared_folder(lab: Lab) -> None:
    user = lab.client().profile.user
    lab.type("group", "add", "poets", "--members", user)
    lab.type("share", "add", "demo", "--write", "poets")
    project = _filled_in(lab)
    subprocess.run([sys.executable, "make_data.py", "data"], cwd=project, check=True)
    lab.type("cp", "-r", "couplet/data", "/pfs/local/shared/demo/data")
    shutil.rmtree(project / "data")
    job = lab.out("submit", "couplet/new_job.pai.json").split()[-1]
    lab.ends(job, "success", seconds=120)
    said = lab.out("logs", job)
    assert "runs in the environment of the machine itself" in said
    accuracy = re.search(r"accuracy (\S+) on 100 couplets", said)
    assert accuracy is not None, said
    assert float(accuracy[1]) > 0.9
    name = lab.client().get(job).job.spec.name
    results = f"/pfs/local/shared/demo/output/{user}~{name}"
    listed = lab.out("ls", results)
    for file in ("model.ckpt-2000.json", "model.ckpt-6000.json", "train_default.log"):
        assert file in listed
    address = lab.out("webhdfs", "-o", "name").strip()
    there = hdfs.InsecureClient(address, user=user)
    assert "train_default.log" in there.list(f"/demo/output/{user}~{name}")


def test_the_seeds_files_are_the_seeds() -> None:
    text = (EXAMPLE / "run_samples.py").read_text()
    assert (
        'hdfs_url = "YOUR_HDFS_URL" \nhdfs_user_name = "YOUR_HDFS_USERNAME"\nroot_dir = "YOUR_PROJECT_ROOT_DIR"' in text
    )
    assert '"image": "vzich/poet:tensorflow"' in (EXAMPLE / "new_job.pai.json").read_text()
