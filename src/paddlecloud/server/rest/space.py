"""Routes about the space that all is kept in."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from paddlecloud.model import wire
from paddlecloud.model.space import Collection, CollectionRequest, Space
from paddlecloud.server.caller import Admin, Called, Caller, FromWhere, JsonBody, known_parameters
from paddlecloud.server.openapi import says
from paddlecloud.server.rest.answers import answer

router = APIRouter(
    prefix="/v1", tags=["server"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)

_COLLECT_SECONDS = 20.0


@router.get("/space", openapi_extra=says(Space, errors=(503,)))
def space(
    caller: Caller,
    called: Called,
    users: Annotated[bool, Query(description="Also by user, the largest first; for admins.")] = False,
    again: Annotated[bool, Query(alias="now", description="Count anew, unless that takes too long.")] = False,
) -> Response:
    """What uses the space: what is the caller's own or, for admins, all of it."""
    if users:
        caller.need_admin()
    return answer(called.space.tell(None if caller.admin else caller.user.name, users=users, again=again))


@router.post("/space/collect", openapi_extra=says(Collection, body=CollectionRequest, errors=(413,)))
def collect(caller: Admin, called: Called, origin: FromWhere, body: JsonBody) -> Response:
    """Take away now what has been kept long enough; for admins. With `more` in the answer there was not time enough."""
    asked = wire.decode(CollectionRequest, body)
    collected = called.retention.run(
        called.clock(), dry_run=asked.dry_run, seconds=_COLLECT_SECONDS, user=caller.user.name, origin=origin
    )
    return answer(collected)
