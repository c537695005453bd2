"""cluster_train against a real server: every flag of seed 003, as short as it is clear, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.cli import paddle
from paddlecloud.model.finding import Verdict
from tests.ports import free_port
from tests.unit.cli.command import Command

CONFIG = """
from cluster_train import cluster_config
cluster_config(fs_ugi="me,geheim", work_dir="/pfs/local/home/ann/tagging/")
"""
RUN_SH = """--config cluster_conf_dwk.py --time_limit 00:30:00 --submitter daiwenkai --num_nodes 3 --job_priority high
--trainer_count 4 --num_passes 2 --log_period 1000 --dot_period 100 --saving_period 5 --where {where}
--thirdparty ./thirdparty --job_name daiwenkai_paddle_cluster_demo_v5"""


@pytest.fixture
def folder(command: Command) -> Path:
    (command.folder / "cluster_conf_dwk.py").write_text(CONFIG)
    (command.folder / "thirdparty").mkdir()
    (command.folder / "thirdparty" / "before_hook.sh").write_text("private_script() { :; }\n")
    (command.folder / "tagging" / "train").mkdir(parents=True)
    (command.folder / "tagging" / "train" / "train.txt").write_text("a line")
    command.type("cp", "tagging", "/pfs/local/home/ann/")
    return command.folder


def submitted(command: Command, *words: str) -> dict[str, Any]:
    """The spec of the job."""
    return dict(json.loads(command.out("cluster_train", *words, "-o", "json"))["spec"])


def checked(folder: Path, spec: dict[str, Any]) -> None:
    assert spec["name"] == "daiwenkai_paddle_cluster_demo_v5"
    assert spec["roles"][0]["count"] == 3
    assert (spec["wall_time_seconds"], spec["priority"], spec["folder"]) == (1800, 50, folder.name)
    told = {name: value for name, value in spec["env"].items() if not name.startswith("PADDLE_INIT_")}
    counts = {"TRAINER_COUNT": "4", "NUM_PASSES": "2", "LOG_PERIOD": "1000", "DOT_PERIOD": "100", "SAVING_PERIOD": "5"}
    assert told == {**counts, "SUBMITTER": "daiwenkai"}
    assert spec["inputs"][0]["source"] == "/pfs/local/home/ann/tagging/train"
    assert "geheim" not in json.dumps(spec)


def test_seed_003s_flags_are_taken_in_each_way_of_writing_them(command: Command, folder: Path) -> None:
    words = RUN_SH.format(where="").replace("--where ", "").split()
    checked(folder, submitted(command, *words))
    pairs = list(zip(words[::2], words[1::2], strict=True))
    checked(folder, submitted(command, *(f"{name}={value}" for name, value in pairs)))
    checked(folder, submitted(command, *(word.replace("_", "-") if word[:2] == "--" else word for word in words)))
    short = {"--config": "--c", "--time_limit": "--ti", "--num_nodes": "--num_n", "--trainer_count": "--tr"}
    short |= {"--log_period": "--l", "--dot_period": "--d", "--saving_period": "--sa", "--submitter": "--su"}
    checked(folder, submitted(command, *(short.get(word, word) for word in words)))


def test_a_blank_among_the_arguments_is_no_argument(command: Command, folder: Path) -> None:
    done = command.type("cluster_train", "--config", "cluster_conf_dwk.py", "--num_nodes", "1", " ", "-o", "json")
    assert json.loads(done.stdout)["spec"]["roles"][0]["count"] == 1


@pytest.mark.parametrize(("words", "flag"), [(["--num_nodes", "1"], "--num_nodes"), (["--num_nodes=1"], "--num_nodes")])
def test_a_command_that_ends_at_a_blank_is_refused(command: Command, words: list[str], flag: str) -> None:
    done = command.type("cluster_train", "--config", "cluster_conf_dwk.py", *words, " ", code=2)
    assert f"a blank stands behind the backslash of the line of {flag}" in done.stderr


def test_data_that_is_not_there_is_told_before_anything_is_sent(command: Command, folder: Path) -> None:
    (folder / "other.py").write_text(CONFIG.replace("/tagging/", "/none/"))
    done = command.type("cluster_train", "--config", "other.py", code=2)
    assert "other.py: its work_dir cannot be used: there is no /pfs/local/home/ann/none/train" in done.stderr
    (folder / "tagged.py").write_text(CONFIG.replace("work_dir", "has_meta_data=True, work_dir"))
    assert "tagging/train_meta" in command.type("cluster_train", "--config", "tagged.py", code=2).stderr


def test_of_several_servers_the_one_that_answers_takes_it(command: Command, folder: Path) -> None:
    url = command.variables.pop("PADDLECLOUD_SERVER")
    command.variables["PADDLECLOUD_SERVERS"] = f"127.0.0.1:{free_port()}, {url}"
    done = command.type("cluster_train", "--config", "cluster_conf_dwk.py", "-v")
    assert done.stdout.startswith("job-")
    assert f"does not answer, so {url} took it: PADDLECLOUD_SERVER={url} asks that one later" in done.stderr
    assert f"{url} took it" in command.type("cluster_train", "--conf=cluster_conf_dwk.py", "-v", "--server", url).stderr
    assert f", {url}" in command.out("config")
    assert f"commands go to {url}" in command.out("status")


def test_modern_flags_and_the_queue_reach_the_job(command: Command, folder: Path) -> None:
    words = "--config cluster_conf_dwk.py --cpus 2 --memory 1Gi --env A=1 --retry 2 --entry".split()
    spec = submitted(command, *words, "python train.py")
    assert spec["name"] == "cluster_conf_dwk"
    assert spec["roles"][0]["command"] == "sh thirdparty/start.sh 'python train.py'"
    assert spec["roles"][0]["resources"] == {"cpus": 2.0, "memory_bytes": 2**30, "gpus": 0}
    assert (spec["env"]["A"], spec["retry"]["user_error"], spec["requirements"]) == ("1", 2, "")
    (folder / "thirdparty" / "requirements.txt").write_text("numpy\n")
    spec = submitted(command, "--config", "cluster_conf_dwk.py", "--thirdparty", "thirdparty")
    assert spec["requirements"] == "thirdparty/thirdparty/requirements.txt"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--num 2 --config cluster_conf_dwk.py", "--num is short for --num_nodes and --num_passes: write more of it"),
        ("--num_node_s 2", "--num_node_s is not an option; did you mean '--num_nodes'?"),
        ("--thirdprty x --config cluster_conf_dwk.py", "--thirdprty is not an option; did you mean '--thirdparty'?"),
        ("-config cluster_conf_dwk.py", "-config is not an option; did you mean '--config'?"),
        ("--num_nodes 2", "--config is missing"),
        ("--config missing.py", "missing.py: No such file or directory"),
        ("--config thirdparty", "thirdparty: Is a directory"),
        ("--config cluster_conf_dwk.py --thirdparty none", "--thirdparty none is not a folder"),
        ("--config cluster_conf_dwk.py --time_limit 30", "--time_limit"),
        ("--config cluster_conf_dwk.py --num_nodes x", "--num_nodes: 'x' is not a whole number"),
        ("--config cluster_conf_dwk.py --num_nodes 0", "nodes 0 is too small"),
        ("--config cluster_conf_dwk.py --job_priority urgent", "--job_priority 'urgent' is not known: it is very_low"),
        ("--config thirdparty/before_hook.sh", "before_hook.sh does not say where its data is"),
        ("--config cluster_conf_dwk.py extra", "'extra' is one argument too many"),
    ],
)
def test_what_cannot_be_meant_is_named(command: Command, folder: Path, words: str, said: str) -> None:
    assert said in command.type("cluster_train", *words.split(), code=2).stderr


def test_a_config_with_an_odd_name_is_quoted(command: Command, folder: Path) -> None:
    shutil.copy(folder / "cluster_conf_dwk.py", folder / "my conf;id.py")
    spec = submitted(command, "--config", "my conf;id.py", "--job_name", "$(id)")
    assert spec["roles"][0]["command"] == """sh thirdparty/start.sh 'python '"'"'my conf;id.py'"'"''"""


def type_paddle(folder: Path, *words: str, path: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Type `paddle …` as the script that is installed."""
    script = "from paddlecloud.cli.paddle import start; start()"
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        env={"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", **env},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


def program(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "paddle").write_text(text)
    (folder / "paddle").chmod(0o755)
    return folder


def test_paddle_takes_cluster_train_and_passes_the_rest_on(command: Command, folder: Path, tmp_path: Path) -> None:
    ours = program(tmp_path / "ours", "#!/bin/sh\n# from paddlecloud.cli.paddle import start\nexit 9\n")
    own = program(tmp_path / "own", '#!/bin/sh\necho "own: $1 $2"; exit 3\n')
    path = f"{ours}:{tmp_path}/nowhere:{own}:/usr/bin:/bin"
    done = type_paddle(tmp_path, "train", "a b", path=path)
    assert (done.stdout, done.returncode) == ("own: train a b\n", 3)
    done = type_paddle(folder, "cluster_train", "--config", "cluster_conf_dwk.py", path=path, **command.variables)
    assert done.stdout.startswith("job-")


def test_paddle_without_paddlepaddles_own_says_so(tmp_path: Path) -> None:
    ours = program(tmp_path / "ours", "#!/bin/sh\n# from paddlecloud.cli.paddle import start\nexit 9\n")
    done = type_paddle(tmp_path, "train", path=str(ours))
    assert done.returncode == 2
    assert "'train' is passed on to PaddlePaddle's own `paddle`, and there is none on PATH" in done.stderr
    assert "paddle cluster_train --config FILE" in type_paddle(tmp_path, "--help", path=str(ours)).stdout


def test_a_script_that_leads_back_to_paddle_is_not_followed_for_ever(tmp_path: Path) -> None:
    shim = f"""#!/bin/sh\nexec {sys.executable} -c 'from paddlecloud.cli import paddle; paddle.start()' "$@"\n"""
    path = f"{program(tmp_path / 'shims', shim)}:/usr/bin:/bin"
    assert type_paddle(tmp_path, "version", path=path).returncode == 2


def test_doctor_names_an_overwrite_of_either_script(tmp_path: Path) -> None:
    def said(folder: Path, beside: str = "", path: str = "") -> tuple[Verdict, str] | None:
        found = list(paddle.checkup(folder, {"PATH": path or str(folder)}, beside))
        return (found[0].verdict, f"{found[0].text}; {found[0].remedy}") if found else None

    ours = program(tmp_path / "ours", "#!/bin/sh\n# from paddlecloud.cli.paddle import start\n")
    own = program(tmp_path / "own", "#!/bin/bash\n")
    well = said(ours)
    assert well is not None
    assert well[0] is Verdict.OK
    for found, words in [
        (said(own, "paddlepaddle 3.3.1"), "is paddlepaddle 3.3.1's own, which was written over ours"),
        (said(ours, "paddlepaddle 3.3.1"), "is ours, and that of paddlepaddle 3.3.1 is gone"),
        (said(ours, path=os.pathsep.join((str(own), str(ours)))), f"put {ours} first in PATH"),
    ]:
        assert found is not None
        assert found[0] is Verdict.WARNING
        assert words in found[1]
    assert said(tmp_path) is None
