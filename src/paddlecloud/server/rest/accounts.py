"""Routes about users and what they identify themselves with."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Depends, Request, Response

from paddlecloud.model import wire
from paddlecloud.model.user import AccessKey, Token, User
from paddlecloud.model.views import (
    KeyRequest,
    LoginRequest,
    NewKey,
    NewToken,
    QuotaUse,
    TokenRequest,
    UserChange,
    UserRequest,
)
from paddlecloud.server.caller import JSON_BYTES, Admin, Called, Caller, JsonBody, Sender, known_parameters, read_body
from paddlecloud.server.openapi import says
from paddlecloud.server.rest.answers import answer, done

router = APIRouter(
    prefix="/v1", tags=["accounts"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)


@router.post("/login", openapi_extra=says(NewToken, body=LoginRequest, public=True, errors=(401, 413)))
async def login(request: Request, called: Called) -> Response:
    """A token for a name and a password."""
    body = await read_body(request, JSON_BYTES)
    asked = wire.decode(LoginRequest, body)
    return answer(await to_thread.run_sync(called.accounts.login, asked, limiter=called.logins))


@router.get("/me", openapi_extra=says(User))
async def me(caller: Caller) -> Response:
    """Who the server takes the caller for."""
    return answer(caller.user)


@router.get("/users", openapi_extra=says(list[User]))
def list_users(_: Admin, called: Called) -> Response:
    """All users; for admins."""
    return answer(called.accounts.users())


@router.post("/users", status_code=201, openapi_extra=says(User, status=201, body=UserRequest, errors=(409, 413)))
def add_user(_: Admin, called: Called, body: JsonBody) -> Response:
    """A new user; for admins."""
    return answer(called.accounts.add(wire.decode(UserRequest, body)), 201)


@router.get("/users/{name}", openapi_extra=says(User, errors=(404,)))
def get_user(name: str, caller: Caller, called: Called) -> Response:
    """One user; another than oneself is for admins."""
    return answer(called.accounts.get(caller, name))


@router.patch("/users/{name}", openapi_extra=says(User, body=UserChange, errors=(404, 409, 413)))
def change_user(name: str, caller: Sender, called: Called, body: JsonBody) -> Response:
    """Change a user: their own password anyone may, the rest is for admins."""
    return answer(called.accounts.change(caller, name, wire.decode(UserChange, body)))


@router.get("/keys", openapi_extra=says(list[AccessKey]))
def list_keys(caller: Caller, called: Called, user: str | None = None) -> Response:
    """Access keys, without their secrets; those of another `user` are for admins."""
    return answer(called.accounts.keys(caller, user))


@router.post("/keys", status_code=201, openapi_extra=says(NewKey, status=201, body=KeyRequest, errors=(404, 413)))
def add_key(caller: Sender, called: Called, body: JsonBody) -> Response:
    """A new access key; one for another user is for admins."""
    return answer(called.accounts.add_key(caller, wire.decode(KeyRequest, body)), 201)


@router.delete("/keys/{ak}", status_code=204, openapi_extra=says(status=204, errors=(404,)))
def revoke_key(ak: str, caller: Caller, called: Called) -> Response:
    """Make an access key useless, at once."""
    called.accounts.revoke_key(caller, ak)
    return done()


@router.get("/tokens", openapi_extra=says(list[Token]))
def list_tokens(caller: Caller, called: Called) -> Response:
    """The caller's tokens, without their secrets."""
    return answer(called.accounts.tokens(caller))


@router.post("/tokens", status_code=201, openapi_extra=says(NewToken, status=201, body=TokenRequest, errors=(413,)))
def add_token(caller: Sender, called: Called, body: JsonBody) -> Response:
    """A new token, no stronger than what the caller came with."""
    return answer(called.accounts.add_token(caller, wire.decode(TokenRequest, body)), 201)


@router.delete("/tokens/{token_id}", status_code=204, openapi_extra=says(status=204, errors=(404,)))
def revoke_token(token_id: str, caller: Caller, called: Called) -> Response:
    """Make a token useless, at once."""
    called.accounts.revoke_token(caller, token_id)
    return done()


@router.get("/quota", openapi_extra=says(QuotaUse, errors=(404,)))
def quota(caller: Caller, called: Called, user: str | None = None) -> Response:
    """What the caller may have and has; of another `user` for admins."""
    return answer(called.accounts.quota(caller, user))
