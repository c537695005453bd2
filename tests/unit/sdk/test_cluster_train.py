"""From a config and seed 003's flags to the job, exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.model.cluster_config import ClusterConfig
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import Input, JobSpec, RoleSpec
from paddlecloud.sdk.cluster_start import bundled
from paddlecloud.sdk.cluster_train import Flags, at_home, cluster_train_spec, inputs, priority

HDFS = "hdfs://nmg01-mulan-hdfs.dmop.baidu.com:54310"
FOLDER = "/app/ecom/fcr-opt/daiwenkai/paddle/demos"
IMAGES = ClusterConfig(
    fs_name=HDFS, user="xxx", work_dir=f"{FOLDER}/image_classification/", has_meta_data=True, is_v1=True
)


def test_seed_003s_image_classification_is_this_job() -> None:
    flags: Flags = {
        "counts": {"trainer_count": 4, "num_passes": 1, "log_period": 1000, "dot_period": 100, "saving_period": 1},
        "submitter": "daiwenkai",
        "where": "nmg01-hpc-off-dmop-cpu-10G_cluster",
    }
    name = "daiwenkai_paddle_cluster_demo_image_classificatoin"
    spec = cluster_train_spec(
        IMAGES, "cluster.vgg_16_cifar.py", flags, {"name": name, "nodes": 24, "wall_time": "00:30:00"}
    )
    command = "sh thirdparty/start.sh 'python cluster.vgg_16_cifar.py' paddle.trainer_config_helpers"
    source = f"{HDFS}{FOLDER}/image_classification"
    assert spec == JobSpec(
        roles=(RoleSpec(name="trainer", count=24, command=command),),
        name=name,
        distribute="NCCL2",
        wall_time_seconds=1800,
        queue="nmg01-hpc-off-dmop-cpu-10G_cluster",
        own_nodes=True,
        env={
            "TRAINER_COUNT": "4",
            "PADDLE_INIT_TRAINER_COUNT": "4",
            "NUM_PASSES": "1",
            "PADDLE_INIT_NUM_PASSES": "1",
            "LOG_PERIOD": "1000",
            "PADDLE_INIT_LOG_PERIOD": "1000",
            "DOT_PERIOD": "100",
            "PADDLE_INIT_DOT_PERIOD": "100",
            "SAVING_PERIOD": "1",
            "PADDLE_INIT_SAVING_PERIOD": "1",
            "SUBMITTER": "daiwenkai",
        },
        inputs=(
            Input(source=f"{source}/train", target="train_data_dir/train", user="xxx", deal=True, list="train.list"),
            Input(
                source=f"{source}/test",
                target="test_data_dir/test",
                user="xxx",
                deal=True,
                list="test.list",
                optional=True,
            ),
            Input(source=f"{source}/train_meta", target="train_data_dir/image_classification/train_meta", user="xxx"),
            Input(
                source=f"{source}/test_meta",
                target="train_data_dir/image_classification/test_meta",
                user="xxx",
                optional=True,
            ),
            Input(
                source=f"{source}/test_meta",
                target="test_data_dir/image_classification/test_meta",
                user="xxx",
                optional=True,
            ),
        ),
    )


@pytest.mark.parametrize(
    ("config", "source"),
    [
        (ClusterConfig(work_dir="/pfs/local/home/me/tagging"), "/pfs/local/home/me/tagging"),
        (ClusterConfig(work_dir="/pfs/local/home/me/tagging///", fs_name="pfs"), "/pfs/local/home/me/tagging"),
        (ClusterConfig(work_dir="~/demos/tagging/"), "~/demos/tagging"),
        (ClusterConfig(work_dir="hdfs://node/tagging/", user="me"), "hdfs://node/tagging"),
        (ClusterConfig(work_dir="/pfs/a", fs_name="hdfs://node:9000/", user="me"), "hdfs://node:9000/pfs/a"),
    ],
)
def test_data_is_on_the_pfs_or_in_hdfs(config: ClusterConfig, source: str) -> None:
    train, test = inputs(config)
    assert (train.source, test.source) == (f"{source}/train", f"{source}/test")
    assert train.user == ("me" if source.startswith("hdfs:") else "")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            ClusterConfig(work_dir="/app/data"),
            "work_dir '/app/data' is not on the PFS (/pfs/…): name its HDFS by fs_name",
        ),
        (ClusterConfig(work_dir="data", fs_name=HDFS, user="me"), "must be the whole path of a folder"),
        (ClusterConfig(work_dir="~/../other"), "must be the whole path of a folder"),
        (ClusterConfig(work_dir="~/x", fs_name=HDFS, user="me"), "must be the whole path of a folder"),
        (ClusterConfig(work_dir="/pfs/../etc"), "must be the whole path of a folder"),
        (ClusterConfig(work_dir="/", fs_name=HDFS, user="me"), "must be the whole path of a folder"),
        (ClusterConfig(work_dir="/x", fs_name="afs://y", user="me"), "fs_name 'afs://y' is not known: it is hdfs://"),
        (ClusterConfig(work_dir="/x", fs_name="hdfs://", user="me"), "fs_name 'hdfs://' is not known"),
        (ClusterConfig(work_dir="/x", fs_name=HDFS), "fs_ugi is missing"),
        (ClusterConfig(work_dir="/pfs/a/train/", has_meta_data=True), "would lie among the files that are dealt"),
    ],
)
def test_a_place_that_cannot_be_is_refused(config: ClusterConfig, said: str) -> None:
    with pytest.raises(InvalidError) as refused:
        inputs(config)
    assert said in refused.value.message


def test_a_home_on_the_pfs_is_put_in_the_place_of_the_tilde() -> None:
    spec = cluster_train_spec(ClusterConfig(work_dir="~/x", has_meta_data=True), "conf.py", {}, {})
    sources = [one.source for one in at_home(spec, "/pfs/dc/home/me").inputs]
    assert sources == [
        f"/pfs/dc/home/me/x/{what}" for what in ("train", "test", "train_meta", "test_meta", "test_meta")
    ]


PFS = ClusterConfig(work_dir="/pfs/local/home/me/x")


@pytest.mark.parametrize(
    ("config", "name", "entry", "command"),
    [
        (PFS, "conf.py", "", "sh thirdparty/start.sh 'python conf.py'"),
        (PFS, "a b';id;'.py", "", """sh thirdparty/start.sh 'python '"'"'a b'"'"'"'"'"'"'"'"';id;"""),
        (PFS, "-c.py", "", "sh thirdparty/start.sh 'python ./-c.py'"),
        (PFS, "conf.py", "python train.py --dir $OUTPUT_PATH", "sh thirdparty/start.sh 'python train.py --dir $OUTP"),
        (IMAGES, "conf.py", "python train.py", "sh thirdparty/start.sh 'python train.py'"),
    ],
)
def test_the_entry_is_what_was_named_else_the_config(
    config: ClusterConfig, name: str, entry: str, command: str
) -> None:
    spec = cluster_train_spec(config, name, {"entry": entry}, {})
    assert spec.roles[0].command.startswith(command)
    assert (" paddle.trainer_config_helpers" in spec.roles[0].command) == (config.is_v1 and not entry)


def test_a_config_that_python_could_not_run_is_refused_with_both_ways_out() -> None:
    config = ClusterConfig(work_dir="/pfs/x", defines_call=False)
    with pytest.raises(InvalidError, match="from cluster_train import cluster_config.*--entry"):
        cluster_train_spec(config, "conf.py", {}, {})
    assert cluster_train_spec(config, "conf.py", {"entry": "python train.py"}, {}).name == "tmp_job"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"counts": {"num_passes": 0}}, "--num_passes 0 is too small"),
        ({"counts": {"dot_period": -1}}, "--dot_period -1 is too small"),
    ],
)
def test_a_number_that_cannot_be_is_refused(flags: Flags, said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        cluster_train_spec(PFS, "conf.py", flags, {})
    with pytest.raises(InvalidError, match="the workspace has something of that name"):
        cluster_train_spec(PFS, "train.list", {}, {})


def test_priorities_are_words_or_numbers() -> None:
    found = [priority(word) for word in ("very_low", "low", "normal", "high", "very_high", "7")]
    assert found == [-100, -50, 0, 50, 100, 7]
    with pytest.raises(InvalidError, match="very_low, low, normal, high, very_high, or a number"):
        priority("urgent")


def test_what_is_sent_is_the_config_and_thirdparty_and_no_password(tmp_path: Path) -> None:
    source = b"cluster_config(fs_ugi='me,geheim', work_dir='/x')\n"
    job, thirdparty = tmp_path / "job", tmp_path / "job" / "thirdparty"
    (thirdparty / "PIL").mkdir(parents=True)
    (thirdparty / "empty").mkdir()
    (thirdparty / "lib.so").symlink_to("PIL/real.so")
    for place in (job, thirdparty):
        (place / "conf.py").write_bytes(source)
    (thirdparty / "PIL" / "real.so").write_bytes(b"so")
    (thirdparty / "before_hook.sh").write_text("private_script() { :; }\n")
    (thirdparty / "before_hook.sh").chmod(0o755)
    with bundled(job / "conf.py", source, thirdparty, limit_bytes=None, progress=None) as sent:
        assert sent.name == "job"
        kinds = {entry.path: entry.kind.value for entry in sent.manifest.entries}
        assert kinds == {
            "conf.py": "file",
            "thirdparty/cluster_train.py": "file",
            "thirdparty/start.sh": "file",
            "thirdparty/thirdparty/PIL/real.so": "file",
            "thirdparty/thirdparty/before_hook.sh": "file",
            "thirdparty/thirdparty/conf.py": "file",
            "thirdparty/thirdparty/empty": "folder",
            "thirdparty/thirdparty/lib.so": "link",
        }
        assert sent.sources["thirdparty/thirdparty/before_hook.sh"].executable
        for path, file in sent.sources.items():
            assert file.path == path
            assert b"geheim" not in file.read(0)
        assert sent.sources["conf.py"].read(0) == b"cluster_config(fs_ugi='me,', work_dir='/x')\n"
    with bundled(job / "conf.py", source, None, limit_bytes=None, progress=None) as sent:
        assert len(sent.sources) == 3
