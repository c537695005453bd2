"""The route of the audit record."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from paddlecloud.model.audit import AuditPage
from paddlecloud.server.caller import Admin, Called, known_parameters
from paddlecloud.server.openapi import says
from paddlecloud.server.rest.answers import answer
from paddlecloud.server.rest.moments import Since, moment

router = APIRouter(
    prefix="/v1", tags=["accounts"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)


@router.get("/audit", openapi_extra=says(AuditPage))
def audit(
    _: Admin,
    called: Called,
    user: Annotated[str | None, Query(description="Done by this user.")] = None,
    action: Annotated[str | None, Query(description="Of this kind: login, key.revoke, key (all of key.…).")] = None,
    since: Since = None,
    cursor: Annotated[str | None, Query(description="The next_cursor of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Who did what, when, from where, newest first; for admins."""
    begin = moment(since, called.clock())
    return answer(called.audit.list(user=user, action=action, since=begin, cursor=cursor, limit=limit))
