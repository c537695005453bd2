"""A folder that the server let go between its upload and the submit is sent again, once, by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud import Client
from paddlecloud.model import wire
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import JobSpec, RoleSpec
from paddlecloud.model.service import ProblemDetail
from paddlecloud.model.transfers import UploadPlan
from paddlecloud.model.tree import Manifest
from paddlecloud.model.views import Acceptance
from tests.unit.cli.records import a_job
from tests.unit.sdk.answering import Answer, Asked, Web, web

SPEC = JobSpec(roles=(RoleSpec(name="trainer", count=1, command="sh run.sh"),))


class Server:
    """Has every folder, and refuses the first so many submits because of one field."""

    def __init__(self, refusals: int, field: str = "tree") -> None:
        self.refusals = refusals
        self.field = field

    def __call__(self, asked: Asked) -> Answer:
        if asked.path == "/v1/jobs/check":
            return Answer(body=wire.encode(Acceptance(spec=SPEC, upload_limit_bytes=2**30)))
        if asked.path == "/v1/trees":
            return Answer(body=wire.encode(UploadPlan(tree=wire.decode(Manifest, asked.body).id)))
        self.refusals -= 1
        if self.refusals >= 0:
            refusal = ProblemDetail(
                type="about:blank", title="", status=422, detail="not there", code="invalid", field=self.field
            )
            return Answer(status=422, body=wire.encode(refusal), media="application/problem+json")
        return Answer(status=201, body=wire.encode(a_job()))


def submitted(seen: Web, folder: Path) -> list[str]:
    with Client(seen.profile) as client:
        client.submit(folder, SPEC)
    return calls(seen)


def calls(seen: Web) -> list[str]:
    return [asked.path for asked in seen.asked if asked.path != "/v1/jobs/check"]


def test_a_folder_that_is_gone_at_the_submit_is_sent_again(tmp_path: Path) -> None:
    with web(Server(refusals=1)) as seen:
        assert submitted(seen, tmp_path) == ["/v1/trees", "/v1/jobs", "/v1/trees", "/v1/jobs"]
    first, second = (asked for asked in seen.asked if asked.path == "/v1/jobs")
    assert first.body == second.body
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]


def test_a_folder_is_not_sent_again_and_again(tmp_path: Path) -> None:
    with web(Server(refusals=2)) as seen, pytest.raises(InvalidError, match="not there"):
        submitted(seen, tmp_path)
    assert calls(seen) == ["/v1/trees", "/v1/jobs", "/v1/trees", "/v1/jobs"]


def test_what_is_wrong_otherwise_is_told_at_once(tmp_path: Path) -> None:
    with web(Server(refusals=1, field="roles")) as seen, pytest.raises(InvalidError):
        submitted(seen, tmp_path)
    assert calls(seen) == ["/v1/trees", "/v1/jobs"]


def test_without_a_folder_there_is_nothing_to_send_again() -> None:
    with web(Server(refusals=1)) as seen, Client(seen.profile) as client, pytest.raises(InvalidError):
        client.submit(spec=SPEC)
    assert calls(seen) == ["/v1/jobs"]
