"""A whole run on a far node, as the batch script starts it: the end is told whatever happens, and nothing is left."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.backends import shipped
from paddlecloud.runtime import away
from paddlecloud.runtime.taskfile import TaskFile, encode
from tests.certificates import Authority
from tests.unit.runtime.far_server import FarServer, far_server
from tests.unit.runtime.orders import alone
from tests.waiting import wait_until

PYTHON = "/usr/bin/python3"  # other accounts may not look into the home of who runs the tests
OTHER = 23451
OUTPUT, NEWS = "tasks/trainer-0/output", "tasks/trainer-0/news"

pytestmark = pytest.mark.skipif(not os.path.exists(PYTHON), reason="needs a Python that every account may run")


class Node:
    """A disk with a /tmp, which anyone can write to, and an account that is not root where there is another."""

    def __init__(self, far: FarServer, tmp: Path) -> None:
        self.far = far
        self.tmp = tmp
        self.account = OTHER if os.geteuid() == 0 else os.geteuid()
        self.base = tmp / f"paddlecloud-{self.account}"

    def start(self, **more: str) -> subprocess.Popen[str]:
        environ = {**self.far.environ, "PADDLECLOUD_SCRATCH": str(self.tmp), "SLURM_JOB_ID": "7", **more}
        account = None if self.account == os.geteuid() else self.account
        return subprocess.Popen(
            [PYTHON, "-I", "-S", "-c", shipped.FETCH],
            env=environ,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            user=account,
            group=account,
            extra_groups=None if account is None else [],
        )

    def run(self, **more: str) -> int:
        process = self.start(**more)
        out, err = process.communicate(timeout=20)
        assert "Traceback" not in err, out + err
        return process.returncode

    def give(self, command: str, *, tree: bool = True, **changes: object) -> None:
        self.far.given["claims"] = json.dumps(
            {"task": "trainer-0", "order": json.loads(encode(order(command, **changes))), "brings_tree": tree}
        ).encode()


def order(command: str, **changes: object) -> TaskFile:
    own = f"{away.ROOT}/job-1-1/trainer-0/own"
    return alone(
        command=command,
        tree=away.TREE,
        mount=f"{own}/mount",
        work=f"{own}/work",
        home=f"{own}/home",
        temporary=f"{own}/tmp",
        output=f"{away.RESULTS}/rank-0",
        log_file=f"{away.RESULTS}/log/trainer-0.log",
        log_folder=f"{away.RESULTS}/log/trainer-0",
        wake="/nowhere",
        ports=[],
        memory_bytes=0,
        pids_limit=0,
        boot="",
        requirements="none",
        **changes,
    )


def a_tree() -> bytes:
    """As the server keeps it: nobody may change its folders."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        folder = tarfile.TarInfo("folder")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o555
        made.addfile(folder)
        file = tarfile.TarInfo("folder/words")
        file.size, file.mode = 50_000, 0o444
        made.addfile(file, io.BytesIO(b"w" * 50_000))
        link = tarfile.TarInfo("absolute")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        made.addfile(link)
    return out.getvalue()


@pytest.fixture
def far() -> Iterator[FarServer]:
    with far_server() as serving:
        serving.given = {"runtime": shipped.archive(), "tree": a_tree()}
        yield serving


@pytest.fixture
def node(far: FarServer) -> Iterator[Node]:
    tmp = Path(tempfile.mkdtemp(prefix="far-node-", dir="/tmp"))  # who is not root cannot look into tmp_path
    tmp.chmod(0o1777)
    yield Node(far, tmp)
    shutil.rmtree(tmp)


def end(far: FarServer) -> dict[str, object]:
    found = far.news[-1]["end"]
    assert isinstance(found, dict)
    return found


def test_a_task_runs_although_answers_come_in_part_and_leaves_nothing_there(far: FarServer, node: Node) -> None:
    node.give('wc -c < folder/words; readlink absolute; mkdir -p "$OUTPUT_PATH"; echo x > "$OUTPUT_PATH/x"')
    far.cut = ["runtime", "claims", "tasks/trainer-0/log", OUTPUT]
    far.unended = ["tree"]
    assert node.run() == 0
    assert far.cut + far.unended == []
    assert far.log.decode().split()[-2:] == ["50000", "/etc/hostname"]
    assert far.files == {"rank-0/x": b"x\n"}
    assert end(far)["exit_code"] == 0
    assert os.listdir(node.base) == []


def test_a_file_that_is_refused_is_told_of_in_the_log_and_the_end_is_told(far: FarServer, node: Node) -> None:
    node.give('mkdir -p "$OUTPUT_PATH"; echo x > "$OUTPUT_PATH/bad"; exit 7')
    far.refused = ("bad",)
    assert node.run() == 7
    assert "paddlecloud: rank-0/bad was not taken: it has no place here" in far.log.decode()
    assert end(far)["exit_code"] == 7


def test_a_stop_while_results_are_sent_stops_nothing(far: FarServer, node: Node) -> None:
    node.give('mkdir -p "$OUTPUT_PATH"; echo x > "$OUTPUT_PATH/x"')
    far.cut = [OUTPUT] * 2  # it pauses between
    process = node.start()
    wait_until(lambda: OUTPUT in far.asked, "the file is being sent")

    def has_ended() -> bool:
        process.send_signal(signal.SIGTERM)
        return process.poll() is not None

    wait_until(has_ended, "it ends", seconds=20)
    assert process.communicate(timeout=20)[1] == ""
    assert process.returncode == 0
    assert end(far)["exit_code"] == 0


def test_a_stop_while_it_fetches_leaves_nothing_there(far: FarServer, node: Node) -> None:
    node.give("true")
    far.hold["tree"] = threading.Event()
    process = node.start()
    wait_until(lambda: "tree" in far.asked, "the tree is being fetched")
    assert len(os.listdir(node.base)) == 1
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    far.hold["tree"].set()
    assert os.listdir(node.base) == []


def test_a_task_whose_files_cannot_be_had_tells_why(far: FarServer, node: Node) -> None:
    node.give("true")
    del far.given["tree"]
    assert node.run() == 126
    assert "could not fetch what it is to run: it answered 404" in str(end(far)["reason"])
    assert end(far)["lost"] is True


def test_the_working_directory_of_a_failed_task_comes_if_it_is_kept(far: FarServer, node: Node) -> None:
    node.give("echo half > half; exit 3", keep=True)
    assert node.run() == 3
    assert far.files["workspace/attempt-1/trainer-0/half"] == b"half\n"


def test_a_task_sees_nothing_of_other_runs_on_its_node(far: FarServer, node: Node) -> None:
    other = node.base / "job-2-abc"
    (other / "tree").mkdir(parents=True)
    (other / "tree/secret").write_text("SECRET")
    for path in (node.base, other, other / "tree", other / "tree/secret"):
        os.chown(path, node.account, node.account)
    node.base.chmod(0o700)
    node.give(f"cat {other}/tree/secret; find {node.base} -name '*.py'; ls {node.base} | wc -l", unisolated=False)
    assert node.run() == 0
    assert "SECRET" not in far.log.decode()
    assert ".py" not in far.log.decode()
    assert far.log.decode().split()[-1] == "1"


@pytest.mark.parametrize("kind", ["a link", "a folder that all can write to", "a file", "another's folder"])
def test_what_others_have_put_in_tmp_is_not_used_and_stops_nobody(far: FarServer, node: Node, kind: str) -> None:
    public = node.tmp / "public"
    public.mkdir()
    public.chmod(0o777)
    os.chown(public, node.account, node.account)
    if kind == "a link":
        public.chmod(0o700)  # whose it is and what it allows is right, and still another has chosen it
        node.base.symlink_to(public)
    elif kind == "a file":
        node.base.touch()
    else:
        node.base.mkdir(mode=0o700)
        if kind == "another's folder" and os.geteuid() != 0:
            pytest.skip("needs root")
        if kind != "another's folder":
            public.rename(node.base)
    node.give("echo ran in $PWD")
    for _ in range(2):
        assert node.run() == 0
    beside = [path for path in node.tmp.iterdir() if path.name.startswith(f"{node.base.name}-")]
    assert len(beside) == 1
    assert list(beside[0].iterdir()) == []
    assert far.log.decode().count(f"ran in {beside[0]}/job-1-") == 2


def test_a_run_needs_nothing_of_what_an_earlier_one_has_left(far: FarServer, node: Node) -> None:
    node.give("true")
    assert node.run() == 0
    left = node.base / "job-1-killed/runtime"
    left.mkdir(parents=True)
    (left / "ship.py").touch()
    left.chmod(0o555)
    for path in (left, left.parent):
        os.chown(path, node.account, node.account)
        os.utime(path, (0, 0))
    assert node.run() == 0
    assert os.listdir(node.base) == []


def test_the_folder_of_temporary_files_is_that_of_the_node_where_the_account_is_one_users(node: Node) -> None:
    own = node.tmp / "of-the-job"
    own.mkdir()
    os.chown(own, node.account, node.account)
    node.give("echo ran in $PWD")
    assert node.run(PADDLECLOUD_SCRATCH="", PADDLECLOUD_ALONE="1", TMPDIR=str(own)) == 0
    assert f"ran in {own}/paddlecloud-" in node.far.log.decode()
    assert node.run(PADDLECLOUD_SCRATCH=str(node.tmp), TMPDIR=str(own)) == 0
    assert f"ran in {node.base}/" in node.far.log.decode()


def test_the_runtime_comes_from_a_server_whose_chain_has_no_root(tmp_path: Path, node: Node) -> None:
    issued = Authority(tmp_path / "ca").issue()
    with far_server(issued) as far:
        far.given = {"runtime": shipped.archive(), "tree": a_tree()}
        node.far = far
        node.give("echo by https")
        assert node.run(PADDLECLOUD_CERTIFICATE=issued.chain.read_text()) == 0
        assert "by https" in far.log.decode()
