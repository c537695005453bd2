"""Seed 003's two runs by its own scripts, on the local backend, with the data on the PFS; and what can go wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.lab import Lab
from tests.slurm import Slurm

QUEUES = """
[jobs]
grace = "1s"
[queues.nmg01-hpc-off-dmop-cpu-10G_cluster]
time_limit = "00:30:00"
[queues.nmg01-hpc-off-dmop-slow-cpu-10G_cluster]
time_limit = "99:59:59"
[queues.nmg01-idl-dl-cpu-10G_cluster]
"""
LOCAL = "[clusters.local]\ncpus = 64\nmemory = '64Gi'\n"
# As the seed has it, line ends corrected; what it says of HDFS is in tests of that.
TAGGING = """\
cp ./*.py ./thirdparty

paddle cluster_train \\
           --config cluster_conf_dwk.py \\
           --time_limit 00:30:00 \\
           --submitter daiwenkai \\
           --num_nodes 1 \\
           --job_priority normal \\
           --trainer_count 4 \\
           --num_passes 1 \\
           --log_period 1000 \\
           --dot_period 100 \\
           --saving_period 1 \\
           --where nmg01-idl-dl-cpu-10G_cluster \\
           --thirdparty ./thirdparty \\
           --job_name daiwenkai_paddle_cluster_demo_v5 "$@"
"""
IMAGES = """\
cp ./*.py ./thirdparty
config=cluster.vgg_16_cifar.py

paddle cluster_train \\
           --config $config \\
           --time_limit 00:30:00 \\
           --submitter daiwenkai \\
           --num_nodes 24 \\
           --job_priority normal \\
           --trainer_count 4 \\
           --num_passes 1 \\
           --log_period 1000 \\
           --dot_period 100 \\
           --saving_period 1 \\
           --where nmg01-hpc-off-dmop-cpu-10G_cluster \\
           --thirdparty ./thirdparty \\
           --job_name daiwenkai_paddle_cluster_demo_image_classificatoin
"""
TAGGING_CONFIG = """
from paddle.trainer_config_helpers import *
print "a network of v1", 0777
cluster_config(
        fs_name="pfs",
        fs_ugi="xxxx,geheim",
        work_dir="/pfs/local/home/ME/paddle/demos/sequence_tagging/"
        )   
define_py_data_sources2(
    train_list="./train.list",
    test_list="./test.list",
    module="dataprovider",
    obj="process")
"""  # noqa: W291
TAGGING_HOOK = """
function private_script()
{
  local l_thirdparty_dir=$1
  local l_workspace_dir=$2

  # add your script here
  
  cp $l_thirdparty_dir/*.py $l_workspace_dir/

}
"""  # noqa: W293
IMAGES_HOOK = TAGGING_HOOK.replace(
    "workspace_dir/\n",
    """workspace_dir/
  cp -rf $l_thirdparty_dir/PIL $l_workspace_dir/
  cp  $l_thirdparty_dir/lib* $l_workspace_dir/
""",
)
SHOW = """
import os, gzip
from dataprovider import process
for name in ("train.list", "test.list"):
    print(name, open(name).read().split(), [process(file.strip()) for file in open(name)])
told = ("TRAINER_COUNT", "PADDLE_INIT_LOG_PERIOD", "SUBMITTER", "PADDLE_CLOUD_USERNAME")
print(*(os.environ[name] for name in told), os.environ["ROOT_WORKSPACE_ROOT"] == os.getcwd())
"""


class Desk:
    """Somebody at a machine where `paddle` is ours."""

    def __init__(self, lab: Lab, tmp_path: Path) -> None:
        self.lab = lab
        self.work = tmp_path / "demo"
        (self.work / "thirdparty").mkdir(parents=True)
        (tmp_path / "bin").mkdir()
        script = tmp_path / "bin" / "paddle"
        script.write_text(f"#!{sys.executable}\nfrom paddlecloud.cli.paddle import start\n\nstart()\n")
        script.chmod(0o755)
        self.env = {**lab.env, "PATH": f"{tmp_path / 'bin'}:{lab.env['PATH']}"}
        self.me = lab.client().profile.user

    def write(self, **files: str) -> None:
        for file, text in files.items():
            stem, _, ending = file.rpartition("_")
            (self.work / f"{stem.replace('__', '/')}.{ending}").write_text(text.replace("/ME/", f"/{self.me}/"))

    def put(self, folder: str, files: dict[str, str]) -> None:
        """Data below ~/paddle/demos on the PFS."""
        for name, text in files.items():
            path = self.work / "of-the-pfs" / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        home = f"/pfs/local/home/{self.me}/paddle/demos"
        self.lab.type("mkdir", home)
        self.lab.type("cp", str(self.work / "of-the-pfs" / folder), f"{home}/")

    def run(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["sh", "run.sh", *words], cwd=self.work, env=self.env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def submit(self, *words: str) -> str:
        """The job's id."""
        return self.run(*words).stdout.split()[-1]


@pytest.fixture(scope="module", params=["local", "slurm"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("cluster"))
    if request.param == "local":
        made.configure(LOCAL + QUEUES)
    else:
        slurm: Slurm = request.getfixturevalue("slurm")
        made.env |= {"SLURM_CONF": slurm.env["SLURM_CONF"], "PATH": slurm.env["PATH"]}
        made.configure(
            f"[clusters.hpc]\nbackend = 'slurm'\npython = '{sys.executable}'\n"
            f"sbatch = {{account = '{slurm.account}'}}\n{QUEUES}"
        )
    made.type("up")
    yield made
    made.close()


@pytest.fixture
def desk(lab: Lab, tmp_path: Path) -> Desk:
    return Desk(lab, tmp_path)


@pytest.fixture
def tagging(desk: Desk) -> Desk:
    desk.put("sequence_tagging", {"train/train.txt.gz": "to train", "test/test.txt.gz": "to test"})
    desk.write(
        run_sh=TAGGING,
        cluster_conf_dwk_py=TAGGING_CONFIG,
        dataprovider_py="def process(file):\n    return open(file).read()\n",
        train_py=SHOW,
        thirdparty__before_hook_sh=TAGGING_HOOK,
    )
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
    batches = {f"train/train_batch_{number:03d}": f"{number}" for number in range(50)}
    tests = {f"test/test_batch_{number:03d}": f"{number}" for number in range(10)}
    desk.put("image_classification", {**batches, **tests, "train_meta": "mean", "test_meta": "mean"})
    desk.write(
        run_sh=IMAGES,
        thirdparty__before_hook_sh=IMAGES_HOOK,
        thirdparty__libjpeg_so="a library",
        image_provider_py="meta_path = './train_data_dir/image_classification/train_meta'\n",
    )
    (desk.work / "thirdparty" / "PIL").mkdir()
    (desk.work / "thirdparty" / "PIL" / "Image.py").write_text("of_thirdparty = True\n")
    (desk.work / "cluster.vgg_16_cifar.py").write_text(
        f"""
from cluster_train import cluster_config
import os
from PIL.Image import of_thirdparty
from image_provider import meta_path
cluster_config(
        fs_ugi="xxx,xxx",
        work_dir="/pfs/local/home/{desk.me}/paddle/demos/image_classification/",

        has_meta_data=True,
        )    
print(open(meta_path).read(), open("libjpeg.so").read(), "of", os.environ["PADDLE_TRAINERS_NUM"])
print("trains", *open("train.list").read().split())
print("tests", *open("test.list").read().split())
"""  # noqa: W291
    )
    job = desk.submit()
    lab.ends(job, "success", seconds=120)
    log = lab.out("logs", job)
    assert len(re.findall("mean a library of 24", log)) == 24
    for rank in (0, 1, 23):
        mine = " ".join(f"./train_data_dir/train/train_batch_{number:03d}" for number in range(rank, 50, 24))
        assert f"trainer-{rank} | trains {mine}\n" in log
    dealt = re.findall(r"train_batch_(\d+)", log)
    assert sorted(dealt) == [f"{number:03d}" for number in range(50)], "each batch is dealt once"


def test_a_queue_that_will_not_take_it_is_answered_with_those_that_would(tagging: Desk) -> None:
    done = tagging.run("--time_limit", "01:00:00", "--where", "nmg01-hpc-off-dmop-cpu-10G_cluster", code=2)
    assert "takes jobs of 00:30:00 at most" in done.stderr
    assert "nmg01-hpc-off-dmop-slow-cpu-10G_cluster" in done.stderr
    assert "nmg01-idl-dl-cpu-10G_cluster" in tagging.run("--where", "none", code=2).stderr


def test_a_blank_at_the_end_of_a_line_ends_the_command_and_that_is_told(lab: Lab, tagging: Desk) -> None:
    script = TAGGING.replace("--num_nodes 1 \\\n", "--entry 'echo trains' \\ \n").partition("--job_priority")[0]
    tagging.write(run_sh=script)
    done = tagging.run()
    assert "flags on the lines below it have not arrived" in done.stderr
    lab.ends(done.stdout.split()[-1], "success")


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
        ("sequence_tagging/", "none/", "lacks what the job needs: there is no /pfs/local/home/"),
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
