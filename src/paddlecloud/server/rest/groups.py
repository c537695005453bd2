"""Routes about groups of users."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response

from paddlecloud.model import wire
from paddlecloud.model.group import Group, GroupChange, GroupRequest
from paddlecloud.server.caller import Called, Caller, FromWhere, JsonBody, Sender, known_parameters
from paddlecloud.server.openapi import says
from paddlecloud.server.rest.answers import answer, done

router = APIRouter(
    prefix="/v1", tags=["groups"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)


@router.get("/groups", openapi_extra=says(list[Group]))
def list_groups(caller: Caller, called: Called) -> Response:
    """The groups that the caller is in; for an admin all."""
    return answer(called.groups.list_for(caller))


@router.post(
    "/groups", status_code=201, openapi_extra=says(Group, status=201, body=GroupRequest, errors=(404, 409, 413))
)
def add_group(caller: Sender, called: Called, body: JsonBody, origin: FromWhere) -> Response:
    """Make a group; for admins."""
    return answer(called.groups.add(caller, wire.decode(GroupRequest, body), origin), 201)


@router.get("/groups/{name}", openapi_extra=says(Group, errors=(404,)))
def get_group(name: str, caller: Caller, called: Called) -> Response:
    """One group; one that the caller is not in is for admins."""
    return answer(called.groups.get_for(caller, name))


@router.patch("/groups/{name}", openapi_extra=says(Group, body=GroupChange, errors=(404, 413)))
def change_group(name: str, caller: Sender, called: Called, body: JsonBody, origin: FromWhere) -> Response:
    """Change what is given of a group; for admins."""
    return answer(called.groups.change(caller, name, wire.decode(GroupChange, body), origin))


@router.delete("/groups/{name}", status_code=204, openapi_extra=says(status=204, errors=(404,)))
def remove_group(name: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    """Take a group away, with all that it gave its members; for admins."""
    called.groups.remove(caller, name, origin)
    return done()


@router.put("/groups/{name}/members/{user}", openapi_extra=says(Group, errors=(404,)))
def join_group(name: str, user: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    """Have a user be a member; for admins."""
    return answer(called.groups.join(caller, name, user, origin))


@router.delete("/groups/{name}/members/{user}", openapi_extra=says(Group, errors=(404,)))
def leave_group(name: str, user: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    """Have a user be a member no more; for admins."""
    return answer(called.groups.leave(caller, name, user, origin))
