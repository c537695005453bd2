"""The two examples of cluster_train train as their READMEs say, on two trainers with PaddlePaddle."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.flow.lab import Lab
from tests.frameworks import needs

pytestmark = [pytest.mark.slow, needs("paddle")]


@pytest.mark.parametrize(
    ("example", "model", "end"),
    [
        ("sequence_tagging", "pass-00005/tagger.pdparams", "rightly tagged"),
        ("image_classification", "pass-00003/vgg.pdparams", "rightly named"),
    ],
)
def test_an_example_learns(frameworks_lab: Lab, tmp_path: Path, example: str, model: str, end: str) -> None:
    lab, folder, programs = frameworks_lab, tmp_path / example, tmp_path / "bin"
    left = shutil.ignore_patterns("data", "__pycache__")
    shutil.copytree(ROOT / "examples" / "cluster-train" / example, folder, ignore=left)
    programs.mkdir()
    for name, module in (("paddle", "paddle"), ("paddlecloud", "main")):
        (programs / name).write_text(f"#!{sys.executable}\nfrom paddlecloud.cli.{module} import start\n\nstart()\n")
        (programs / name).chmod(0o755)
    env = {**lab.env, "PATH": f"{programs}:{lab.env['PATH']}"}
    for script in ("put_data.sh", "run.sh"):
        done = subprocess.run(["sh", script], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
    job = done.stdout.split()[-1]
    lab.ends(job, "success", seconds=200)
    log = lab.out("logs", job)
    for rank in range(2):
        losses = [float(loss) for loss in re.findall(rf"trainer-{rank} \| .*pass \d  batch \d+  loss ([\d.]+)", log)]
        assert losses[-1] < 0.2 < 0.5 < losses[0], log
        right = re.findall(rf"trainer-{rank} \| {end}: ([\d.]+)", log)
        assert float(right[0]) > 0.9
    lab.client().download(job, tmp_path / "results")
    assert len(list((tmp_path / "results").glob(f"**/rank-*/{model}"))) == 2
