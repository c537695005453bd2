"""HDFS behind a server: seed 003's data dealt out to trainers, a datacenter kept there, and what goes wrong."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest

from paddlecloud.files.hdfs import HdfsStore
from paddlecloud.files.webhdfs import WebHdfs
from tests.flow.lab import Lab
from tests.gate import Gate
from tests.hdfs import USER, Hdfs
from tests.waiting import wait_until

SMALL = 20_000
RUN = """\
for list in train.list test.list; do while read file; do echo "$list $file $(cat $file)"; done < $list; done
cat train_data_dir/demo/train_meta; test -e test_data_dir/demo/test_meta || echo no test_meta
"""


class Warehouse:
    """A server that knows one HDFS, whose NameNode it reaches through a gate, and a folder of it with data."""

    def __init__(self, hdfs: Hdfs, lab: Lab, gate: Gate) -> None:
        self.work_dir = f"/stores/{secrets.token_hex(6)}/demo"
        self.store: HdfsStore = hdfs.store(self.work_dir)
        self.name, self.gate, self.url = hdfs.name, gate, hdfs.url
        self._lab = lab
        lab.configure(
            f"""
[datacenters.dc]
[datacenters.warehouse]
store = "hdfs"
endpoint = "{gate.endpoint}"
path = "/stores/{secrets.token_hex(6)}"
user = "{USER}"
[hdfs."{hdfs.name}"]
url = "{gate.endpoint}"
"""
        )
        lab.type("up")
        self.me = lab.client().profile.user

    def submit(self, inputs: str, *, run: str = "sh run.sh", nodes: int = 1, code: int = 0) -> str:
        """The job's id, or what was said when it was refused. In the inputs WORK_DIR is the folder with data."""
        self._lab.folder(run_sh=RUN)
        inputs = inputs.replace("WORK_DIR", f"hdfs://{self.name}{self.work_dir}").replace("ME", self.me)
        text = f"workdir: job\nrun: {run}\nnodes: {nodes}\ninputs:\n{inputs}"
        (self._lab.work / "job.yaml").write_text(text)
        said = self._lab.type("submit", "-f", "job.yaml", code=code)
        return said.stderr if code else said.stdout.split()[-1]


@pytest.fixture
def warehouse(hdfs_cluster: Hdfs, lab: Lab) -> Iterator[Warehouse]:
    with Gate(hdfs_cluster.url) as gate:
        yield Warehouse(hdfs_cluster, lab, gate)


def test_seed_003s_data_is_dealt_to_three_trainers_in_its_layout(lab: Lab, warehouse: Warehouse) -> None:
    train = [f"train/train_batch_{number:03}" for number in range(8)]
    test = [f"test/test_batch_{number:03}" for number in range(2)]
    warehouse.store.write_all([(path, path.encode()) for path in (*train, *test, "train_meta")])
    job = warehouse.submit(
        f"""
- {{from: 'WORK_DIR/train', to: ./train_data_dir/train, deal: true, list: train.list, user: {USER}}}
- {{from: 'WORK_DIR/test/', to: ./test_data_dir/test, deal: true, list: test.list, user: {USER}}}
- {{from: 'WORK_DIR/train_meta', to: train_data_dir/demo/train_meta, user: {USER}}}
- {{from: 'WORK_DIR/test_meta', to: test_data_dir/demo/test_meta, optional: true, user: {USER}}}
""",
        nodes=3,
    )
    lab.ends(job, "success")
    for rank in range(3):
        mine = [f"train.list ./train_data_dir/{path} {path}" for path in train[rank::3]]
        mine += [f"test.list ./test_data_dir/{path} {path}" for path in test[rank::3]]
        found = lab.out("logs", job, "-w", f"trainer-{rank}")
        assert found == "\n".join([*mine, "train_metano test_meta\n"])
    wait_until(lambda: not list((lab.data / "buckets").iterdir()), "what was fetched is gone")


def test_a_server_that_is_killed_while_it_fetches_from_hdfs_goes_on_where_it_was(
    lab: Lab, warehouse: Warehouse
) -> None:
    warehouse.store.write_all([(f"set/part-{number:03}", bytes(SMALL)) for number in range(130)])
    inputs, run = f"- {{from: 'WORK_DIR/set', user: {USER}}}", "cat set/part-* | wc -c"
    lab.ends(warehouse.submit(inputs, run=run), "success")
    all_bytes = warehouse.gate.passed_bytes
    warehouse.gate.shut_after(all_bytes * 9 // 10)
    job = warehouse.submit(inputs, run=run)
    wait_until(lambda: warehouse.gate.is_shut, "much of it is here", seconds=30)
    assert f" of 2.5 MiB from hdfs://{warehouse.name}{warehouse.work_dir}/set" in lab.field(job, "queue_reason")
    lab.kill_server()
    warehouse.gate.go_away()
    lab.type("up")
    wait_until(lambda: "cannot be reached" in lab.field(job, "queue_reason"), "it says so", seconds=30)
    before = warehouse.gate.passed_bytes
    warehouse.gate.come_back()
    lab.ends(job, "success", seconds=90)
    assert lab.out("logs", job).strip() == str(130 * SMALL)
    assert warehouse.gate.passed_bytes - before < all_bytes // 2


def test_a_datacenter_in_hdfs_is_one_as_any_other(lab: Lab, warehouse: Warehouse) -> None:
    data = lab.folder("data", a_txt="one", b_txt="two")
    (data / "large").write_bytes(os.urandom(20_000_000))
    home = f"/pfs/warehouse/home/{warehouse.me}"
    lab.type("cp", "data", f"{home}/data")
    lab.type("mv", f"{home}/data/a.txt", f"{home}/data/c:d")
    lab.type("cp", f"{home}/data", "back")
    assert (lab.work / "back/large").read_bytes() == (data / "large").read_bytes()
    assert (lab.work / "back/c:d").read_text() == "one"
    assert lab.out("ls", f"{home}/data", "-o", "name").split() == [
        f"{home}/data/{name}" for name in ("b.txt", "c:d", "large")
    ]
    job = warehouse.submit("- {from: /pfs/warehouse/home/ME/data, to: .}", run="cat b.txt c:d")
    lab.ends(job, "success")
    assert lab.out("logs", job) == "twoone"
    lab.type("rm", "-r", f"{home}/data")
    found = lab.type("doctor", code=None).stdout
    assert "of HDFS at" in found


def test_inputs_of_hdfs_that_cannot_be_are_refused_with_a_word_on_each(lab: Lab, warehouse: Warehouse) -> None:
    warehouse.store.write("set/a", [b"1"])
    WebHdfs(warehouse.url, USER)._client.set_permission(warehouse.work_dir, "700")
    for inputs, why in {
        "- {from: 'hdfs://nmg01-mulan-hdfs:54310/app/x', user: u}": f"it knows hdfs://{warehouse.name}",
        "- {from: 'WORK_DIR/set'}": "is to be read as (user)",
        "- {from: 'WORK_DIR/set', user: 'u,secret'}": "is no name of a user",
        "- {from: 'WORK_DIR/set', user: stranger}": "may not be read as stranger: HDFS denies this to user stranger",
        f"- {{from: 'WORK_DIR/gone', user: {USER}}}": f"there is no hdfs://{warehouse.name}{warehouse.work_dir}/gone",
        f"- {{from: 'WORK_DIR/../x', user: {USER}}}": "'..'",
        f"- {{from: 'hdfs:///x', user: {USER}}}": "names no file system",
    }.items():
        said = warehouse.submit(inputs, code=2)
        assert why in said
        assert "Traceback" not in said
    lab.type("down")
    warehouse.gate.go_away()
    lab.type("up")
    said = warehouse.submit(f"- {{from: 'WORK_DIR/set', user: {USER}}}", code=1)
    assert "nothing was submitted" in said
    assert lab.out("ls", "-o", "name") == ""
