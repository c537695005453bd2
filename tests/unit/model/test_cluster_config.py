"""The call cluster_config(…) is read from any config, and nothing of the config is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.model.cluster_config import read, without_password
from paddlecloud.model.errors import InvalidError

SEED = """
from paddle.trainer_config_helpers import *

###新增:
cluster_config(
        fs_name="hdfs://nmg01-mulan-hdfs.dmop.baidu.com:54310",
        fs_ugi="xxxx,geheim",
        work_dir="/app/ecom/fcr-opt/daiwenkai/paddle/demos/sequence_tagging/"
        )   
###修改：
define_py_data_sources2(
    train_list="./train.list",
    test_list="./test.list",
    module="dataprovider",
    obj="process")
"""  # noqa: W291
PYTHON_2 = """# coding: gbk
import cPickle
from paddle.trainer_config_helpers import *
print "reading the dictionary", 0777, `1`
ROOT = "/pfs/local/home/me"
if not get_config_arg("is_predict", bool, False):
    conf = cluster_config(
        fs_ugi=u"me,geheim",  # 密码)
        work_dir=ROOT + '/demos/' "image_classification/", has_meta_data=True,
    )
raise IOError, "never run"
"""


def message(source: str) -> str:
    with pytest.raises(InvalidError) as refused:
        read(source.encode(), "conf.py")
    return refused.value.message


def test_seed_003s_config_is_read() -> None:
    found = read(SEED.encode(), "conf.py")
    assert found.fs_name == "hdfs://nmg01-mulan-hdfs.dmop.baidu.com:54310"
    assert found.work_dir == "/app/ecom/fcr-opt/daiwenkai/paddle/demos/sequence_tagging/"
    assert (found.user, found.has_meta_data, found.entry) == ("xxxx", False, "")
    assert (found.is_v1, found.defines_call) == (True, True)


def test_a_config_in_python_2_is_read_by_its_brackets() -> None:
    found = read(PYTHON_2.encode("gbk"), "conf.py")
    assert found.work_dir == "/pfs/local/home/me/demos/image_classification/"
    assert (found.user, found.has_meta_data, found.is_v1) == ("me", True, True)


def test_nothing_of_a_config_is_run(tmp_path: Path) -> None:
    source = f"open('{tmp_path}/run', 'w')\ncluster_config(work_dir=str(open('{tmp_path}/run', 'w')))\n"
    assert "work_dir is computed" in message(source)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("source", "work_dir"),
    [
        ("A = '/pfs/a'\nB: str = A + '/b'\ncluster_config(work_dir=B + '/')", "/pfs/a/b/"),
        ("cluster_config('', None, '/pfs/x', False)", "/pfs/x"),
        ("import paddle\npaddle.cluster_config(work_dir='/x')", "/x"),
        ("def cluster_config(**_): pass\n\ncluster_config(work_dir='/x')", "/x"),
        ("def cluster_config(**_): print 1\ncluster_config(work_dir='(')  # cluster_config(", "("),
        ("\ufefftext = 'cluster_config('\ncluster_config(work_dir='/x')", "/x"),
        ("cluster_config(work_dir='''/a''')\r\nx = '\\d'\r\n", "/a"),
    ],
)
def test_what_is_constant_is_understood(source: str, work_dir: str) -> None:
    assert read(source.encode(), "conf.py").work_dir == work_dir


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1", "conf.py does not say where its data is: add cluster_config(fs_name="),
        ("\n\ncluster_config(workdir='/x')", "conf.py, line 3: workdir is no argument of cluster_config; did you mean"),
        ("cluster_config(\n  work_dir=join(a, 'b'))", "conf.py, line 2: work_dir is computed (join(a, 'b'))"),
        ("cluster_config(work_dir=3)", "conf.py, line 1: work_dir must be a text in quotes"),
        ("cluster_config(work_dir='/x', has_meta_data='yes')", "has_meta_data must be True or False"),
        ("cluster_config(fs_name='hdfs://x')", "conf.py, line 1: work_dir is missing"),
        ("cluster_config(**given)", "line 1: ** is not read"),
        ("cluster_config(*given)", "takes its arguments by name"),
        ("cluster_config(work_dir='/x')\ncluster_config(work_dir='/y')", "in lines 1 and 2: leave one of them"),
        ("a = '/x'\nfor a in b: pass\ncluster_config(work_dir=a)", "work_dir is computed (a)"),
        ("a = b\nb = a\ncluster_config(work_dir=a)", "work_dir is computed"),
        ("cluster_config(work_dir=a)\na = '/x'", "work_dir is computed (a)"),
        ("print 1\ncluster_config(work_dir='/x'", "does not say where its data is"),
        ("(" * 100_000, "does not say where its data is"),
        ("\0", "does not say where its data is"),
        ("#" * 2_000_000, "which is no config"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(source: str, said: str) -> None:
    assert said in message(source)


def test_names_that_double_each_other_come_to_an_end() -> None:
    lines = [f"a{number} = a{number - 1} + a{number - 1}" for number in range(1, 60)]
    assert "computed" in message("\n".join(["a0 = ''", *lines, "cluster_config(work_dir=a59)"]))


def test_a_password_is_in_no_message() -> None:
    assert "geheim" not in message("cluster_config(work_dir='/x', fs_ugi=str('me,geheim'))")


@pytest.mark.parametrize(
    ("source", "cleaned"),
    [
        ('cluster_config(fs_ugi="me,geheim", work_dir="/x")', "cluster_config(fs_ugi='me,', work_dir=\"/x\")"),
        ("U = 'me'\nP = 'geh' + 'eim'\ncluster_config(fs_ugi=U + ',' + P)", "U = 'me'\nP = '' + ''\n"),
        ("cluster_config(fs_ugi='me,'\n  'geheim', work_dir='/x')", "cluster_config(fs_ugi='me,'\n, work_dir='/x')"),
        ("# cluster_config(fs_ugi='me,geheim')\n", "# cluster_config(fs_ugi='me,')\n"),
        ("x = 'ü'; cluster_config(fs_ugi='ü,geheim')", "x = 'ü'; cluster_config(fs_ugi='ü,')"),
        ("print 1\ncluster_config(fs_ugi='me,geheim', work_dir='/x')", "print 1\ncluster_config(fs_ugi='me,', work"),
        ("cluster_config(fs_ugi='a,geheim')\ncluster_config(fs_ugi='b,geheim')\n", "cluster_config(fs_ugi='a,')\n"),
        (
            "# cluster_config(fs_ugi='old,geheim')\ncluster_config(fs_ugi='me,geheim', work_dir='/x')",
            "# cluster_config(fs_ugi='old,')\ncluster_config(fs_ugi='me,', work_dir='/x')",
        ),
        ("cluster_config(fs_ugi='me', work_dir='/x')", "cluster_config(fs_ugi='me', work_dir='/x')"),
        ("# fs_ugi=\n#   'me,geheim'\n", "# fs_ugi=\n#   'me,'\n"),
        ("of = {'fs_ugi': 'me,geheim'}\n", "of = {'fs_ugi': 'me,'}\n"),
    ],
)
def test_the_password_is_taken_out_and_the_rest_stays(source: str, cleaned: str) -> None:
    found = without_password(source.encode()).decode()
    assert found.startswith(cleaned)
    assert "geheim" not in found
    assert found.count("\n") == source.count("\n")


def test_a_file_stays_in_its_encoding_without_its_password() -> None:
    cleaned = without_password(PYTHON_2.encode("gbk")).decode("gbk")
    assert cleaned == PYTHON_2.replace('u"me,geheim"', "'me,'")
