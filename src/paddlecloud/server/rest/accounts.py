"""Routes about users and what they identify themselves with."""

from __future__ import annotations

import json

from fastapi import APIRouter, Depends, Request, Response
from starlette.concurrency import run_in_threadpool

from paddlecloud.model import wire
from paddlecloud.model.accounts import (
    KeyRequest,
    LoginRequest,
    NewKey,
    NewToken,
    QuotaUse,
    Registration,
    RegistrationRequest,
    TokenRequest,
    UserChange,
    UserRequest,
    WebHdfsAccess,
)
from paddlecloud.model.audit import Action
from paddlecloud.model.user import AccessKey, Account, Token, User
from paddlecloud.server.caller import (
    Admin,
    Called,
    Caller,
    FromWhere,
    JsonBody,
    Sender,
    known_parameters,
    read_from_stranger,
)
from paddlecloud.server.openapi import says
from paddlecloud.server.rest.answers import answer, done

router = APIRouter(
    prefix="/v1", tags=["accounts"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)


@router.post("/login", openapi_extra=says(NewToken, body=LoginRequest, security=(), errors=(401, 413, 429)))
async def login(request: Request, called: Called, origin: FromWhere) -> Response:
    """A token for a name and a password."""
    body = await read_from_stranger(request)
    return answer(await called.logins.login(wire.decode(LoginRequest, body), origin))


@router.post(
    "/registrations",
    status_code=202,
    openapi_extra=says(Registration, status=202, body=RegistrationRequest, security=(), errors=(403, 413, 429, 507)),
)
async def register(request: Request, called: Called, origin: FromWhere) -> Response:
    """Ask for an access key by mail. The answer does not tell whether there is such a user."""
    asked = wire.decode(RegistrationRequest, await read_from_stranger(request))
    return answer(await run_in_threadpool(called.registrations.ask, asked.email, origin), 202)


@router.get("/me", openapi_extra=says(User))
async def me(caller: Caller) -> Response:
    """Who the server takes the caller for."""
    return answer(caller.user)


@router.get("/users", openapi_extra=says(list[Account]))
def list_users(_: Admin, called: Called) -> Response:
    """All users, with the limits they were given; for admins."""
    return answer(called.accounts.users())


@router.post("/users", status_code=201, openapi_extra=says(Account, status=201, body=UserRequest, errors=(409, 413)))
def add_user(admin: Admin, called: Called, body: JsonBody, origin: FromWhere) -> Response:
    """A new user; for admins."""
    asked = wire.decode(UserRequest, body)
    user, detail = admin.user.name, f"role={asked.role.value}"
    with called.audit.beside(Action.USER_ADD, origin, user=user, target=asked.name, detail=detail):
        return answer(called.accounts.add(asked), 201)


@router.get("/users/{name}", openapi_extra=says(Account, errors=(404,)))
def get_user(name: str, caller: Caller, called: Called) -> Response:
    """One user; another than oneself is for admins."""
    return answer(called.accounts.get(caller, name))


@router.patch("/users/{name}", openapi_extra=says(Account, body=UserChange, errors=(404, 409, 413)))
def change_user(name: str, caller: Sender, called: Called, body: JsonBody, origin: FromWhere) -> Response:
    """Change a user: their own password anyone may, the rest is for admins."""
    change = wire.decode(UserChange, body)
    user, detail = caller.user.name, _told(change)
    with called.audit.beside(Action.USER_CHANGE, origin, user=user, target=name, detail=detail):
        return answer(called.accounts.change(caller, name, change))


@router.delete("/users/{name}/old-clients", status_code=204, openapi_extra=says(status=204, errors=(404,)))
def revoke_old_clients(name: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    """Make every token that a user's PaddlePaddle Cloud clients keep useless, at once; another user's for admins."""
    with called.audit.beside(Action.TOKEN_REVOKE_OLD, origin, user=caller.user.name, target=name):
        called.accounts.revoke_old_clients(caller, name)
    return done()


@router.get("/webhdfs", openapi_extra=says(WebHdfsAccess, errors=(403,)))
def show_webhdfs(caller: Caller, called: Called, origin: FromWhere) -> Response:
    """The address by which clients of HDFS reach the caller's files: it holds a secret, and is the same each time."""
    caller.need_full_power()
    found = called.hdfs_callers.access(caller.user)
    called.audit.record(Action.WEBHDFS_SHOW, origin, user=found.user, target=found.user)
    return answer(found)


@router.get("/keys", openapi_extra=says(list[AccessKey]))
def list_keys(caller: Caller, called: Called, user: str | None = None) -> Response:
    """Access keys, without their secrets; those of another `user` are for admins."""
    return answer(called.accounts.keys(caller, user))


@router.post("/keys", status_code=201, openapi_extra=says(NewKey, status=201, body=KeyRequest, errors=(404, 413)))
def add_key(caller: Sender, called: Called, body: JsonBody, origin: FromWhere) -> Response:
    """A new access key; one for another user is for admins."""
    made = called.accounts.add_key(caller, wire.decode(KeyRequest, body))
    user, key = caller.user.name, made.key
    called.audit.record(Action.KEY_CREATE, origin, user=user, target=key.ak, detail=f"of {key.user}")
    return answer(made, 201)


@router.delete("/keys/{ak}", status_code=204, openapi_extra=says(status=204, errors=(404,)))
def revoke_key(ak: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    """Make an access key useless, at once."""
    with called.audit.beside(Action.KEY_REVOKE, origin, user=caller.user.name, target=ak):
        called.accounts.revoke_key(caller, ak)
    return done()


@router.get("/tokens", openapi_extra=says(list[Token]))
def list_tokens(caller: Caller, called: Called) -> Response:
    """The caller's tokens, without their secrets."""
    return answer(called.accounts.tokens(caller))


@router.post("/tokens", status_code=201, openapi_extra=says(NewToken, status=201, body=TokenRequest, errors=(413,)))
def add_token(caller: Sender, called: Called, body: JsonBody, origin: FromWhere) -> Response:
    """A new token, no stronger than what the caller came with."""
    made = called.accounts.add_token(caller, wire.decode(TokenRequest, body))
    user, token = caller.user.name, made.token
    detail = f"{token.name!r}, scope={token.scope.value}"
    called.audit.record(Action.TOKEN_CREATE, origin, user=user, target=token.id, detail=detail)
    return answer(made, 201)


@router.delete("/tokens/{token_id}", status_code=204, openapi_extra=says(status=204, errors=(404,)))
def revoke_token(token_id: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    """Make a token useless, at once."""
    with called.audit.beside(Action.TOKEN_REVOKE, origin, user=caller.user.name, target=token_id):
        called.accounts.revoke_token(caller, token_id)
    return done()


@router.get("/quota", openapi_extra=says(QuotaUse, errors=(404,)))
def quota(caller: Caller, called: Called, user: str | None = None) -> Response:
    """What the caller may have and has on each cluster, and on all together; of another `user` for admins."""
    return answer(called.accounts.quota(caller, user))


def _told(change: UserChange) -> str:
    """What is changed, for the record: of a password only that it is."""
    values = {name: value for name, value in wire.builtins(change).items() if value is not None}
    return ", ".join(name if name == "password" else f"{name}={json.dumps(value)}" for name, value in values.items())
