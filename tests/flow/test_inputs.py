"""Inputs of jobs: data of the PFS, on the server's disk and in a bucket, that each trainer finds its share of."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.lab import Lab
from tests.gate import Gate
from tests.s3 import BUCKET, REGION, S3Server
from tests.waiting import wait_until

SMALL = 20_000


class Centers:
    """A server with a datacenter on its disk and one in a bucket, which it reaches through a gate."""

    def __init__(self, s3: S3Server, lab: Lab, gate: Gate) -> None:
        folder = secrets.token_hex(6)
        self.store = s3.store(folder)
        self.gate = gate
        self._lab = lab
        secret = lab.home / "secret"
        secret.write_text(s3.secret)
        lab.configure(
            f"""
[datacenters.dc]
[datacenters.cold]
store = "s3"
bucket = "{BUCKET}/{folder}"
endpoint = "{gate.endpoint}"
region = "{REGION}"
key_id = "{s3.key_id}"
secret_file = "{secret}"
"""
        )
        lab.type("up")
        self.me = lab.client().profile.user

    def submit(self, run: str, inputs: str, *, more: str = "", code: int = 0) -> str:
        """The job's id, or what was said when it was refused."""
        self._lab.folder()
        text = f"name: on-data\nworkdir: job\nrun: {run}\n{more}\ninputs:\n{inputs.replace('ME', self.me)}"
        (self._lab.work / "job.yaml").write_text(text)
        said = self._lab.type("submit", "-f", "job.yaml", code=code)
        return said.stderr if code else said.stdout.split()[-1]


@pytest.fixture
def centers(s3_server: S3Server, lab: Lab) -> Iterator[Centers]:
    with Gate(s3_server.endpoint) as gate:
        yield Centers(s3_server, lab, gate)


def nothing_is_left(data: Path) -> bool:
    return not (data / "buckets").exists() or not list((data / "buckets").iterdir())


def test_files_of_a_bucket_and_of_the_disk_are_dealt_out_and_gone_when_the_job_is(lab: Lab, centers: Centers) -> None:
    for number in range(7):
        centers.store.write(f"home/{centers.me}/set/part-{number}", [f"{number}\n".encode()])
    (lab.work / "meta").write_text("of the disk\n")
    lab.type("cp", "meta", f"/pfs/dc/home/{centers.me}/meta")
    inputs = (
        "- {from: /pfs/cold/home/ME/set, to: ./data/train, deal: true, list: train.list}\n"
        "- {from: /pfs/dc/home/ME/meta, to: data/meta}\n- {from: /pfs/public/none, optional: true}\n"
    )
    more = "nodes: 3\nsetup: cat data/meta"
    job = centers.submit("'cat train.list; cat $(cat train.list); echo x > data/meta; true'", inputs, more=more)
    lab.ends(job, "success")
    for rank in range(3):
        mine = range(rank, 7, 3)
        lines = ["of the disk", *(f"./data/train/part-{number}" for number in mine), *map(str, mine)]
        assert lab.out("logs", job, "-w", f"trainer-{rank}").splitlines()[: len(lines)] == lines
    assert "Read-only file system" in lab.out("logs", job)
    assert f"/pfs/cold/home/{centers.me}/set, /pfs/dc/home/{centers.me}/meta" in lab.out("show", job)
    wait_until(lambda: nothing_is_left(lab.data), "what was fetched is gone")
    lab.type("cp", f"/pfs/dc/home/{centers.me}/meta", "back")
    assert (lab.work / "back").read_text() == "of the disk\n"


def test_a_server_that_is_killed_while_it_fetches_inputs_goes_on_where_it_was(lab: Lab, centers: Centers) -> None:
    for number in range(130):
        centers.store.write(f"home/{centers.me}/set/part-{number:03}", [secrets.token_bytes(SMALL)])
    centers.gate.shut_after(int(SMALL * 115))
    job = centers.submit("cat set/part-* | wc -c", "- {from: /pfs/cold/home/ME/set}\n")
    wait_until(lambda: centers.gate.is_shut, "much of it is here")
    wait_until(lambda: "fetching" in lab.field(job, "queue_reason"), "it says so")
    assert f" of 2.5 MiB from /pfs/cold/home/{centers.me}/set" in lab.field(job, "queue_reason")
    lab.kill_server()
    before = centers.gate.passed_bytes
    centers.gate.open()
    lab.type("up")
    lab.ends(job, "success")
    assert lab.out("logs", job).strip() == str(130 * SMALL)
    assert centers.gate.passed_bytes - before < 80 * SMALL


def test_inputs_that_cannot_be_are_refused_with_a_word_on_each(lab: Lab, centers: Centers) -> None:
    centers.store.write(f"home/{centers.me}/set/a", [b"1"])
    for inputs, why in {
        "- {from: /etc/passwd}": "is nothing that an input can come from",
        "- {from: /pfs/cold/home/ME/gone}": f"there is no /pfs/cold/home/{centers.me}/gone",
        "- {from: /pfs/cold/home/bob/x}": f"is not yours, {centers.me}",
        "- {from: /pfs/hot/home/ME/x}": "there is no datacenter 'hot': this server has dc, cold",
        "- {from: /pfs/cold/home/ME/set, to: ../x}": "leads out of the working directory",
        "- {from: /pfs/cold/home/ME/set}\n- {from: /pfs/cold/home/ME/set, to: set/b}": "are in each other's way",
        "- {from: /pfs/cold/home/ME/set, user: bob}": "is for HDFS",
        "- {fron: /pfs/cold/home/ME/set}": "did you mean 'from'?",
        "- {from: 'hdfs://nn:54310/x'}": "nn:54310",
    }.items():
        said = centers.submit("sh run.sh", inputs, code=2)
        assert why in said
        assert "Traceback" not in said
    assert lab.out("ls", "-o", "name") == ""
