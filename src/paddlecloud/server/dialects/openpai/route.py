"""What all routes of this dialect share: who calls and by what, bodies within limits, errors as its clients read them.

Whoever comes with a token of an application, which never expires, may use jobs and files, and nothing that is about
users and tokens.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from paddlecloud.model import wire
from paddlecloud.model.errors import InvalidError, PaddleCloudError, UnauthenticatedError
from paddlecloud.model.user import Role, Scope, User
from paddlecloud.server.auth import Identity
from paddlecloud.server.caller import check_hash, read_body, services
from paddlecloud.server.caller import identify as identify_ours
from paddlecloud.server.dialects.openpai import refusals
from paddlecloud.server.dialects.openpai.forms import parse_form
from paddlecloud.server.dialects.openpai.refusals import Refusal
from paddlecloud.server.passes import Words
from paddlecloud.server.services import Services
from paddlecloud.store.applications import is_application
from paddlecloud.store.users import TOKEN_PREFIX

LOGIN = "login"  # the use of the passes that log-ins give
BODY_BYTES = 1024 * 1024

_LIST_BYTES = 32 * 1024 * 1024  # about what 50,000 jobs are in an answer
_FORM = "application/x-www-form-urlencoded"


class PaiRoute(APIRoute):
    """Errors as `{"code": …, "message": …}` beside the status."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except Refusal as refusal:
                return refused(refusal)
            except PaddleCloudError as error:
                return refused(refusals.of_error(error))

        return answer


def refused(refusal: Refusal) -> Response:
    later = {} if refusal.later_seconds is None else {"Retry-After": str(refusal.later_seconds)}
    return json_answer({"code": refusal.code, "message": refusal.message}, refusal.status, later)


def json_answer(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(wire.encode(value), status, headers, "application/json")


def said(message: str, status: int = 200) -> Response:
    return json_answer({"message": message}, status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Who calls. `application`: by a token of an application; `words`: what their pass says, if they came by one."""

    identity: Identity
    application: bool = False
    words: Words | None = None
    token: str = ""

    @property
    def user(self) -> User:
        return self.identity.user

    @property
    def admin(self) -> bool:
        """Whether they may see and touch what is not theirs; an application acts for its user alone."""
        return self.identity.admin and not self.application

    def need_person(self) -> None:
        if self.application:
            raise refusals.application()

    def need_admin(self) -> None:
        self.need_person()
        if not self.admin:
            raise refusals.not_admin()


async def identify(request: Request, services: Annotated[Services, Depends(services)]) -> Visitor:
    """Who calls, by what OpenPAI's clients send, or by what ours does."""
    authorization = request.headers.get("authorization", "").strip()
    scheme, _, rest = authorization.partition(" ")
    if not authorization:
        raise refusals.guest()
    if scheme.lower() in ("bearer", "basic"):
        visitor = await run_in_threadpool(_known, services, scheme.lower(), rest.strip())
        request.state.user = visitor.user.name
    else:
        visitor = Visitor(identity=await identify_ours(request, services))
    if request.method not in ("GET", "HEAD"):
        visitor.identity.need(Scope.WRITE)
    return visitor


def _known(services: Services, scheme: str, sent: str) -> Visitor:
    name, token = ("", sent) if scheme == "bearer" else _basic(sent)
    try:
        visitor = by_token(services, token)
    except UnauthenticatedError:
        raise refusals.bad_token() from None
    if scheme == "basic" and (not visitor.application or visitor.user.name != name):
        raise refusals.bad_token()
    return visitor


def by_token(services: Services, token: str) -> Visitor:
    """Whose token this is; UnauthenticatedError."""
    now = services.clock()
    if token.startswith(TOKEN_PREFIX):
        identity, record = services.authenticator.bearer(token)
        return Visitor(identity=identity, application=is_application(record), token=token)
    user, words = services.passes.check(token, LOGIN, now)
    return Visitor(identity=passed(user, words), words=words, token=token)


def passed(user: User, words: Words) -> Identity:
    """What a pass of a log-in lets its bearer do: all that its user may."""
    scope = Scope.ADMIN if user.role is Role.ADMIN else Scope.WRITE
    return Identity(user=user, scope=scope, expires_at=words.expires_at)


def _basic(encoded: str) -> tuple[str, str]:
    try:
        name, _, token = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise refusals.bad_token() from None
    return name, token


async def identify_if_any(request: Request, services: Annotated[Services, Depends(services)]) -> Visitor | None:
    """Who calls where nobody has to say who they are; None: a guest. Whoever says it wrongly is refused as ever."""
    return await identify(request, services) if request.headers.get("authorization", "").strip() else None


async def take_turn(
    visitor: Annotated[Visitor, Depends(identify)], services: Annotated[Services, Depends(services)]
) -> AsyncIterator[Visitor]:
    async with services.shares.turns.take(visitor.user.name):
        yield visitor


@dataclass(frozen=True, slots=True)
class Body:
    """What was sent, and as what."""

    raw: bytes
    media_type: str

    @property
    def form(self) -> bool:
        return self.media_type == _FORM

    def text(self) -> str:
        try:
            return self.raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidError("the body is not UTF-8", field="body") from None

    def fields(self) -> dict[str, Any]:
        """A form or a JSON object; nothing at all is an empty one."""
        if self.form:
            return parse_form(self.raw)
        try:
            found = json.loads(self.raw.strip() or b"{}")
        except (ValueError, RecursionError):
            raise InvalidError("the body is neither JSON nor a form: send one of the two", field="body") from None
        if not isinstance(found, dict):
            raise InvalidError("the body is not a JSON object", field="body")
        return found


async def read_sent(
    request: Request,
    visitor: Annotated[Visitor, Depends(identify)],
    services: Annotated[Services, Depends(services)],
) -> AsyncIterator[Body]:
    user = visitor.user.name
    async with services.shares.bodies.take(user, BODY_BYTES):
        body = await read_body(request, BODY_BYTES)
        async with services.shares.turns.take(user):
            await check_hash(body, visitor.identity)
            yield Body(body, media_type(request))


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def hold_list(
    visitor: Annotated[Visitor, Depends(identify)], services: Annotated[Services, Depends(services)]
) -> AsyncIterator[None]:
    """Memory of the caller's own for a long list, until its last byte is sent: they may be slow to read it."""
    async with services.shares.bodies.take(visitor.user.name, _LIST_BYTES):
        yield


async def take_guests_turn(
    visitor: Annotated[Visitor | None, Depends(identify_if_any)], services: Annotated[Services, Depends(services)]
) -> AsyncIterator[Visitor | None]:
    """Whoever calls, in their turn; all guests together have the turns of one."""
    async with services.shares.turns.take("" if visitor is None else visitor.user.name):
        yield visitor


async def hold_guest(
    visitor: Annotated[Visitor | None, Depends(identify_if_any)], services: Annotated[Services, Depends(services)]
) -> AsyncIterator[None]:
    """The same where guests may ask: all of them together have the share of one."""
    async with services.shares.bodies.take("" if visitor is None else visitor.user.name, _LIST_BYTES):
        yield


def text_of(sent: dict[str, Any], name: str, default: str | None = None) -> str:
    """A field that is a text; without a default it must be there."""
    found = sent.get(name, default)
    if found is None:
        raise refusals.invalid(f'"{name}" is required')
    if not isinstance(found, str):
        raise refusals.invalid(f'"{name}" must be a string')
    return found


Caller = Annotated[Visitor, Depends(take_turn, scope="function")]
Sender = Annotated[Visitor, Depends(identify)]  # of a body, which has its turn when it has come
Guest = Annotated[Visitor | None, Depends(take_guests_turn, scope="function")]
Sent = Annotated[Body, Depends(read_sent, scope="function")]
# To stand before a Caller: whoever has a turn must not wait for memory.
HeldList = Annotated[None, Depends(hold_list, scope="request")]
