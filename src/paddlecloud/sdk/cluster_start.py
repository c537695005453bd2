"""What a job of cluster_train brings to its nodes: the config, thirdparty, and the script that starts a trainer there.

<config>                  as it was, but for the password in fs_ugi
thirdparty/thirdparty/    the folder that --thirdparty names
thirdparty/start.sh       what every trainer runs, below
thirdparty/cluster_train.py    lets `python <config>` meet the call cluster_config(…)
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from paddlecloud.model.cluster_config import CALL, LARGEST_BYTES, without_password
from paddlecloud.sdk import bundle
from paddlecloud.sdk.bundle import Bundle
from paddlecloud.sdk.exchange import Progress

THIRDPARTY = "thirdparty/thirdparty"
START = "thirdparty/start.sh"
HOOK = "before_hook.sh"
TAKEN = frozenset({"thirdparty", "train_data_dir", "test_data_dir", "train.list", "test.list"})  # in the workspace

START_SH = """\
#!/bin/sh
# What each trainer of `paddle cluster_train` runs: sh thirdparty/start.sh ENTRY [MODULE]
# ENTRY is a line for the shell. It runs in the workspace, after before_hook.sh of thirdparty, if there is one; MODULE,
# if it is named, is a Python module without which ENTRY would be of no use.

cluster_train_say() {
    echo "cluster_train: $*" >&2
}

export ROOT_WORKSPACE_ROOT="$PWD"
cluster_train_dir="$PWD/thirdparty/thirdparty"
cluster_train_hook="$cluster_train_dir/before_hook.sh"

if [ "$CLUSTER_TRAIN_SHELL" != bash ]; then
    # What was sent comes first: a private PaddlePaddle wins over the one that is installed.
    export PYTHONPATH="$cluster_train_dir:$PWD:$PWD/thirdparty${PYTHONPATH:+:$PYTHONPATH}"
    export LD_LIBRARY_PATH="$cluster_train_dir:$cluster_train_dir/lib:$PWD${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    if [ -d "$cluster_train_dir/bin" ]; then
        export PATH="$cluster_train_dir/bin:$PATH"
    fi
    if [ -e "$cluster_train_hook" ]; then
        if ! command -v bash > /dev/null; then
            cluster_train_say "thirdparty/before_hook.sh needs bash, which is not on this node: its operator can" \\
                "install it, or leave before_hook.sh out"
            exit 1
        fi
        export CLUSTER_TRAIN_SHELL=bash
        exec bash "$ROOT_WORKSPACE_ROOT/thirdparty/start.sh" "$@"
    fi
else
    unset CLUSTER_TRAIN_SHELL
    # Files with the same content may be one file with two names, which `cp` refuses to copy onto itself.
    for cluster_train_file in *; do
        if [ -f "$cluster_train_file" ] && [ "$cluster_train_file" -ef "$cluster_train_dir/$cluster_train_file" ]; then
            cp -p -- "$cluster_train_file" .cluster_train && mv -f .cluster_train "./$cluster_train_file"
        fi
    done
    cluster_train_entry=$1
    cluster_train_module=$2
    cluster_train_failed() {
        trap - EXIT
        cluster_train_say "before_hook.sh failed: $1 ended with exit code $cluster_train_code, and the trainer is" \\
            "not started; what it said is above. What does no harm can be followed by: || true"
        exit 1
    }
    if ! bash -n "$cluster_train_hook"; then
        cluster_train_say "before_hook.sh is not what bash understands, and the trainer is not started; see above"
        exit 1
    fi
    trap 'cluster_train_code=$?; cluster_train_failed "its shell (return ends a function, exit ends all)"' EXIT
    set --
    source "$cluster_train_hook"
    cluster_train_code=$?
    [ $cluster_train_code -eq 0 ] || cluster_train_failed "the file itself"
    if [ "$(type -t private_script)" = function ]; then
        private_script "$cluster_train_dir" "$ROOT_WORKSPACE_ROOT"
        cluster_train_code=$?
        [ $cluster_train_code -eq 0 ] || cluster_train_failed private_script
    fi
    set +eu
    trap - EXIT
    cd "$ROOT_WORKSPACE_ROOT" || exit 1
    set -- "$cluster_train_entry" "$cluster_train_module"
fi

if [ -n "$2" ] && ! python -c "import $2"; then
    cluster_train_say "this config is made for a PaddlePaddle that has $2, and the one here has not. Name the" \\
        "program to run instead, by entry='python train.py' in cluster_config(…) or by --entry 'python train.py';" \\
        "or bring such a PaddlePaddle in thirdparty"
    exit 1
fi
exec /bin/sh -c "$1"
"""

CLUSTER_TRAIN_PY = '''\
"""So that a config of cluster_train is a program, too: what it says was read when the job was submitted."""


def cluster_config(**settings):
    """Do nothing."""
'''


def command(entry: str, module: str = "") -> str:
    """What a trainer runs to have its entry run."""
    return f"sh {START} {shlex.quote(entry)}" + (f" {shlex.quote(module)}" if module else "")


@contextmanager
def bundled(
    config: Path, source: bytes, thirdparty: Path | None, *, limit_bytes: int | None, progress: Progress | None
) -> Iterator[Bundle]:
    """All that is sent, as long as the block lasts. No password of a config is in it."""
    with tempfile.TemporaryDirectory(prefix="paddlecloud-train-") as temporary:
        own = Path(temporary)
        sent = None if thirdparty is None else bundle.scan(thirdparty, limit_bytes=limit_bytes, progress=progress)
        _write(own / config.name, without_password(source))
        _write(own / START, START_SH.encode())
        _write(own / "thirdparty" / "cluster_train.py", CLUSTER_TRAIN_PY.encode())
        for file in [] if sent is None else sent.sources.values():
            if (cleaned := _cleaned(file)) is not None:
                _write(own / THIRDPARTY / file.path, cleaned, executable=file.executable)
        made = bundle.scan(own, ignore_defaults=False)
        name = bundle.name_of(config.parent)
        yield replace(made if sent is None else bundle.joined(made, sent, THIRDPARTY), name=name)


def _cleaned(file: bundle.Source) -> bytes | None:
    """A config without its password, or None where there is none to take out: `cp *.py thirdparty` takes it along."""
    if not file.path.endswith(".py") or file.size > LARGEST_BYTES:
        return None
    source = file.read(0)
    if CALL.encode() not in source and b"fs_ugi" not in source:
        return None
    cleaned = without_password(source)
    return cleaned if cleaned != source else None


def _write(file: Path, content: bytes, *, executable: bool = False) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    if executable:
        file.chmod(0o755)
