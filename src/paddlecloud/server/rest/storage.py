"""The route by which users hand over the keys to buckets of their own."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response

from paddlecloud.model import wire
from paddlecloud.model.bos import StorageKey, StorageKeyRequest
from paddlecloud.server.caller import Called, FromWhere, JsonBody, Sender, known_parameters
from paddlecloud.server.openapi import says
from paddlecloud.server.rest.answers import answer

router = APIRouter(
    prefix="/v1", tags=["storage"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)


@router.post(
    "/storage_keys",
    status_code=201,
    openapi_extra=says(StorageKey, status=201, body=StorageKeyRequest, errors=(409, 413)),
)
def add_storage_key(caller: Sender, called: Called, body: JsonBody, origin: FromWhere) -> Response:
    """A key to a bucket of the caller's own, for a job that names its id; it is kept encrypted and never told again."""
    caller.need_to_keep_secrets()
    asked = wire.decode(StorageKeyRequest, body)
    return answer(called.buckets.add_key(caller.user.name, asked, origin=origin), 201)
