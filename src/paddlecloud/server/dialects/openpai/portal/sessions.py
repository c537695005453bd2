"""Coming in by a form, with a cookie that only these pages look at: a pass, which ends as every pass does.

Whatever changes something takes a mark that only a page of the same session has in it, and comes from this origin.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from paddlecloud.model.accounts import LoginRequest
from paddlecloud.model.errors import PaddleCloudError, RateError, UnauthenticatedError
from paddlecloud.server.caller import Called, FromWhere, read_body, read_from_stranger, services
from paddlecloud.server.dialects.openpai import refusals
from paddlecloud.server.dialects.openpai.forms import parse_form
from paddlecloud.server.dialects.openpai.portal import pages
from paddlecloud.server.dialects.openpai.portal.html import STYLE, document
from paddlecloud.server.dialects.openpai.refusals import Refusal
from paddlecloud.server.dialects.openpai.route import BODY_BYTES, Visitor, passed
from paddlecloud.server.passes import Words
from paddlecloud.server.services import Services

USE = "pages"
COOKIE = "paddlecloud_session"
_LASTING = timedelta(hours=12)
_MARK = "form"
_HOME = "/index.html"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    # With no-referrer a browser says `Origin: null` also for forms of these very pages, and those are refused.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class PageRoute(APIRoute):
    """What is refused is told by a page; who has not logged in is sent to do so, and comes back."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except UnauthenticatedError:
                query = f"?{request.url.query}" if request.method == "GET" and request.url.query else ""
                back = f"{request.url.path}{query}" if request.method == "GET" else _HOME
                return moved(f"/login.html?{urlencode({'next': back})}")
            except Refusal as refusal:
                return told(refusal)
            except PaddleCloudError as error:
                return told(refusals.of_error(error))

        return answer


router = APIRouter(route_class=PageRoute, default_response_class=Response, include_in_schema=False)


def shown(html: str, status: int = 200) -> Response:
    return Response(html, status, _HEADERS, "text/html")


def told(refusal: Refusal) -> Response:
    return shown(document("Not done", pages.message("This was not done", refusal.message)), refusal.status)


def moved(address: str) -> Response:
    return Response(status_code=303, headers={"Location": address, "Cache-Control": "no-store"})


class Session:
    """Who is logged in, and what their forms must bring back."""

    def __init__(self, called: Services, visitor: Visitor, words: Words) -> None:
        self.visitor = visitor
        self.words = words
        self.mark = called.passes.mark(words, _MARK)

    def page(self, title: str, *body: str, refresh: int | None = None, status: int = 200) -> Response:
        html = document(title, *body, user=self.visitor.user.name, leave=pages.leave(self.mark), refresh=refresh)
        return shown(html, status)

    def check(self, sent: dict[str, Any]) -> None:
        if sent.get("mark") != self.mark:
            raise refusals.forbidden(
                "This form is of another session, or too old: go back, load the page anew, try again."
            )


async def find_session(request: Request, services: Annotated[Services, Depends(services)]) -> Session:
    """Who looks at the page."""
    found = request.cookies.get(COOKIE, "")
    user, words = await run_in_threadpool(services.passes.check, found, USE, services.clock())
    request.state.user = user.name
    return Session(services, Visitor(identity=passed(user, words), words=words), words)


async def take_turn(
    session: Annotated[Session, Depends(find_session)], services: Annotated[Services, Depends(services)]
) -> AsyncIterator[Session]:
    async with services.shares.turns.take(session.visitor.user.name):
        yield session


async def read_form(
    request: Request,
    session: Annotated[Session, Depends(find_session)],
    services: Annotated[Services, Depends(services)],
) -> AsyncIterator[dict[str, Any]]:
    """A form of a page of this session, and then a turn."""
    refuse_foreign(request, services)
    user = session.visitor.user.name
    async with services.shares.bodies.take(user, BODY_BYTES):
        sent = parse_form(await read_body(request, BODY_BYTES))
        session.check(sent)
        async with services.shares.turns.take(user):
            yield sent


LoggedIn = Annotated[Session, Depends(take_turn, scope="function")]
Sender = Annotated[Session, Depends(find_session)]  # of a form, which has its turn when it has come
SentForm = Annotated[dict[str, Any], Depends(read_form, scope="function")]


def refuse_foreign(request: Request, called: Services) -> None:
    """Refuse what a page of another origin has a browser send. A proxy may name another host than the browser asked."""
    origin = request.headers.get("origin")
    own = {request.headers.get("host", ""), urlsplit(called.settings.server.url).netloc} - {""}
    foreign = origin is not None and urlsplit(origin).netloc not in own
    if foreign or request.headers.get("sec-fetch-site", "same-origin") == "cross-site":
        raise refusals.forbidden(
            f"This form comes from {(origin or 'a page of another server')[:200]}, not from a page of this server: "
            "open this server's page and try again. Behind a proxy, server.url names the address that browsers use."
        )


@router.get("/portal.css")
async def style() -> Response:
    return Response(STYLE, media_type="text/css", headers={"Cache-Control": "max-age=86400"})


@router.get("/login.html")
async def show_login(request: Request) -> Response:
    return shown(document("Log in", pages.login(_safe(request.query_params.get("next", "")))))


@router.post("/login.html")
async def log_in(request: Request, called: Called, origin: FromWhere) -> Response:
    refuse_foreign(request, called)
    sent = parse_form(await read_from_stranger(request))
    name, password, back = (_text(sent, field) for field in ("username", "password", "next"))
    try:
        if not name or not password:
            raise UnauthenticatedError("a name and a password are needed")
        user = await called.logins.check(LoginRequest(name=name, password=password), origin)
    except RateError as error:
        return shown(document("Log in", pages.login(_safe(back), error.message, name)), 429)
    except UnauthenticatedError:
        problem = "The user name or the password is wrong."
        return shown(document("Log in", pages.login(_safe(back), problem, name)), 400)
    now = called.clock()
    made = await run_in_threadpool(lambda: called.passes.make(user.name, USE, lasting=_LASTING, now=now))
    response = moved(_safe(back))
    _set_cookie(response, made, int(_LASTING.total_seconds()), secure=_encrypted(request, called))
    return response


@router.post("/logout.html")
def log_out(request: Request, session: Sender, called: Called, _: SentForm) -> Response:
    called.passes.end(session.words, called.clock())
    response = moved("/login.html")
    _set_cookie(response, "", 0, secure=_encrypted(request, called))
    return response


def _set_cookie(response: Response, value: str, seconds: int, *, secure: bool) -> None:
    response.set_cookie(COOKIE, value, max_age=seconds, path="/", secure=secure, httponly=True, samesite="lax")


def _encrypted(request: Request, called: Services) -> bool:
    return request.url.scheme == "https" or called.settings.server.url.startswith("https:")


def host_of(request: Request, called: Services) -> str:
    """The server as browsers and clients call it."""
    return urlsplit(called.settings.server.url).netloc or request.headers.get("host", "")


def _safe(back: str) -> str:
    """A page of ours to go back to; whatever else is named, the first one."""
    parts = urlsplit(back) if back.isprintable() and len(back) < 2000 else urlsplit("")
    # Of `///host/…` a browser makes another server's address, whatever urlsplit says.
    plain = not parts.scheme and not parts.netloc and "\\" not in back and not back.startswith("//")
    return back if plain and parts.path.startswith("/") and parts.path.endswith(".html") else _HOME


def _text(sent: dict[str, Any], name: str) -> str:
    value = sent.get(name, "")
    return value if isinstance(value, str) else ""
