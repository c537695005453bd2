"""Seed 003's two runs by its own scripts, on the local backend, with the data on the PFS; and what can go wrong."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.cluster_desk import (
    IMAGES_DATA,
    LOCAL,
    QUEUES,
    TAGGING,
    TAGGING_CONFIG,
    TAGGING_DATA,
    TAGGING_HOOK,
    Desk,
    slurm_settings,
)
from tests.flow.lab import Lab
from tests.slurm import Slurm


@pytest.fixture(scope="module", params=["local", "slurm"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("cluster"))
    if request.param == "local":
        made.configure(LOCAL + QUEUES)
    else:
        slurm: Slurm = request.getfixturevalue("slurm")
        made.env |= {"SLURM_CONF": slurm.env["SLURM_CONF"], "PATH": slurm.env["PATH"]}
        made.configure(slurm_settings(slurm))
    made.type("up")
    yield made
    made.close()


@pytest.fixture
def desk(lab: Lab, tmp_path: Path) -> Desk:
    return Desk(lab, tmp_path)


@pytest.fixture
def tagging(desk: Desk) -> Desk:
    desk.put("sequence_tagging", TAGGING_DATA)
    desk.take_tagging()
    return desk


def test_sequence_tagging_is_run_as_the_seed_types_it(lab: Lab, tagging: Desk) -> None:
    job = tagging.submit("--entry", "python train.py")
    lab.ends(job, "success")
    detail = lab.client().get(job)
    assert detail.job.spec.name == "daiwenkai_paddle_cluster_demo_v5"
    assert (detail.job.wall_time_seconds, detail.job.spec.trainers) == (1800, 1)
    assert detail.job.user == tagging.me != "daiwenkai"
    assert detail.job.spec.queue == "nmg01-idl-dl-cpu-10G_cluster"
    lines = lab.out("logs", job).splitlines()
    assert "train.list ['./train_data_dir/train/train.txt.gz'] ['to train']" in lines
    assert "test.list ['./test_data_dir/test/test.txt.gz'] ['to test']" in lines
    assert f"4 1000 daiwenkai {tagging.me} True" in lines
    stored = subprocess.run(["grep", "-rl", "geheim", str(lab.data)], capture_output=True, text=True)
    assert stored.stdout == "", "no copy of the password is on the server"


def test_a_config_of_v1_without_a_program_says_how_to_name_one(lab: Lab, tagging: Desk) -> None:
    job = tagging.submit()
    lab.ends(job, "failed")
    assert "Name the program to run instead, by entry='python train.py' in cluster_config(…)" in lab.out("logs", job)
    assert "--entry 'python train.py'" in lab.out("show", job)


def test_image_classification_is_run_on_twenty_four_nodes(lab: Lab, desk: Desk) -> None:
    desk.put("image_classification", IMAGES_DATA)
    desk.take_images()
    job = desk.submit()
    lab.ends(job, "success", seconds=120)
    log = lab.out("logs", job)
    assert len(re.findall("mean a library of 24", log)) == 24
    for rank in (0, 1, 23):
        mine = " ".join(f"./train_data_dir/train/train_batch_{number:03d}" for number in range(rank, 50, 24))
        assert f"trainer-{rank} | trains {mine}\n" in log
    dealt = re.findall(r"train_batch_(\d+)", log)
    assert sorted(dealt) == [f"{number:03d}" for number in range(50)], "each batch is dealt once"


def test_who_follows_sees_the_log_and_gets_the_end_as_an_exit_code(tagging: Desk) -> None:
    done = tagging.run("--entry", "echo trains; exit 3", "--follow", code=100)
    assert done.stdout == "trains\n"
    assert "failed" in done.stderr


def test_a_queue_that_will_not_take_it_is_answered_with_those_that_would(tagging: Desk) -> None:
    done = tagging.run("--time_limit", "01:00:00", "--where", "nmg01-hpc-off-dmop-cpu-10G_cluster", code=2)
    assert "takes jobs of 00:30:00 at most" in done.stderr
    assert "nmg01-hpc-off-dmop-slow-cpu-10G_cluster" in done.stderr
    assert "nmg01-idl-dl-cpu-10G_cluster" in tagging.run("--where", "none", code=2).stderr


def test_a_script_with_blanks_behind_its_backslashes_submits_nothing(lab: Lab, tagging: Desk) -> None:
    """As the manual prints it: the shell goes on with the next line, as with a command."""
    blanks = ("--num_nodes 1", "--trainer_count 4", "--num_passes 1", "--saving_period 1")
    script = TAGGING
    for line in blanks:
        script = script.replace(f"{line} \\\n", f"{line} \\ \n")
    tagging.write(run_sh=script)
    before = [job.id for job in lab.client().list()]
    done = tagging.run(code=127)
    assert "behind the backslash of the line of --num_nodes" in done.stderr
    assert [job.id for job in lab.client().list()] == before
    mended = next(line.partition("Remove the blank: ")[2] for line in done.stderr.splitlines() if "blank" in line)
    subprocess.run(["sh", "-c", mended], cwd=tagging.work, check=True)
    lab.ends(tagging.submit("--entry", "echo trains"), "success")


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        (TAGGING_HOOK.replace("*.py", "*.none"), "before_hook.sh failed: private_script ended with exit code 1"),
        ("exit 0\n", "before_hook.sh failed: its shell (return ends a function, exit ends all)"),
        ("function private_script()\n", "before_hook.sh is not what bash understands"),
    ],
)
def test_a_hook_that_fails_fails_the_job(lab: Lab, tagging: Desk, hook: str, said: str) -> None:
    tagging.write(thirdparty__before_hook_sh=hook)
    job = tagging.submit("--entry", "echo trains")
    lab.ends(job, "failed")
    assert said in lab.out("show", job)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("cluster_config(", "cluster_conf(", "does not say where its data is"),
        ('work_dir="', 'work_dir=ROOT + "', "line 7: work_dir is computed (ROOT)"),
        ("sequence_tagging/", "none/", "work_dir cannot be used: there is no /pfs/local/home/"),
        ("/ME/", "/somebody/", "/pfs/local/home/somebody"),
        ('fs_name="pfs"', 'fs_name="ftp://x"', "fs_name 'ftp://x' is not known"),
    ],
)
def test_a_config_that_cannot_be_is_refused_before_anything_is_sent(
    tagging: Desk, before: str, after: str, said: str
) -> None:
    tagging.write(cluster_conf_dwk_py=TAGGING_CONFIG.replace(before, after))
    done = subprocess.run(["sh", "run.sh"], cwd=tagging.work, env=tagging.env, capture_output=True, text=True)
    assert done.returncode in (2, 3)
    assert said in done.stderr
    assert "geheim" not in done.stderr
    assert done.stdout == ""
