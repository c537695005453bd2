"""docs/reference/rest.md: every route of the server, from its own OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from paddlecloud.server import openapi, rest
from tools.pages.markdown import code, document, table

INTRODUCTION = """
A running server gives the whole description, with every field, as OpenAPI 3.1 at `/v1/openapi.json`. Requests carry
`Authorization: Bearer …` or a signature of an access key; errors are [problem+json](errors.md); times are UTC.
"""


def page() -> str:
    app = FastAPI()
    for router in rest.ROUTERS:
        app.include_router(router)
    described = openapi.document(app)
    rows = [row for path, methods in described["paths"].items() for row in _routes(path, methods)]
    return document(
        "Routes",
        "src/paddlecloud/server/rest/",
        INTRODUCTION,
        table(("route", "what it does", "takes", "answers"), rows),
    )


def _routes(path: str, methods: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for method, operation in methods.items():
        success = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
        says = operation.get("description") or operation.get("summary", "")
        takes = _carried(operation.get("requestBody", {}))
        yield code(f"{method.upper()} {path}"), " ".join(says.split()), takes, _carried(success)


def _carried(part: dict[str, Any]) -> str:
    return ", ".join(
        code(_name(content.get("schema", {})) or media) for media, content in part.get("content", {}).items()
    )


def _name(schema: dict[str, Any]) -> str:
    if "items" in schema:
        return f"[{_name(schema['items'])}]"
    return str(schema.get("$ref", "")).rpartition("/")[2]
