"""The addresses of WebHDFS, who calls there, and what is called: an operation by the method and the parameter `op`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from paddlecloud.model import hdfspath, pfs
from paddlecloud.model.errors import InvalidError, PaddleCloudError
from paddlecloud.model.hdfspath import Spot, View
from paddlecloud.server.any_path import ANY_PATH
from paddlecloud.server.auth import Identity
from paddlecloud.server.caller import Called, is_passed_on
from paddlecloud.server.dialects.webhdfs import changing, errors, reading, writing
from paddlecloud.server.dialects.webhdfs.call import Call
from paddlecloud.server.dialects.webhdfs.errors import HdfsError
from paddlecloud.server.dialects.webhdfs.query import Query
from paddlecloud.server.hdfs_callers import Claim
from paddlecloud.server.pages import PAGE
from paddlecloud.server.services import Services

log = logging.getLogger(__name__)

Operation = Callable[[Call], Awaitable[Response]]

OPERATIONS: Mapping[str, Mapping[str, Operation]] = {
    "GET": {
        "OPEN": reading.open_file,
        "GETFILESTATUS": reading.get_status,
        "LISTSTATUS": reading.list_status,
        "GETCONTENTSUMMARY": reading.get_summary,
        "GETFILECHECKSUM": reading.get_checksum,
        "GETHOMEDIRECTORY": reading.get_home,
        "GETTRASHROOT": reading.get_trash,
        "GETACLSTATUS": reading.get_acl,
        "CHECKACCESS": reading.check_access,
    },
    "PUT": {
        "CREATE": writing.create,
        "MKDIRS": changing.make_folders,
        "RENAME": changing.rename,
        "SETPERMISSION": changing.set_permission,
        "SETOWNER": changing.set_owner,
        "SETTIMES": changing.set_times,
        "SETREPLICATION": changing.set_replication,
        "SETACL": changing.set_acl,
        "MODIFYACLENTRIES": changing.modify_acl,
        "REMOVEACLENTRIES": changing.remove_acl_entries,
        "REMOVEDEFAULTACL": changing.remove_default_acl,
        "REMOVEACL": changing.remove_acl,
    },
    "POST": {"APPEND": writing.append},
    "DELETE": {"DELETE": changing.delete},
}
_METHODS = [*OPERATIONS, "HEAD", "PATCH", "OPTIONS"]
_TOPS = ("/webhdfs/v1", "/webhdfs/api/v1", "/webhdfs/webhdfs/v1")
_SECRET = "/t/{secret}"
_PATH = f"/{{path:{ANY_PATH}}}"


class HdfsRoute(APIRoute):
    """Every error in the shape that these clients read, also what nobody foresaw."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except HdfsError as error:
                return errors.answer(error)
            except PaddleCloudError as error:
                return errors.answer(errors.of_ours(error))
            except ClientDisconnect:
                raise
            except Exception:
                number = request.state.request_id
                log.exception("a call of WebHDFS failed")
                message = f"the server met a fault of its own; its log has it under request id {number}"
                return errors.answer(HdfsError("RuntimeException", message))

        return answer


router = APIRouter(route_class=HdfsRoute, default_response_class=Response, include_in_schema=False)


async def _plain(request: Request, called: Called, path: str = "") -> Response:
    return await _answer(request, called, None, path)


async def _secret(request: Request, called: Called, secret: str, path: str = "") -> Response:
    return await _answer(request, called, secret, path)


for _top in _TOPS:
    for _end in ("", _PATH):
        router.add_api_route(f"{_top}{_end}", _plain, methods=_METHODS, response_model=None)
        router.add_api_route(f"{_SECRET}{_top}{_end}", _secret, methods=_METHODS, response_model=None)


async def _answer(request: Request, called: Services, secret: str | None, path: str) -> Response:
    query = Query(request.scope["query_string"].decode("latin-1"))
    claim = _claim(request, secret, query)
    identity = await called.hdfs_callers.identify(claim)
    request.state.user = identity.user.name
    operation = _operation(request.method, query)
    async with called.shares.turns.take(identity.user.name):
        view = await run_in_threadpool(_view, called, identity)
    call = Call(
        request=request,
        services=called,
        identity=identity,
        claim=claim,
        query=query,
        prefix=_prefix(request, secret),
        spot=_spot(hdfspath.received(f"/{path}"), view),
        view=view,
    )
    return await operation(await call.in_turn(_as_told, call, path) if hdfspath.received(path) != path else call)


def _as_told(call: Call, path: str) -> Call:
    """A name that is no text was told as we write it, and so it may come back."""
    other = _spot(f"/{path}", call.view)
    return replace(call, spot=other) if call.look(call.spot) is None and call.look(other) is not None else call


def _claim(request: Request, secret: str | None, query: Query) -> Claim:
    return Claim(
        secret=secret,
        names=[*query.all("user.name"), *query.all("doas")],
        client=None if request.client is None else (request.client.host, request.client.port),
        server=request.scope.get("server"),
        host=request.headers.get("host", ""),
        passed_on=is_passed_on(request) or _is_of_a_page(request),
        is_established=request.state.is_established,
    )


def _is_of_a_page(request: Request) -> bool:
    """Whether a browser sends it for a page, which need not be its user's own wish; no client of HDFS says so."""
    return "origin" in request.headers or request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def _operation(method: str, query: Query) -> Operation:
    known, op = OPERATIONS.get(method), query.op
    if known is None:
        raise HdfsError("UnsupportedOperationException", f"{method} is not a method of WebHDFS")
    if op not in known:
        raise errors.no_such_op(method, op)
    return known[op]


def _view(called: Services, identity: Identity) -> View:
    first = called.pfs.datacenters[0]
    shared = called.pfs.list(identity.who, pfs.shared(first, ""), limit=PAGE).items
    names = [entry.path.rpartition("/")[2] for entry in shared]
    return View(user=identity.user.name, datacenter=first, shared=names)


def _spot(path: str, view: View) -> Spot:
    try:
        return hdfspath.locate(path, view)
    except InvalidError as error:
        raise HdfsError("InvalidPathException", error.message) from None


def _prefix(request: Request, secret: str | None) -> str:
    top: str = request.scope["route"].path.removesuffix(_PATH)
    return top if secret is None else top.replace(_SECRET, f"/t/{secret}", 1)
