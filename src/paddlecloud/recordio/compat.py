"""Generates the modules that programs of PaddlePaddle v2 import, as source files for a folder on PYTHONPATH.

They need only Python 3.11 on the node, and do not hide a PaddlePaddle that is installed there.
"""

from __future__ import annotations

from pathlib import Path

_BESIDE = '''\
"""What is installed under this name elsewhere, if anything is, and what lies beside this file."""
import importlib.machinery
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_elsewhere = [path for path in sys.path if os.path.abspath(path) != os.path.dirname(_here)]
_installed = importlib.machinery.PathFinder.find_spec(__name__, _elsewhere)
if _installed is not None and _installed.loader is not None:
    __spec__, __file__ = _installed, _installed.origin
    __path__ = [*_installed.submodule_search_locations, _here]
    _installed.loader.exec_module(sys.modules[__name__])
'''

_PICKLE = '''\
"""pickle by its old name: what Python 2 pickled is read too, its texts as latin-1 unless `encoding` says otherwise."""
import pickle as _pickle


def load(file, *, encoding="latin1", **more):
    return _pickle.load(getattr(file, "buffer", file), encoding=encoding, **more)


def loads(data, /, *, encoding="latin1", **more):
    return _pickle.loads(data, encoding=encoding, **more)


def dump(obj, file, *more, **named):
    _pickle.dump(obj, getattr(file, "buffer", file), *more, **named)


class Unpickler(_pickle.Unpickler):
    def __init__(self, file, *, encoding="latin1", **more):
        super().__init__(getattr(file, "buffer", file), encoding=encoding, **more)


def __getattr__(name):
    return getattr(_pickle, name)
'''

_V2 = '''\
"""Of PaddlePaddle v2 its datasets alone."""
import sys

if sys.version_info < (3, 11):
    raise ImportError("paddle.v2 by --compat v2 needs Python 3.11 or newer: submit with --python 3.11")

from paddle.v2 import dataset


def __getattr__(name):
    raise AttributeError(
        f"paddle.v2 by --compat v2 has dataset alone, and no {name}: train with the PaddlePaddle of today"
    )
'''

_DATASET = """\
from paddle.v2.dataset import common, uci_housing
from paddle.v2.dataset.common import cluster_files_reader, cluster_reader_recordio, convert, split
"""

_COMMON = """\
import os
import sys

from paddlecloud.recordio import paddle_v2

if "PADDLE_CLOUD_CURRENT_DATACENTER" in os.environ:
    paddle_v2.DATA_HOME = os.path.join(
        os.environ.get("PADDLECLOUD_PFS", "/pfs"), os.environ["PADDLE_CLOUD_CURRENT_DATACENTER"], "public/dataset"
    )
sys.modules[__name__] = paddle_v2
"""

_UCI_HOUSING = """\
from paddle.v2.dataset import common
from paddlecloud.recordio.uci_housing import test, train

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/housing/housing.data"
MD5 = "d4accdce7a25600298819f8e28e8d593"


def fetch():
    common.download(URL, "uci_housing", MD5)
"""

_CLOUD_HOUSING = '''\
"""The trainer's own part of the public files that `fetch` makes."""
import os

from paddle.v2.dataset import common
from paddle.v2.dataset import uci_housing
from paddle.v2.dataset.uci_housing import test


def _files(name):
    return os.path.join(common.DATA_HOME, "uci_housing", name)


def train():
    return common.cluster_files_reader(
        _files("train-*.pickle"),
        trainer_count=int(os.getenv("PADDLE_INIT_NUM_GRADIENT_SERVERS", "1")),
        trainer_id=int(os.getenv("PADDLE_INIT_TRAINER_ID", "0")),
    )


def fetch():
    common.split(uci_housing.train(), line_count=500, suffix=_files("train-%05d.pickle"))
'''

_CLOUD = {
    "__init__.py": "",
    "dataset/__init__.py": "from {name}.dataset import common, uci_housing\n",
    "dataset/common.py": "def fetch_all():\n    from {name}.dataset import uci_housing\n\n    uci_housing.fetch()\n",
    "dataset/uci_housing.py": _CLOUD_HOUSING,
}

_MODULES = {
    "cPickle.py": _PICKLE,
    "paddle/__init__.py": _BESIDE,
    "paddle/v2/__init__.py": _V2,
    "paddle/v2/dataset/__init__.py": _DATASET,
    "paddle/v2/dataset/common.py": _COMMON,
    "paddle/v2/dataset/uci_housing.py": _UCI_HOUSING,
    "paddlecloud/__init__.py": _BESIDE,
    **{f"pcloud/{file}": text.replace("{name}", "pcloud") for file, text in _CLOUD.items()},
    # As it was called in June 2017.
    **{f"paddle/cloud/{file}": text.replace("{name}", "paddle.cloud") for file, text in _CLOUD.items()},
}


def sources() -> dict[str, str]:
    """The text of each module by its path in the folder."""
    library = Path(__file__).parent
    own = {f"paddlecloud/recordio/{file.name}": file.read_text("utf-8") for file in library.glob("*.py")}
    by_its_own_name = library.parents[1] / "recordio.py"  # which is installed beside us
    return {**own, **_MODULES, "recordio.py": by_its_own_name.read_text("utf-8")}
