"""Routes about shared folders; what is in them is reached as all of the PFS."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from paddlecloud.model import wire
from paddlecloud.model.shared import SharedFolder, SharedRequest
from paddlecloud.server.caller import Called, Caller, FromWhere, JsonBody, Sender, known_parameters
from paddlecloud.server.openapi import says
from paddlecloud.server.rest.answers import answer, done

router = APIRouter(
    prefix="/v1", tags=["shared"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)


@router.get("/shared", openapi_extra=says(list[SharedFolder]))
def list_shared(caller: Caller, called: Called) -> Response:
    """The folders that are shared with the caller; for an admin all."""
    return answer(called.shared.list_for(caller))


@router.post(
    "/shared", status_code=201, openapi_extra=says(SharedFolder, status=201, body=SharedRequest, errors=(404, 409, 413))
)
def add_shared(caller: Sender, called: Called, body: JsonBody, origin: FromWhere) -> Response:
    """Make a folder that is shared with groups; for admins."""
    return answer(called.shared.add(caller, wire.decode(SharedRequest, body), origin), 201)


@router.put("/shared/{datacenter}/{name}/groups/{group}", openapi_extra=says(SharedFolder, errors=(404,)))
def grant_shared(
    datacenter: str,
    name: str,
    group: str,
    caller: Caller,
    called: Called,
    origin: FromWhere,
    write: Annotated[bool, Query(description="To write too; else to read.")] = False,
) -> Response:
    """Let the members of a group read, or write too; for admins."""
    return answer(called.shared.grant(caller, datacenter, name, group, origin, writable=write))


@router.delete("/shared/{datacenter}/{name}/groups/{group}", openapi_extra=says(SharedFolder, errors=(404,)))
def revoke_shared(
    datacenter: str, name: str, group: str, caller: Caller, called: Called, origin: FromWhere
) -> Response:
    """Have the members of a group see it no more; for admins."""
    return answer(called.shared.revoke(caller, datacenter, name, group, origin))


@router.delete("/shared/{datacenter}/{name}", status_code=204, openapi_extra=says(status=204, errors=(404, 409)))
def remove_shared(
    datacenter: str,
    name: str,
    caller: Caller,
    called: Called,
    origin: FromWhere,
    recursive: Annotated[bool, Query(description="With all that is in it.")] = False,
) -> Response:
    """Take a shared folder away; for admins."""
    called.shared.remove(caller, datacenter, name, origin, recursive=recursive)
    return done()
