"""Storage of one's own (seed 002's public_bos=0): files come from a bucket, results go to it, the key is nowhere."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.files.s3 import S3Store
from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.job import JobSpec, RoleSpec
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind
from paddlecloud.sdk.client import Client
from paddlecloud.sdk.profile import Profile
from tests.flow.lab import Lab
from tests.gate import Gate
from tests.s3 import BUCKET, S3Server
from tests.waiting import wait_until

SMALL = 20_000


class Bos:
    """A folder in a bucket of one's own, reached through a gate, and the client.conf that has the key to it."""

    def __init__(self, s3: S3Server, lab: Lab, gate: Gate) -> None:
        self.folder = f"me/{secrets.token_hex(4)}"
        self.store: S3Store = s3.store(self.folder)
        self.url = f"{BUCKET}.bj.bcebos.com/{self.folder}"
        self.secret, self.key_id = s3.secret, s3.key_id
        self.gate = gate
        self._lab = lab
        lab.configure(f'[server]\nlog_level = "debug"\n[pfs]\nbos_endpoint = "{gate.endpoint}"\n')
        self.write_conf(self.secret)

    def write_conf(self, secret: str) -> None:
        conf = self._lab.home / "bin/paddlecloud/conf/client.conf"
        conf.parent.mkdir(parents=True, exist_ok=True)
        conf.write_text(f"// mine\n[bos]:\nhost = bj.bcebos.com\nak: {self.key_id}\nsk: {secret}\n")
        conf.chmod(0o600)

    def submit(self, command: str = "sh run.sh", *more: str) -> str:
        words = ("--public_bos=0", f"--bos_url={self.url}", f"--start_cmd={command}", *more)
        return self._lab.out("submit_job", *words).split()[-1]

    def refused(self, url: str | None = None) -> str:
        words = ("--public_bos=0", f"--bos_url={url or self.url}", "--start_cmd=true")
        said = self._lab.type("submit_job", *words, code=None)
        assert said.returncode != 0
        assert "Traceback" not in said.stderr
        assert self.secret not in said.stdout + said.stderr
        return said.stderr

    def results(self, job: str) -> dict[str, bytes]:
        """What is in the bucket of a job's results."""

        def content(entry: FileEntry) -> bytes:
            return self.store.open(entry.path).read(0, entry.size)

        try:
            found = list(self.store.walk(f"output/{job}"))
        except NotFoundError:
            return {}
        return {entry.path: content(entry) for entry in found if entry.kind is Kind.FILE}

    def is_sent(self, job: str) -> bool:
        return self._lab.field(job, "queue_reason") == "" and self._lab.client().get(job).sending == ""


@pytest.fixture
def bos(s3_server: S3Server, lab: Lab) -> Iterator[Bos]:
    with Gate(s3_server.endpoint) as gate:
        yield Bos(s3_server, lab, gate)


def files_with(root: Path, text: str) -> list[str]:
    return [str(path) for path in root.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_files_come_from_the_bucket_and_results_go_to_it_and_the_key_is_nowhere(lab: Lab, bos: Bos) -> None:
    script = 'pwd; cat data/x; ls "$LOCAL_MOUNT_PATH"; echo new >> data/x; env; echo weights > $OUTPUT_PATH/w\n'
    script += 'if echo no > "$LOCAL_MOUNT_PATH/data/x"; then exit 1; fi\n'
    bos.store.write("run.sh", [script.encode()])
    bos.store.write("data/x", [b"from the bucket\n"])
    bos.store.write("data/空", [b""])
    bos.store.write("output/job-of-before/large", [b"earlier"])
    job = bos.submit()
    lab.ends(job, "success")
    wait_until(lambda: bos.is_sent(job), "results are in the bucket", seconds=30)

    log = lab.out("logs", job)
    assert "from the bucket" in log
    assert "output" not in log.partition("from the bucket")[2].split("\n")[1:3]
    found = bos.results(job)
    assert found[f"output/{job}/rank-0/w"] == b"weights\n"
    assert found[f"output/{job}/log/trainer-0.log"].decode() == log
    assert f"output/{job}/rank-0/w\t8" in lab.out("get_files", f"--job_id={job}")
    assert lab.field(job, "bos_url") == bos.url
    assert bos.store.open("data/x").read(0, 99) == b"from the bucket\n"
    assert list((lab.data / "buckets").iterdir()) == []

    shown = [lab.out("show", job), lab.out("query_job", f"--job_id={job}"), lab.out("audit"), log]
    for secret in (bos.secret, bos.key_id):
        assert files_with(lab.data, secret) == []
        assert secret not in "".join(shown)
    assert "storage_key.add" in shown[2]


def test_what_cannot_be_had_is_refused_in_words_and_nothing_is_recorded(lab: Lab, bos: Bos) -> None:
    assert "there are no files in" in bos.refused()
    bos.store.write("output/x", [b"results alone are no files"])
    assert "there are no files in" in bos.refused()
    bos.store.write("run.sh", [b"true"])
    assert "there is no bucket 'nobody' in region 'bj'" in bos.refused("nobody.bj.bcebos.com/d")
    assert "'..'" in bos.refused(f"{BUCKET}.bj.bcebos.com/../d")
    assert "<bucket>.<region>.bcebos.com" in bos.refused("elsewhere.example.com/d")
    bos.write_conf("wrong")
    said = bos.refused()
    assert "refuses the key that was sent for it" in said
    assert "[bos]" in said
    bos.write_conf(bos.secret)
    bos.gate.go_away()
    assert "does not answer" in bos.refused()
    assert lab.client().list() == []
    assert files_with(lab.data, bos.secret) == []


def test_the_key_of_another_user_is_not_found(lab: Lab, bos: Bos) -> None:
    bos.store.write("run.sh", [b"true"])
    lab.type("up")
    mine = lab.client()
    key = mine.storage.add_key(bos.url, bos.key_id, bos.secret)
    assert bos.secret not in repr(key)
    mine.accounts.add_user("eve")
    given = mine.accounts.create_key("eve")
    eve = Client(Profile(server=lab.server["url"], user="eve", ak=given.key.ak, sk=given.sk))
    spec = JobSpec(
        roles=(RoleSpec(name="trainer", count=1, command="true"),),
        public_bos=False,
        bos_url=bos.url,
        storage_key=key.id,
    )
    with pytest.raises(NotFoundError, match="no storage key"):
        eve.submit(spec=spec)
    assert eve.list() == []
    assert mine.submit(spec=spec).spec.storage_key == key.id


def test_a_server_that_is_killed_while_it_fetches_goes_on_where_it_was(lab: Lab, bos: Bos) -> None:
    for number in range(130):
        bos.store.write(f"part-{number:03}", [secrets.token_bytes(SMALL)])
    bos.store.write("run.sh", [b"cat part-* | wc -c"])
    lab.type("up")
    bos.gate.shut_after(int(SMALL * 115))
    job = bos.submit()
    wait_until(lambda: bos.gate.is_shut, "much of it is here")
    wait_until(lambda: "fetching" in lab.field(job, "queue_reason"), "it says so")
    assert " of 2.5 MiB from " in lab.field(job, "queue_reason")
    lab.kill_server()
    before = bos.gate.passed_bytes
    bos.gate.open()
    lab.type("up")
    lab.ends(job, "success")
    assert lab.out("logs", job).strip() == str(130 * SMALL)
    assert bos.gate.passed_bytes - before < 60 * SMALL


def test_a_server_that_is_killed_while_it_sends_sends_the_rest(lab: Lab, bos: Bos) -> None:
    script = f"for i in $(seq 100 139); do head -c {SMALL} /dev/zero > $OUTPUT_PATH/$i; done"
    bos.store.write("run.sh", [script.encode()])
    lab.type("up")
    job = bos.submit("sh run.sh; sleep 2")
    wait_until(lambda: lab.field(job, "job_status") == "running", "it runs")
    bos.gate.shut_after(SMALL * 20)
    lab.ends(job, "success")
    wait_until(lambda: bos.gate.is_shut, "some of it is sent")
    assert "being sent to" in lab.field(job, "queue_reason")
    assert f"output/{job}" in lab.out("show", job)
    lab.kill_server()
    bos.gate.open()
    lab.type("up")
    wait_until(lambda: bos.is_sent(job), "all is sent", seconds=60)
    found = bos.results(job)
    assert {found[f"output/{job}/rank-0/{number}"] for number in range(100, 140)} == {bytes(SMALL)}


def begun(lab: Lab, bos: Bos) -> str:
    """A job whose server was killed while it fetched a file, with the gate shut."""
    bos.store.write("large", [secrets.token_bytes(50 * SMALL)])
    lab.type("up")
    bos.gate.shut_after(20 * SMALL)
    job = bos.submit("wc -c large")
    wait_until(lambda: bos.gate.is_shut, "it is being fetched")
    lab.kill_server()
    return job


def test_a_bucket_that_is_away_delays_a_job_and_its_reason_says_so(lab: Lab, bos: Bos) -> None:
    job = begun(lab, bos)
    bos.gate.go_away()
    lab.type("up")
    wait_until(lambda: "does not answer" in lab.field(job, "queue_reason"), "it says so", seconds=30)
    assert "it is tried again" in lab.out("show", job)
    bos.gate.come_back()
    lab.ends(job, "success", seconds=60)


def test_files_that_can_never_be_had_fail_their_job_with_the_reason(lab: Lab, bos: Bos) -> None:
    job = begun(lab, bos)
    bos.store.remove("large")
    bos.gate.open()
    lab.type("up")
    lab.ends(job, "failed")
    assert f"there are no files in {bos.url}" in lab.field(job, "error_msg")
    wait_until(lambda: not list((lab.data / "buckets").iterdir()), "nothing is left here")


def test_a_job_that_is_killed_while_its_files_are_fetched_leaves_nothing(lab: Lab, bos: Bos) -> None:
    for number in range(130):
        bos.store.write(f"part-{number:03}", [bytes(SMALL)])
    lab.type("up")
    bos.gate.shut_after(20 * SMALL)
    job = bos.submit("true")
    wait_until(lambda: bos.gate.is_shut, "it is being fetched")
    lab.type("kill_job", f"--job_id={job}")
    lab.ends(job, "killed")
    before = bos.gate.passed_bytes
    bos.gate.open()
    wait_until(lambda: not list((lab.data / "buckets").iterdir()), "nothing is left here")
    wait_until(lambda: bos.is_sent(job), "nothing is to be sent")
    assert bos.gate.passed_bytes - before < 60 * SMALL
    assert bos.results(job) == {}
