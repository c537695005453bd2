"""Routes about the caller's own registry secrets."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response

from paddlecloud.model import wire
from paddlecloud.model.registry import Registry, RegistryRequest
from paddlecloud.server.caller import Called, Caller, FromWhere, JsonBody, Sender, known_parameters
from paddlecloud.server.openapi import says
from paddlecloud.server.rest.answers import answer, done

router = APIRouter(
    prefix="/v1", tags=["registries"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)


@router.get("/registries", openapi_extra=says(list[Registry]))
def list_registries(caller: Caller, called: Called) -> Response:
    """The caller's registry secrets, without their passwords."""
    caller.need_to_keep_secrets()
    return answer(called.registries.list(caller.user.name))


@router.post(
    "/registries", status_code=201, openapi_extra=says(Registry, status=201, body=RegistryRequest, errors=(409, 413))
)
def add_registry(caller: Sender, called: Called, body: JsonBody, origin: FromWhere) -> Response:
    """A registry secret for the caller's jobs; its password is kept encrypted and never told again."""
    caller.need_to_keep_secrets()
    asked = wire.decode(RegistryRequest, body)
    added = called.registries.add(
        caller.user.name,
        name=asked.name,
        server=asked.server,
        username=asked.username,
        password=asked.password,
        origin=origin,
    )
    return answer(added, 201)


@router.delete("/registries/{name}", status_code=204, openapi_extra=says(status=204, errors=(404,)))
def remove_registry(name: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    """Forget a registry secret of the caller's."""
    caller.need_to_keep_secrets()
    called.registries.remove(caller.user.name, name, origin=origin)
    return done()
