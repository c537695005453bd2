"""The script that starts a trainer of cluster_train, run by the shells that nodes have."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from paddlecloud.sdk.cluster_start import CLUSTER_TRAIN_PY, START_SH, command

SEED_HOOK = """\
function private_script()
{
  local l_thirdparty_dir=$1
  local l_workspace_dir=$2

  # add your script here
  
  cp $l_thirdparty_dir/*.py $l_workspace_dir/
  cp -rf $l_thirdparty_dir/PIL $l_workspace_dir/
  cp  $l_thirdparty_dir/lib* $l_workspace_dir/

}
"""  # noqa: W293
SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]


class Node:
    """A workspace as a task finds it."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.thirdparty = self.work / "thirdparty" / "thirdparty"
        self.thirdparty.mkdir(parents=True)
        (self.work / "thirdparty" / "start.sh").write_text(START_SH)
        (self.work / "thirdparty" / "cluster_train.py").write_text(CLUSTER_TRAIN_PY)
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "python").symlink_to(sys.executable)

    def run(self, entry: str, module: str = "", *, shell: str = "sh", path: str = "/usr/bin:/bin") -> tuple[int, str]:
        words = shlex.split(command(entry, module))
        done = subprocess.run(
            [shutil.which(shell) or shell, *words[1:]],
            cwd=self.work,
            env={"PATH": f"{self.bin}:{path}", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "/earlier"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stdout


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize("shell", SHELLS)
def test_seed_003s_hook_copies_what_the_trainer_needs(node: Node, shell: str) -> None:
    (node.thirdparty / "before_hook.sh").write_text(SEED_HOOK)
    (node.thirdparty / "PIL").mkdir()
    (node.thirdparty / "PIL" / "__init__.py").write_text("")
    (node.thirdparty / "libjpeg.so.8").write_text("")
    (node.thirdparty / "conf.py").write_text("print('trains')")
    os.link(node.thirdparty / "conf.py", node.work / "conf.py")  # as the same content may lie on a node
    assert node.run("python conf.py; echo *", shell=shell) == (0, "trains\nPIL conf.py libjpeg.so.8 thirdparty\n")
    assert not os.path.samefile(node.thirdparty / "conf.py", node.work / "conf.py")


@pytest.mark.parametrize("hook", ["", "export FROM_HOOK=1; cd /; set -e; shopt -s nullglob; umask 077\n"])
def test_what_was_sent_comes_first(node: Node, hook: str) -> None:
    (node.thirdparty / "paddle.py").write_text("print('the private one')")
    if hook:
        (node.thirdparty / "before_hook.sh").write_text(hook)
    code, said = node.run(
        'python -c "import paddle, cluster_train"; echo "$PYTHONPATH $LD_LIBRARY_PATH $FROM_HOOK"; pwd'
    )
    first, paths, folder = said.splitlines()
    python, libraries, *from_hook = paths.split(" ")
    assert (code, first, folder) == (0, "the private one", str(node.work))
    assert python.split(":")[0] == libraries.split(":")[0] == str(node.thirdparty)
    assert python.split(":")[-1] == "/earlier"
    assert from_hook == (["1"] if hook else [""])


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("function private_script()\n{\n  cp missing .\n}\n", "private_script ended with exit code 1, and the trainer"),
        ("set -e\nprivate_script() { false; true; }\n", "its shell (return ends a function, exit ends all) ended with"),
        ("exit 0\n", "its shell (return ends a function, exit ends all) ended with exit code 0"),
        ("cp missing .\n", "the file itself ended with exit code 1"),
        ("function private_script() {\n", "before_hook.sh is not what bash understands"),
    ],
)
def test_a_hook_that_fails_fails_the_task_with_a_sentence(node: Node, hook: str, said: str) -> None:
    (node.thirdparty / "before_hook.sh").write_text(hook)
    code, log = node.run("echo trains")
    assert code == 1
    assert f"cluster_train: before_hook.sh failed: {said}" in log or f"cluster_train: {said}" in log
    assert "trains\n" not in log


def test_a_hook_without_the_function_is_only_sourced_and_sees_no_arguments(node: Node) -> None:
    (node.thirdparty / "before_hook.sh").write_text("echo hooked $# $ROOT_WORKSPACE_ROOT\n")
    assert node.run("echo trains") == (0, f"hooked 0 {node.work}\ntrains\n")


def test_a_node_without_bash_says_so(node: Node) -> None:
    (node.thirdparty / "before_hook.sh").write_text(SEED_HOOK)
    code, log = node.run("echo trains", shell="dash", path="/nowhere")
    assert code == 1
    assert log.startswith("cluster_train: thirdparty/before_hook.sh needs bash, which is not on this node")


def test_the_exit_code_and_the_words_of_the_entry_are_its_own(node: Node) -> None:
    assert node.run("echo \"it's $HOME_OF\" '*'; exit 7") == (7, "it's  *\n")


def test_a_config_for_a_paddlepaddle_that_is_not_there_says_how_to_name_the_program(node: Node) -> None:
    code, log = node.run("python conf.py", "paddle.trainer_config_helpers")
    assert code == 1
    assert "has paddle.trainer_config_helpers, and the one here has not. Name the program" in log
    assert "entry='python train.py' in cluster_config(…) or by --entry" in log
    (node.thirdparty / "paddle").mkdir()
    for name in ("__init__", "trainer_config_helpers"):
        (node.thirdparty / "paddle" / f"{name}.py").write_text("")
    assert node.run("echo trains", "paddle.trainer_config_helpers") == (0, "trains\n")
