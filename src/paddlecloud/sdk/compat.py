"""What lets programs that were written for PaddlePaddle v2 run with the Python of today (`--compat v2`).

A folder goes with the job and stands first on its PYTHONPATH: `paddle.v2.dataset`, `recordio` and `cPickle`, made of
this library. It needs nothing of the node, and does not hide the PaddlePaddle that is installed there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

import paddlecloud.recordio
from paddlecloud.model.job import JobSpec
from paddlecloud.model.tree import Manifest
from paddlecloud.sdk import bundle
from paddlecloud.sdk.bundle import Bundle

FOLDER = ".paddle-v2"
_FIRST = f'export PYTHONPATH="$PWD/{FOLDER}${{PYTHONPATH:+:$PYTHONPATH}}"; '

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

_COMMON = """\
from paddlecloud.recordio.dataset import cluster_files_reader, cluster_reader_recordio, convert, split
"""

_MODULES = {
    "cPickle.py": "import pickle\nimport sys\n\nsys.modules[__name__] = pickle\n",
    "paddle/__init__.py": _BESIDE,
    "paddle/v2/__init__.py": _V2,
    "paddle/v2/dataset/__init__.py": f"from paddle.v2.dataset import common, uci_housing\n{_COMMON}",
    "paddle/v2/dataset/common.py": _COMMON,
    "paddle/v2/dataset/uci_housing.py": "from paddlecloud.recordio.uci_housing import test, train\n",
    "paddlecloud/__init__.py": _BESIDE,
}


def adapted(spec: JobSpec) -> JobSpec:
    """The job with commands that find the folder, wherever they go from where they start."""
    return replace(spec, roles=tuple(replace(role, command=_FIRST + role.command) for role in spec.roles))


@contextmanager
def bundled(sent: Bundle | None) -> Iterator[Bundle]:
    """What is sent with the folder in it, as long as the block lasts."""
    with written() as folder:
        made = bundle.scan(folder, ignore_defaults=False)
        yield bundle.joined(Bundle(Manifest(entries=()), {}, (), "") if sent is None else sent, made, FOLDER)


@contextmanager
def written() -> Iterator[Path]:
    """The folder on this disk, as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="paddlecloud-compat-") as temporary:
        folder = Path(temporary)
        library = Path(paddlecloud.recordio.__file__).parent
        sources = {f"paddlecloud/recordio/{file.name}": file.read_text("utf-8") for file in library.glob("*.py")}
        own_name = library.parents[1] / "recordio.py"  # the module of that name, which is installed beside us
        for path, text in {**sources, **_MODULES, "recordio.py": own_name.read_text("utf-8")}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
        yield folder
