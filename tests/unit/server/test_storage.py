"""Keys to buckets of one's own over HTTP: taken, never told again, nobody else's, and good for one folder alone."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.model.user import Scope
from tests.s3 import BUCKET, S3Server
from tests.unit.server.running import Running, a_spec, running
from tests.waiting import wait_until

LIMIT = 100_000


class Own:
    def __init__(self, s3: S3Server, server: Running) -> None:
        folder = secrets.token_hex(6)
        self.s3, self.server = s3, server
        self.store = s3.store(folder)
        self.url = f"{BUCKET}.bj.bcebos.com/{folder}"

    def asked(self, **changes: object) -> dict[str, object]:
        return {"url": self.url, "key_id": self.s3.key_id, "secret": self.s3.secret, **changes}

    def key(self, **changes: object) -> str:
        answer = self.server.ask("POST", "/v1/storage_keys", self.asked(**changes))
        assert answer.status == 201, answer.data
        return str(answer.json()["id"])

    def spec(self, key: str, **changes: Any) -> dict[str, Any]:
        own: dict[str, Any] = {"public_bos": False, "bos_url": self.url, "storage_key": key}
        return a_spec(**(own | changes))


@pytest.fixture(scope="module")
def near_s3(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    plain = {
        "clusters": {"local": {"policy": "open"}},
        "pfs": {"bos_endpoint": s3_server.endpoint},
        "jobs": {"upload_limit": LIMIT},
    }
    with running(tmp_path_factory.mktemp("near") / "data", plain) as made:
        yield made


@pytest.fixture
def own(s3_server: S3Server, near_s3: Running) -> Own:
    return Own(s3_server, near_s3)


def test_a_key_is_answered_by_its_id_alone_and_is_on_record_without_itself(own: Own) -> None:
    answer = own.server.ask("POST", "/v1/storage_keys", own.asked())
    assert set(answer.json()) == {"id", "url", "created_at"}
    assert answer.json()["url"] == own.url
    entry = own.server.get("/v1/audit?action=storage_key&limit=1", own.server.root)["items"][0]
    assert (entry["user"], entry["target"], entry["detail"]) == ("ann", answer.json()["id"], f"for {own.url}")
    for secret in (own.s3.secret, own.s3.key_id):
        assert secret not in answer.data.decode() + str(entry)
    for method in ("GET", "DELETE"):
        assert own.server.ask(method, f"/v1/storage_keys/{answer.json()['id']}").status in (404, 405)
    assert own.server.ask("GET", "/v1/storage_keys").status == 405


@pytest.mark.parametrize(
    "changed", [{"url": "elsewhere"}, {"key_id": ""}, {"secret": "a b"}, {"secret": 5}, {"secrets": "s3cret"}]
)
def test_a_wrong_request_is_refused_without_the_key_in_the_answer(own: Own, changed: dict[str, object]) -> None:
    answer = own.server.ask("POST", "/v1/storage_keys", own.asked(**changed))
    assert answer.status == 422
    assert own.s3.secret not in answer.data.decode()
    assert own.s3.key_id not in answer.data.decode()


def test_who_may_only_read_hands_no_key_over(own: Own) -> None:
    reader = own.server.token("ann", Scope.READ)
    assert own.server.ask("POST", "/v1/storage_keys", own.asked(), token=reader).status == 403


def test_a_key_is_for_its_user_and_its_folder(own: Own) -> None:
    own.store.write("run.sh", [b"true"])
    key = own.key()
    for token in (own.server.bob, own.server.root):
        assert own.server.ask("POST", "/v1/jobs", own.spec(key), token=token).status == 404
    other = own.server.ask("POST", "/v1/jobs", own.spec(key, bos_url=f"{own.url}/deeper"))
    assert (other.status, other.json()["field"]) == (422, "storage_key")
    assert own.server.ask("POST", "/v1/jobs/check", own.spec(key)).status == 200
    assert own.server.ask("POST", "/v1/jobs", own.spec(key)).status == 201


def test_a_repeated_submit_with_a_new_key_is_the_same_job(own: Own) -> None:
    own.store.write("run.sh", [b"true"])
    headers = {"Idempotency-Key": secrets.token_hex(8)}
    first, again = (own.server.ask("POST", "/v1/jobs", own.spec(own.key()), headers=headers) for _ in range(2))
    assert (first.status, again.status) == (201, 201)
    assert first.json()["id"] == again.json()["id"]


def test_files_are_at_hand_while_it_runs_counted_and_gone_with_it(own: Own) -> None:
    own.store.write("data/x", [bytes(50_000)])
    job = own.server.run(**own.spec(own.key()))
    tree = own.server.backends["local"].launches[-1].tree
    assert tree is not None
    assert (tree / "data" / "x").stat().st_size == 50_000
    shares = {one["kind"]: one["used"] for one in own.server.get("/v1/space?now=true")["shares"]}
    assert shares["uploads"]["size_bytes"] >= 50_000
    own.server.say(job, "trainer-0", b"said")
    own.server.finish(job)
    own.server.reaches(job, "success")
    wait_until(lambda: own.server.get(f"/v1/jobs/{job}")["sending"] == "", "all is sent")
    assert own.store.open(f"output/{job}/log/trainer-0.log").read(0, 9) == b"said"
    wait_until(lambda: not tree.parent.exists(), "the files are gone")


def test_more_than_a_job_may_bring_fails_it(own: Own) -> None:
    own.store.write("large", [bytes(LIMIT + 1)])
    job = own.server.submit(**own.spec(own.key()))
    own.server.reaches(job, "failed")
    assert "97.7 KiB (jobs.upload_limit)" in own.server.get(f"/v1/jobs/{job}")["job"]["error"]


def test_a_key_is_forgotten_when_results_are_sent(own: Own) -> None:
    own.store.write("run.sh", [b"true"])
    key = own.key()
    job = own.server.run(**own.spec(key))
    own.server.finish(job)
    wait_until(lambda: own.server.ask("POST", "/v1/jobs/check", own.spec(key)).status == 404, "the key is forgotten")
