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


def test_the_default_compressor_works_with_nothing_installed(tmp_path: Path) -> None:
    program = f"""
import recordio
w = recordio.writer({str(tmp_path / "file")!r})
w.write(b"one" * 50000)
w.close()
r = recordio.reader({str(tmp_path / "file")!r})
print(r.read() == b"one" * 50000, r.read())
"""
    with compat.written() as folder:
        ran = run(folder, program)
    assert (ran.stdout, ran.stderr) == ("True None\n", "")


def test_common_has_its_home_of_data_and_what_fetches_into_it(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"data")
    program = f"""
import os
os.environ["PADDLE_CLOUD_CURRENT_DATACENTER"] = "dc1"
os.environ["https_proxy"] = "http://127.0.0.1:1"
import paddle.v2.dataset.common as common
import pcloud.dataset, paddle.cloud.dataset, paddle.v2.dataset as dataset
assert dataset.common is common
print(common.DATA_HOME)
common.DATA_HOME = {str(tmp_path / "home")!r}
print(common.md5file({str(tmp_path / "source")!r}))
got = common.download("file://{tmp_path}/source", "mine", "8d777f385d3dfec8815d20f7496026dc")
print(os.path.relpath(got, common.DATA_HOME), open(got).read())
for fetch in (common.fetch_all, pcloud.dataset.common.fetch_all):
    try:
        fetch()
    except Exception as error:
        print(type(error).__name__)
try:
    common.download("http://127.0.0.1:1/x.tgz", "mine", "0" * 32)
except RuntimeError as error:
    print(error)
"""
    with compat.written() as folder:
        ran = run(folder, program)
    lines = ran.stdout.splitlines()
    assert lines[:3] == ["/pfs/dc1/public/dataset", "8d777f385d3dfec8815d20f7496026dc", "mine/source data"], ran.stderr
    assert lines[3:5] == ["RuntimeError", "FileNotFoundError"], "nothing is there, and there is no way out"
    assert lines[5].startswith("cannot download http://127.0.0.1:1/x.tgz in 3 tries: ")
    assert f"put the file at {tmp_path}/home/mine/x.tgz" in lines[5]


def test_the_clouds_dataset_is_dealt_to_the_trainers(tmp_path: Path) -> None:
    rows = [[*range(13), number] for number in range(506)]
    (tmp_path / "housing.data").write_text("\n".join(" ".join(map(str, row)) for row in rows))
    program = f"""
import os
import paddle.v2.dataset.common as common, paddle.v2.dataset.uci_housing as housing
common.DATA_HOME = {str(tmp_path)!r}
from pcloud.dataset import uci_housing
train = housing.train({str(tmp_path / "housing.data")!r})
common.split(train, 100, common.DATA_HOME + "/uci_housing/train-%05d.pickle")
os.environ["PADDLE_INIT_NUM_GRADIENT_SERVERS"] = "2"
for trainer in "01":
    os.environ["PADDLE_INIT_TRAINER_ID"] = trainer
    print(len(list(uci_housing.train()())))
"""
    with compat.written() as folder:
        ran = run(folder, program)
    assert (ran.stdout, ran.stderr) == ("204\n200\n", "")


# As Python 2.7's cPickle writes them: ['caf\xc3\xa9', u'\u4e2d', 12345678901234567890L, 1.5, True, None, {'a': 1}].
PROTOCOL_0 = (
    b"(lp1\nS'caf\\xc3\\xa9'\np2\naV\\u4e2d\np3\naL12345678901234567890L\naF1.5\naI01\naNa(dp4\nS'a'\np5\nI1\nsa."
)
PROTOCOL_2 = (
    b"\x80\x02]q\x01(U\x05caf\xc3\xa9q\x02X\x03\x00\x00\x00\xe4\xb8\xadq\x03\x8a\x09\xd2\x0a\x1f\xeb\x8c\xa9\x54\xab\x00"
    b"G\x3f\xf8\x00\x00\x00\x00\x00\x00\x88N}q\x04U\x01aq\x05K\x01se."
)
# set([1, 2]) and collections.OrderedDict([('k', 'v')]), by the module names of Python 2.
SET = b"c__builtin__\nset\np1\n((lp2\nI1\naI2\natp3\nRp4\n."
ORDERED = b"ccollections\nOrderedDict\nq\x01]q\x02]q\x03(U\x01kq\x04U\x01vq\x05ea\x85q\x06Rq\x07."
# numpy.array([1.0, 256.5]) of protocol 2: its bytes are a str of Python 2, and no ASCII.
ARRAY = (
    b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01bq\x03\x87q\x04Rq\x05("
    b"K\x01K\x02\x85q\x06cnumpy\ndtype\nq\x07U\x02f8q\x08K\x00K\x01\x87q\x09Rq\x0a(K\x03U\x01<q\x0bNNNJ\xff\xff\xff\xff"
    b"J\xff\xff\xff\xffK\x00tq\x0cb\x89U\x10\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x08\x70\x40q\x0dtq\x0eb."
)


@pytest.mark.parametrize("pickled", [PROTOCOL_0, PROTOCOL_2])
def test_what_python_2_pickled_is_read(tmp_path: Path, pickled: bytes) -> None:
    (tmp_path / "train-00000.pickle").write_bytes(pickled)
    program = f"""
import cPickle as pickle, paddle.v2.dataset.common as common
path = {str(tmp_path / "train-00000.pickle")!r}
read = list(common.cluster_files_reader(path, trainer_count=1, trainer_id=0)())
assert pickle.load(open(path)) == pickle.loads(open(path, "rb").read()) == read
assert pickle.Unpickler(open(path, "rb")).load() == read
assert pickle.loads(open(path, "rb").read(), encoding="utf-8")[0] == "caf\\u00e9"
print(ascii(read))
pickle.dump(read, open(path, "w"), pickle.HIGHEST_PROTOCOL)
assert pickle.load(open(path, "rb")) == read
print([pickle.loads({SET!r}), list(pickle.loads({ORDERED!r}).items())])
"""
    with compat.written() as folder:
        ran = run(folder, program)
    assert ran.stderr == ""
    read, others = ran.stdout.splitlines()
    assert read == "['caf\\xc3\\xa9', '\\u4e2d', 12345678901234567890, 1.5, True, None, {'a': 1}]"
    assert others == "[{1, 2}, [('k', 'v')]]"


def test_arrays_that_python_2_pickled_are_read() -> None:
    from paddlecloud.recordio import codecs

    numpy = pytest.importorskip("numpy")
    assert numpy.array_equal(codecs.PICKLE.loads(ARRAY), [1.0, 256.5])
