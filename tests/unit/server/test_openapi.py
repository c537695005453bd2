"""The description of the API is complete, and what the server answers is what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import urllib3
from fastapi.routing import APIRoute

from paddlecloud.server.rest import ROUTERS
from tests.unit.server.running import Running, a_spec


@pytest.fixture(scope="module")
def document(server: Running) -> dict[str, Any]:
    answer = urllib3.request("GET", f"{server.url}/v1/openapi.json")
    assert answer.status == 200
    return dict(answer.json())


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_every_route_is_in_it_with_a_sentence_and_an_id_of_its_own(document: dict[str, Any]) -> None:
    routes = {
        (re.sub(r":\w+}", "}", route.path), method.lower())
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    described = {(path, method) for path, method, _ in operations(document)}
    assert described == routes
    assert len(routes) >= 28
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(ids)) == len(ids)
    for path, _, operation in operations(document):
        assert operation["description"].endswith("."), path


def test_every_reference_leads_somewhere_and_nothing_of_pydantics_is_left(document: dict[str, Any]) -> None:
    text = msgspec.json.encode(document).decode()
    for name in re.findall(r"#/components/schemas/([A-Za-z]+)", text):
        assert name in document["components"]["schemas"]
    assert "HTTPValidationError" not in text


def test_every_refusal_is_a_problem_and_every_body_has_a_schema(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        assert {"422", "500"} <= set(operation["responses"]), path
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                assert list(answer["content"]) == ["application/problem+json"], (path, status)
        tells_all = path.endswith(("/kill", "/hide", "/members/{user}", "/groups/{group}"))
        if method in ("put", "patch", "post") and not tells_all:
            assert operation["requestBody"]["content"], path
        if path.startswith("/v1/") and path not in ("/v1/login", "/v1/registrations", "/v1/openapi.json"):
            assert operation["security"], path
            assert {"401", "403"} <= set(operation["responses"]), path
        named = set(re.findall(r"{(\w+)}", path))
        given = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
        assert named == given


def test_what_is_answered_is_what_it_says(server: Running, document: dict[str, Any]) -> None:
    job = server.run()
    for path, asked in (
        ("/v1/me", "/v1/me"),
        ("/v1/jobs", "/v1/jobs"),
        ("/v1/jobs/{job_id}", f"/v1/jobs/{job}"),
        ("/v1/jobs/{job_id}/tasks", f"/v1/jobs/{job}/tasks"),
        ("/v1/jobs/{job_id}/files", f"/v1/jobs/{job}/files"),
        ("/v1/clusters", "/v1/clusters"),
        ("/v1/queues", "/v1/queues"),
        ("/v1/quota", "/v1/quota"),
        ("/v1/tokens", "/v1/tokens"),
        ("/healthz", "/healthz"),
    ):
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        check(server.get(asked), schema, document, path)
    refusal = server.ask("POST", "/v1/jobs", a_spec(count=0))
    answers = document["paths"]["/v1/jobs"]["post"]["responses"]
    check(refusal.json(), answers["422"]["content"]["application/problem+json"]["schema"], document, "problem")
    server.finish(job)


def check(value: Any, schema: dict[str, Any], document: dict[str, Any], where: str) -> None:
    """Refuse a value that is not of the schema, as far as our schemas go."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        assert any(fits(value, one, document, where) for one in schema["anyOf"]), (where, value)
        return
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
    }
    if "type" in schema:
        assert value is None if schema["type"] == "null" else isinstance(value, kinds[schema["type"]]), (where, value)
    assert value in schema.get("enum", [value]), (where, value)
    if "properties" in schema:
        assert set(schema.get("required", ())) <= set(value) <= set(schema["properties"]), where
        for name, one in value.items():
            check(one, schema["properties"][name], document, f"{where}.{name}")
    for one in value if schema.get("type") == "array" else ():
        if isinstance(schema.get("items"), dict):
            check(one, schema["items"], document, f"{where}[]")


def fits(value: Any, schema: dict[str, Any], document: dict[str, Any], where: str) -> bool:
    try:
        check(value, schema, document, where)
    except AssertionError:
        return False
    return True
