"""Coming in, tokens, and what the server says of itself to those who have not come in yet.

The VS Code client logs in every ten seconds: a log-in gives a pass, which is kept nowhere, and a password that was
right a moment ago is not hashed again. The same client first sends an empty log-in each time, which counts for nothing.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from paddlecloud.model.accounts import LoginRequest
from paddlecloud.model.audit import Action
from paddlecloud.model.errors import RateError, UnauthenticatedError
from paddlecloud.model.user import Role, User
from paddlecloud.server.audit import Origin
from paddlecloud.server.caller import Called, FromWhere, read_from_stranger
from paddlecloud.server.dialects.openpai import refusals
from paddlecloud.server.dialects.openpai.addresses import ROOT
from paddlecloud.server.dialects.openpai.route import (
    LOGIN,
    Body,
    Caller,
    PaiRoute,
    Visitor,
    by_token,
    json_answer,
    media_type,
    said,
)
from paddlecloud.server.services import Services

router = APIRouter(prefix=ROOT, route_class=PaiRoute, default_response_class=Response, include_in_schema=False)

VERSION = "v1.8.1"  # of the API that is answered as
_NAME = re.compile(r"[\w.@+-]+")  # OpenPAI's, and what else our users may be called
_PASSWORD_LETTERS = 6
_LASTING = timedelta(days=7)
_SECONDS = range(60, 604_801)


@router.get("/api/v1")
@router.get("/api/v2")
@router.get("/api/v1/info")
@router.get("/api/v2/info")
async def info() -> Response:
    return json_answer({"name": "PAI RESTful API", "version": VERSION, "launcherType": "k8s", "authnMethod": "basic"})


@router.get("/api/v1/authn/info")
@router.get("/api/v2/authn/info")
async def how_to_log_in() -> Response:
    return json_answer({"authn_type": "basic", "loginURI": "/api/v1/authn/basic/login", "loginURIMethod": "post"})


@router.post("/api/v1/token")
@router.post("/api/v1/authn/basic/login")
@router.post("/api/v2/authn/basic/login")
async def log_in(request: Request, called: Called, origin: FromWhere) -> Response:
    asked, lasting = _asked(Body(await read_from_stranger(request), media_type(request)).fields())
    with called.hdfs_callers.logging_in(origin):
        user = await _identified(called, asked, origin)
        await run_in_threadpool(called.hdfs_callers.logged_in, user, origin)
    request.state.user = user.name
    return await run_in_threadpool(_let_in, called, user, lasting)


async def _identified(called: Services, asked: LoginRequest, origin: Origin) -> User:
    try:
        return await called.logins.check(asked, origin)
    except RateError:
        raise
    except UnauthenticatedError:
        # Whether it was the name or the password is for nobody to learn who does not know both.
        raise refusals.Refusal(400, "IncorrectPasswordError", "The user name or the password is incorrect.") from None


def _let_in(called: Services, user: User, lasting: timedelta) -> Response:
    token = called.passes.make(user.name, LOGIN, lasting=lasting, now=called.clock())
    admin = user.role is Role.ADMIN
    return json_answer({"user": user.name, "token": token, "admin": admin, "hasGitHubPAT": False})


def _asked(sent: dict[str, Any]) -> tuple[LoginRequest, timedelta]:
    name, password = sent.get("username"), sent.get("password")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise refusals.invalid('"username" is not allowed to be empty, and has letters, digits and . _ - @ + alone')
    if not isinstance(password, str) or len(password) < _PASSWORD_LETTERS:
        raise refusals.invalid(f'"password" length must be at least {_PASSWORD_LETTERS} characters long')
    return LoginRequest(name=name, password=password), _lasting(sent.get("expiration"))


def _lasting(asked: object) -> timedelta:
    """How long the token is good for, in seconds from a minute to a week; a form has it as a text."""
    if asked is None or asked == "":
        return _LASTING
    text = str(asked) if isinstance(asked, (str, int)) and not isinstance(asked, bool) else ""
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) not in _SECONDS:
        raise refusals.invalid(f'"expiration" must be a number of seconds from {_SECONDS[0]} to {_SECONDS[-1]}')
    return timedelta(seconds=int(text))


@router.delete("/api/v1/authn/basic/logout")
@router.delete("/api/v2/authn/basic/logout")
def log_out(caller: Caller, called: Called) -> Response:
    if caller.words is not None:
        called.passes.end(caller.words, called.clock())
    return said("Logout successfully")


@router.get("/api/v2/authn/oidc/{step}")
async def no_browser_login(step: str) -> Response:
    raise refusals.Refusal(404, "NoApiError", f"This server has no OIDC ({step}): log in with a name and a password.")


@router.get("/api/v1/token")
@router.get("/api/v2/tokens")
def list_tokens(caller: Caller, called: Called) -> Response:
    """The tokens of the caller's applications, and the one they came by: of other log-ins nothing is kept."""
    _need_lasting(caller)
    came_by = [caller.token] if caller.words is not None else []
    return json_answer({"tokens": [*came_by, *called.applications.secrets(caller.user.name)]})


@router.get("/api/v2/tokens/check")
def check_token(caller: Caller) -> Response:
    """What the caller's token says."""
    words, ends = caller.words, caller.identity.expires_at
    return json_answer(
        {
            "username": caller.user.name,
            "application": caller.application,
            "iat": None if words is None else int(words.iat),
            "exp": None if ends is None else int(ends.timestamp()),
        }
    )


@router.post("/api/v1/token/application")
@router.post("/api/v2/tokens/application")
def add_application(caller: Caller, called: Called, origin: FromWhere) -> Response:
    _need_lasting(caller)
    user = caller.user.name
    token, secret = called.applications.add(user, called.clock())
    detail = f"for an application, scope={token.scope.value}"
    called.audit.record(Action.TOKEN_CREATE, origin, user=user, target=token.id, detail=detail)
    return json_answer({"token": secret, "application": True})


def _need_lasting(caller: Visitor) -> None:
    """Tokens that last are for who has logged in: by a token that ends, or that may only read, nobody gets one."""
    _need_full_power(caller)
    if caller.words is None and caller.identity.expires_at is not None:
        raise refusals.forbidden("A token that expires cannot get one that does not: log in with your password.")


def _need_full_power(caller: Visitor) -> None:
    caller.need_person()
    caller.identity.need_full_power()


@router.delete("/api/v1/token/{token}")
@router.delete("/api/v2/tokens/{token}")
def revoke_token(token: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    _need_full_power(caller)
    meant = _meant(called, token)
    if meant.user.name != caller.user.name:
        raise refusals.forbidden(f"User {caller.user.name} is not allowed to revoke a token of another user.")
    if meant.words is not None:
        with called.audit.beside(Action.TOKEN_REVOKE, origin, user=caller.user.name, target=meant.words.jti):
            called.passes.end(meant.words, called.clock())
    else:
        token_id = called.authenticator.bearer(token)[1].id
        with called.audit.beside(Action.TOKEN_REVOKE, origin, user=caller.user.name, target=token_id):
            called.accounts.revoke_token(caller.identity, token_id)
    return said("revoke successfully")


def _meant(called: Services, token: str) -> Visitor:
    try:
        return by_token(called, token)
    except UnauthenticatedError:
        raise refusals.invalid("Token is invalid.") from None
