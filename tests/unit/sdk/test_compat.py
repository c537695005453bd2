"""The folder by which programs of PaddlePaddle v2 run with the Python of today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from paddlecloud.model.job import JobSpec, RoleSpec
from paddlecloud.sdk import compat

BARE = [getattr(sys, "_base_executable", sys.executable), "-S"]  # a Python that has nothing of ours installed


def run(folder: Path, program: str, *more: Path) -> subprocess.CompletedProcess[str]:
    path = ":".join(map(str, (folder, *more)))
    return subprocess.run([*BARE, "-c", program], env={"PYTHONPATH": path}, capture_output=True, text=True, check=False)


def test_what_was_split_is_read_by_each_trainer(tmp_path: Path) -> None:
    program = f"""
import cPickle as pickle
import paddle.v2.dataset.common as common
common.split(reader=lambda: range(7), line_count=2, suffix={str(tmp_path / "part-%05d.pickle")!r}, dumper=pickle.dump)
for trainer in range(2):
    print(list(common.cluster_files_reader({str(tmp_path / "part-*.pickle")!r}, trainer_count=2, train_id=trainer)()))
"""
    with compat.written() as folder:
        ran = run(folder, program)
    assert (ran.stdout, ran.stderr) == ("[0, 1, 2, 5, 6]\n[3, 4]\n", "")


def test_records_are_written_and_read_by_the_old_names(tmp_path: Path) -> None:
    program = f"""
import recordio
with recordio.Writer({str(tmp_path / "file")!r}, compressor=recordio.Compressor.NONE) as writer:
    writer.write(b"one")
print(list(recordio.reader({str(tmp_path / "file")!r})))
"""
    with compat.written() as folder:
        ran = run(folder, program)
    assert (ran.stdout, ran.stderr) == ("[b'one']\n", "")


def test_the_installed_paddle_is_not_hidden(tmp_path: Path) -> None:
    installed = tmp_path / "paddle"
    (installed / "nn").mkdir(parents=True)
    (installed / "__init__.py").write_text("from paddle import nn\nversion = '3.3'\n")
    (installed / "nn/__init__.py").write_text("layers = 7\n")
    with compat.written() as folder:
        ran = run(
            folder,
            "import paddle, paddle.v2.dataset as old; print(paddle.version, paddle.nn.layers, old.split.__name__)",
            tmp_path,
        )
    assert (ran.stdout, ran.stderr) == ("3.3 7 split\n", "")


def test_what_v2_had_beside_its_datasets_is_missing_with_a_sentence() -> None:
    with compat.written() as folder:
        ran = run(folder, "import paddle.v2 as paddle; paddle.init(use_gpu=False)")
    assert "paddle.v2 by --compat v2 has dataset alone, and no init" in ran.stderr


def test_every_role_finds_it_before_its_own_path() -> None:
    roles = tuple(RoleSpec(name=name, count=1, command=f"python {name}.py") for name in ("trainer", "pserver"))
    for role in compat.adapted(JobSpec(roles=roles)).roles:
        said = subprocess.run(
            ["sh", "-c", role.command.replace(f"python {role.name}.py", "echo $PYTHONPATH")],
            env={"PYTHONPATH": "/mine", "PATH": "/usr/bin:/bin"},
            cwd="/tmp",
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout == "/tmp/.paddle-v2:/mine\n"


def test_a_folder_of_the_jobs_own_has_its_way(tmp_path: Path) -> None:
    from paddlecloud.sdk import bundle

    (tmp_path / compat.FOLDER).mkdir()
    (tmp_path / compat.FOLDER / "cPickle.py").write_text("mine = True\n")
    with compat.bundled(bundle.scan(tmp_path)) as whole:
        assert whole.sources[f"{compat.FOLDER}/cPickle.py"].file == str(tmp_path / compat.FOLDER / "cPickle.py")
        assert f"{compat.FOLDER}/paddle/v2/__init__.py" in whole.sources


@pytest.mark.parametrize("sent", [False, True])
def test_only_text_goes_along(tmp_path: Path, sent: bool) -> None:
    from paddlecloud.sdk import bundle

    (tmp_path / "train.py").write_text("")
    with compat.bundled(bundle.scan(tmp_path) if sent else None) as whole:
        assert all(path.endswith(".py") for path in whole.sources)
        assert ("train.py" in whole.sources) is sent
