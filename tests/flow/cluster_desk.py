"""Seed 003's scripts, config and hooks, and somebody at a desk who types them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


IMAGES_CONFIG = """
from cluster_train import cluster_config
import os
from PIL.Image import of_thirdparty
from image_provider import meta_path
cluster_config(
        fs_name="pfs",
        fs_ugi="xxxx,geheim",
        work_dir="/pfs/local/home/ME/paddle/demos/image_classification/",

        has_meta_data=True,
        )    
print(open(meta_path).read(), open("libjpeg.so").read(), "of", os.environ["PADDLE_TRAINERS_NUM"])
print("trains", *open("train.list").read().split())
print("tests", *open("test.list").read().split())
"""  # noqa: W291
TAGGING_DATA = {"train/train.txt.gz": "to train", "test/test.txt.gz": "to test"}
IMAGES_DATA = {
    **{f"train/train_batch_{number:03d}": f"{number}" for number in range(50)},
    **{f"test/test_batch_{number:03d}": f"{number}" for number in range(10)},
    "train_meta": "mean",
    "test_meta": "mean",
}


def slurm_settings(slurm: Slurm) -> str:
    return (
        f"[clusters.hpc]\nbackend = 'slurm'\npython = '{sys.executable}'\n"
        f"sbatch = {{account = '{slurm.account}'}}\npack = true\n{QUEUES}"
    )


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

    def take_tagging(self, config: str = TAGGING_CONFIG) -> None:
        """The folder of the seed's sequence_tagging."""
        self.write(
            run_sh=TAGGING,
            cluster_conf_dwk_py=config,
            dataprovider_py="def process(file):\n    return open(file).read()\n",
            train_py=SHOW,
            thirdparty__before_hook_sh=TAGGING_HOOK,
        )

    def take_images(self, config: str = IMAGES_CONFIG) -> None:
        """The folder of the seed's image_classification."""
        self.write(
            run_sh=IMAGES,
            thirdparty__before_hook_sh=IMAGES_HOOK,
            thirdparty__libjpeg_so="a library",
            image_provider_py="meta_path = './train_data_dir/image_classification/train_meta'\n",
        )
        self.write(**{"cluster.vgg_16_cifar_py": config})
        (self.work / "thirdparty" / "PIL").mkdir()
        (self.work / "thirdparty" / "PIL" / "Image.py").write_text("of_thirdparty = True\n")
