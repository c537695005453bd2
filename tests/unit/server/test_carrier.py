"""What carries files between buckets and the server: what it says while it cannot, and that it goes on when it can."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddlecloud.files.results import Results
from paddlecloud.model.bos import StorageKeyRequest
from paddlecloud.model.job import Job
from paddlecloud.model.kept import Kept, Removed
from paddlecloud.model.state import JobState
from paddlecloud.model.user import Role
from paddlecloud.server.audit import AuditService
from paddlecloud.server.buckets import BucketService
from paddlecloud.server.carrier import Carrier
from paddlecloud.store.audit import Audit
from paddlecloud.store.buckets import Buckets, Stage, new_key_id
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.contract.records import NOW, a_job, a_move
from tests.gate import Gate
from tests.s3 import BUCKET, S3Server
from tests.unit.server.house import House, opened
from tests.waiting import wait_until


class Carrying:
    def __init__(self, s3: S3Server, house: House) -> None:
        cipher = Cipher(house.folder.key)
        Users(house.database, cipher).add("ann", Role.USER, None, NOW)
        self.s3, self.house, self.jobs = s3, house, house.jobs
        self.records = Buckets(house.database, cipher)
        self.results = Results(house.folder.results)
        self.store = s3.store(folder := secrets.token_hex(6))
        self.url = f"{BUCKET}.bj.bcebos.com/{folder}"
        self.removed: list[Removed] = []

    def submit(self, *, secret: str | None = None) -> Job:
        asked = StorageKeyRequest(url=self.url, key_id=self.s3.key_id, secret=secret or self.s3.secret)
        key = self.records.add_key("ann", new_key_id(), asked, NOW)
        job = a_job("ann")
        spec = replace(job.spec, public_bos=False, bos_url=self.url, storage_key=key.id)
        return self.jobs.add(replace(job, spec=spec), group="g")

    def end(self, job: Job) -> None:
        for state in (JobState.SCHEDULE, JobState.RUNNING, JobState.SUCCESS):
            job = self.jobs.move(job, a_move(state))
        self.jobs.cleaned([job.handle])

    @contextmanager
    def carrier(self, *, spare_bytes: int = 0, endpoint: str = "") -> Iterator[Carrier]:
        endpoint = endpoint or self.s3.endpoint
        audit = AuditService(Audit(self.house.database), lambda: NOW)
        made = Carrier(
            service=BucketService(records=self.records, endpoint=endpoint, audit=audit, clock=lambda: NOW),
            records=self.records,
            jobs=self.jobs,
            results=self.results,
            removed=lambda _: self.removed,
            folder=self.house.folder.buckets,
            limit_bytes=2**30,
            spare_bytes=spare_bytes,
            wake=lambda: None,
            clock=lambda: NOW,
        )
        made.start()
        try:
            yield made
        finally:
            made.stop()


@pytest.fixture
def carrying(s3_server: S3Server, tmp_path: Path) -> Iterator[Carrying]:
    with opened(tmp_path / "data") as house:
        yield Carrying(s3_server, house)


def test_a_full_disk_makes_a_job_wait_and_leaves_nothing_there(carrying: Carrying) -> None:
    carrying.store.write("x", [b"1"])
    job = carrying.submit()
    with carrying.carrier(spare_bytes=2**60) as carrier:
        wait_until(lambda: "no room for the files from" in carrier.ready(job), "it says so")
        assert "it is tried again every" in carrier.ready(job)
        assert list(carrying.house.folder.buckets.iterdir()) == []
    with carrying.carrier() as carrier:
        wait_until(lambda: carrier.ready(job) == "", "it is here")
        assert (carrier.tree(job) / "x").read_bytes() == b"1"


def test_a_key_that_is_refused_is_told_when_the_job_starts(carrying: Carrying) -> None:
    carrying.store.write("x", [b"1"])
    job = carrying.submit(secret="wrong")
    with carrying.carrier() as carrier:
        wait_until(lambda: carrier.ready(job) == "", "it need not wait")
        with pytest.raises(Exception, match="refuses the key that was sent for it"):
            carrier.tree(job)


def test_results_that_cannot_be_sent_are_told_and_sent_when_they_can(carrying: Carrying) -> None:
    job = carrying.submit()
    (carrying.results.folder(job) / "w").write_bytes(b"weights")
    carrying.end(job)
    ended = carrying.jobs.get(job.id)
    with carrying.carrier(endpoint="http://127.0.0.1:9") as carrier:
        assert "are being sent to" in carrier.service.sending(ended)
        wait_until(lambda: "does not answer" in carrier.service.sending(ended), "it says so")
        assert "its results are not in its bucket yet" in carrier.service.sending(ended)
    with carrying.carrier() as carrier:
        wait_until(lambda: carrier.service.sending(ended) == "", "they are sent")
    assert carrying.store.open(f"output/{job.id}/w").read(0, 9) == b"weights"


def test_a_key_that_may_not_write_any_more_is_told(carrying: Carrying) -> None:
    job = carrying.submit(secret="wrong")
    (carrying.results.folder(job) / "w").write_bytes(b"weights")
    carrying.end(job)
    with carrying.carrier() as carrier:
        wait_until(lambda: "refuses the key" in carrier.service.sending(carrying.jobs.get(job.id)), "it says so")
    assert carrying.records.stage(job.id)[0] is not Stage.SENT


def test_results_that_retention_took_first_are_told(carrying: Carrying) -> None:
    job = carrying.submit()
    carrying.end(job)
    carrying.removed = [Removed(kind=Kept.RESULTS, at=NOW, by="retention.results = 1 h")]
    with carrying.carrier() as carrier:
        wait_until(lambda: carrying.records.stage(job.id)[0] is Stage.SENT, "it is over")
        assert "before all was in" in carrier.service.sending(carrying.jobs.get(job.id))


def test_a_job_whose_files_are_here_does_not_wait_for_those_of_another(carrying: Carrying) -> None:
    slow, here = carrying.submit(), carrying.submit()
    carrying.records.reach(here.id, Stage.HERE)
    (carrying.house.folder.buckets / here.id / "files").mkdir(parents=True)
    with Gate(carrying.s3.endpoint) as gate:
        gate.shut_after(0)
        with carrying.carrier(endpoint=gate.endpoint) as carrier:
            wait_until(lambda: carrier.ready(here) == "", "it can start")
            assert carrier.ready(slow) == f"its files are still to be fetched from {carrying.url}"


def test_files_that_the_disk_has_lost_are_fetched_again(carrying: Carrying) -> None:
    carrying.store.write("x", [b"1"])
    job = carrying.submit()
    carrying.records.reach(job.id, Stage.HERE)
    with carrying.carrier() as carrier:
        wait_until(lambda: carrier.ready(job) == "", "it is here")
        assert (carrier.tree(job) / "x").read_bytes() == b"1"


def test_folders_of_jobs_that_nobody_knows_are_removed(carrying: Carrying) -> None:
    stray = carrying.house.folder.buckets / a_job().id / "files"
    stray.mkdir(parents=True)
    with carrying.carrier():
        wait_until(lambda: not stray.parent.exists(), "it is gone")
