"""What carries files between buckets and the server: what it says while it cannot, and that it goes on when it can."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddlecloud.files.base import Store
from paddlecloud.files.local import LocalStore
from paddlecloud.files.results import Results
from paddlecloud.model.bos import StorageKeyRequest
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.inputs import HdfsPath
from paddlecloud.model.job import Input, Job
from paddlecloud.model.kept import Kept, Removed
from paddlecloud.model.state import JobState
from paddlecloud.model.user import Role
from paddlecloud.server.audit import AuditService
from paddlecloud.server.buckets import BucketService
from paddlecloud.server.carrier import Carrier
from paddlecloud.server.inputs import InputService
from paddlecloud.server.pfs import Pfs
from paddlecloud.server.room import Room
from paddlecloud.store.audit import Audit
from paddlecloud.store.buckets import Buckets, Stage, new_key_id
from paddlecloud.store.pfs_use import PfsUse
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
        users = Users(house.database, cipher)
        users.add("ann", Role.USER, None, NOW)
        self.s3, self.house, self.jobs = s3, house, house.jobs
        self.records = Buckets(house.database, cipher)
        self.results = Results(house.folder.results)
        self.store = s3.store(folder := secrets.token_hex(6))
        self.url = f"{BUCKET}.bj.bcebos.com/{folder}"
        self.removed: list[Removed] = []
        self.away = s3.store()  # a datacenter of the PFS
        use = PfsUse(house.database)
        stores: dict[str, Store] = {"here": LocalStore(house.root / "pfs"), "away": self.away}
        self.pfs = Pfs(
            stores=stores,
            outputs=LocalStore(house.folder.results),
            room=Room(users=users, use=use, stores=stores, limit_bytes=None, clock=lambda: NOW),
            discard=lambda user, job: None,
        )

    def no_hdfs(self, wanted: HdfsPath, user: str) -> Store:
        raise InvalidError(f"this server knows no {wanted.name}")

    def submit_with(self, *inputs: Input) -> Job:
        job = a_job("ann")
        return self.jobs.add(replace(job, spec=replace(job.spec, inputs=inputs)), group="g")

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
            inputs=InputService(pfs=self.pfs, folder=self.house.folder.buckets, hdfs=self.no_hdfs),
            records=self.records,
            jobs=self.jobs,
            results=self.results,
            removed=lambda _: self.removed,
            folder=self.house.folder.buckets,
            limit_bytes=2**30,
            inputs_bytes=1000,
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


def test_inputs_in_a_bucket_are_fetched_and_those_on_this_disk_are_used_where_they_are(carrying: Carrying) -> None:
    carrying.away.write("home/ann/data/a/b", [b"12"])
    carrying.away.write("home/ann/one", [b"3"])
    here = Input(source="/pfs/here/home/ann/data", target="c")
    job = carrying.submit_with(
        Input(source="/pfs/away/home/ann/data", target="a"), Input(source="/pfs/away/home/ann/one", target="b"), here
    )
    with carrying.carrier() as carrier:
        wait_until(lambda: carrier.ready(job) == "", "they are here")
        folder, file, at = carrier.inputs(job)
        assert (folder.folder / folder.path / "a" / "b").read_bytes() == b"12"
        assert (file.folder / file.path).read_bytes() == b"3"
        assert (at.folder, at.path) == (carrying.house.root / "pfs/home/ann", "data")
        assert not at.folder.is_relative_to(carrying.house.folder.buckets)
        carrying.end(job)
        carrier.ready(carrying.submit_with(here))  # by which it hears that there is something to do
        wait_until(lambda: carrying.records.stage(job.id)[0] is Stage.SENT, "nothing is left to be done")
        wait_until(lambda: not (carrying.house.folder.buckets / job.id).exists(), "they are gone")


def test_what_a_server_that_was_killed_has_fetched_does_not_come_again(carrying: Carrying) -> None:
    for number in range(3):
        carrying.away.write(f"home/ann/data/{number}", [b"1"])
    job = carrying.submit_with(Input(source="/pfs/away/home/ann/data", target="a"))
    with carrying.carrier() as carrier:
        wait_until(lambda: carrier.ready(job) == "", "they are here")
        at = carrier.inputs(job)[0]
    before = (at.folder / "data/1").stat().st_mtime_ns
    carrying.records.reach(job.id, Stage.FETCHING)
    (at.folder / "data").chmod(0o755)
    (at.folder / "data/2").unlink()
    with carrying.carrier() as carrier:
        wait_until(lambda: carrier.ready(job) == "", "they are here")
    assert (at.folder / "data/1").stat().st_mtime_ns == before
    assert (at.folder / "data/2").read_bytes() == b"1"


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (Input(source="/pfs/away/home/ann/gone", target="a"), "there is no /pfs/away/home/ann/gone"),
        (Input(source="/pfs/away/home/ann/empty", target="a"), "there are no files in /pfs/away/home/ann/empty"),
        (Input(source="/pfs/away/home/ann/large", target="a"), "more than this server fetches for one, 1000 B"),
        (Input(source="/pfs/away/home/bob/x", target="a"), "is not yours, ann"),
        (Input(source="/pfs/closed/home/ann/x", target="a"), "there is no datacenter 'closed'"),
        (Input(source="hdfs://nn:1/x", target="a"), "this server knows no nn:1"),
    ],
)
def test_an_input_that_will_never_be_had_is_told_when_the_job_starts(carrying: Carrying, one: Input, why: str) -> None:
    carrying.away.make_folder("home/ann/empty")
    carrying.away.write("home/ann/large", [bytes(1001)])
    job = carrying.submit_with(one)
    with carrying.carrier() as carrier:
        wait_until(lambda: carrier.ready(job) == "", "it need not wait")
        with pytest.raises(Exception, match=why):
            carrier.inputs(job)


def test_an_input_that_need_not_be_there_is_not(carrying: Carrying) -> None:
    job = carrying.submit_with(Input(source="/pfs/away/home/ann/gone", target="a", optional=True))
    with carrying.carrier() as carrier:
        wait_until(lambda: carrier.ready(job) == "", "it need not wait")
        at = carrier.inputs(job)[0]
        assert not (at.folder / at.path).exists()
