"""What is done to jobs by either version of OpenPAI's API: submitted, stopped, tagged, shown as they were written."""

from __future__ import annotations

from collections.abc import Callable

import yaml
from fastapi import Response

from paddlecloud import yamltext
from paddlecloud.model.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError, QuotaError
from paddlecloud.model.openpai.submitted import OpenPaiJob
from paddlecloud.server.audit import Origin
from paddlecloud.server.dialects.openpai import refusals
from paddlecloud.server.dialects.openpai.found import Found
from paddlecloud.server.dialects.openpai.refusals import Refusal
from paddlecloud.server.dialects.openpai.route import Body, Visitor, json_answer, text_of
from paddlecloud.server.openpai import STORAGES
from paddlecloud.server.services import Services

YAML = "text/yaml; charset=utf-8"
_VIRTUAL_CLUSTER = "virtualCluster"
_WARNING_LETTERS = 2000


def submitted(submit: Callable[[], OpenPaiJob], user: str, *, code: str) -> OpenPaiJob:
    """What is submitted; `code` is for what is wrong with the job itself."""
    try:
        return submit()
    except InvalidError as error:
        if error.field == _VIRTUAL_CLUSTER:
            raise Refusal(404 if code == _V1 else 400, "NoVirtualClusterError", error.message) from None
        if error.field == STORAGES:
            raise Refusal(404, "NoStorageError", error.message) from None
        raise Refusal(400, code, error.message) from None
    except QuotaError:
        raise
    except ForbiddenError as error:
        if error.field == "queue":
            message = f"User {user} is not allowed to do operation in this virtual cluster: {error.message}"
            raise refusals.forbidden(message) from None
        raise
    except ConflictError as error:
        raise Refusal(409, "ConflictJobError", error.message) from None


_V1 = "InvalidParametersError"


def warned(made: OpenPaiJob) -> dict[str, str]:
    """What the job asks for and does not get, as OpenPAI told of fields that do nothing."""
    text = "; ".join(made.warnings)[:_WARNING_LETTERS]
    # A warning may name what the job has, and a header is one line.
    line = "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text)
    return {"X-Warning": line} if line else {}


def execute(job: Found, caller: Visitor, called: Services, sent: Body, origin: Origin) -> None:
    """STOP ends a job. START is what every job is told when it is submitted: there is no way back from an end."""
    value = text_of(sent.fields(), "value")
    if value not in ("START", "STOP"):
        raise refusals.invalid('"value" must be one of [START, STOP]')
    if value == "STOP":
        stop(called, caller, job.id, origin)
    elif job.detail.job.state.final:
        raise refusals.invalid(f"Job {job.frame} has ended and cannot be started again: submit it anew.")


def stop(called: Services, caller: Visitor, job_id: str, origin: Origin) -> None:
    """Have a job end; one that has ended is as it was asked for."""
    try:
        called.jobs.kill(caller.user, job_id, origin=origin, everyone=caller.admin)
    except ConflictError:
        if not called.jobs.get(caller.user, job_id, everyone=caller.admin).state.final:
            raise


def written(called: Services, job: Found, *, as_json: bool) -> Response:
    """What a job was written as, without its secrets."""
    try:
        config = called.openpai.config(job.detail.job)
    except NotFoundError:
        raise refusals.no_config(job.frame) from None
    if as_json:
        return json_answer(yamltext.read(config.text))
    if config.protocol == 1:
        text = yaml.safe_dump(yamltext.read(config.text), sort_keys=False, allow_unicode=True)
        return Response(text, media_type=YAML)
    return Response(config.text, media_type=YAML)
