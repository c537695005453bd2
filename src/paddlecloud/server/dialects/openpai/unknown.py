"""What OpenPAI's server answers to addresses that it does not have, and to browsers that ask whether they may ask."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from paddlecloud.server.dialects.openpai import refusals
from paddlecloud.server.dialects.openpai.addresses import ROOT
from paddlecloud.server.dialects.openpai.route import PaiRoute

router = APIRouter(route_class=PaiRoute, default_response_class=Response, include_in_schema=False)

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


@router.options(f"{ROOT}/{{path:path}}")
async def may_be_asked(request: Request) -> Response:
    asked = request.headers.get("access-control-request-headers", "")
    headers = {"Access-Control-Allow-Methods": ",".join(_METHODS), "Vary": "Access-Control-Request-Headers"}
    if asked.isascii() and asked.isprintable() and len(asked) < 1000:
        headers["Access-Control-Allow-Headers"] = asked
    return Response(status_code=204, headers=headers)


@router.api_route(ROOT, methods=_METHODS)
@router.api_route(f"{ROOT}/{{path:path}}", methods=_METHODS)
async def no_such_api(request: Request) -> Response:
    raise refusals.no_api(request.url.path)


@router.get("/view.html")
async def no_new_pages() -> Response:
    """The VS Code client asks for this page to learn which links to open: those of job-detail.html are right."""
    return Response("there is no such page", 404, media_type="text/plain")
