"""Whatever is called, and by whom, the answer is one that the OpenAPI document tells of, and never a fault."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.result import Ok

from tests.hostile.credentials import KINDS
from tests.unit.server.running import Running, running

CALLS = int(os.environ.get("FUZZ_CALLS", "150"))
# Not every rule can be told by a schema, so what fits the schema may be refused, too (positive_data_acceptance). What a
# call does later, or with another's credentials, is told by other tests: here each call stands alone.
LEFT_OUT = {
    "positive_data_acceptance",
    "ignored_auth",
    "use_after_free",
    "ensure_resource_availability",
    "object_level_authorization",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    plain = {"clusters": {"local": {"policy": "open"}}, "rates": {"logins_a_minute": 0, "submits_a_minute": 0}}
    with running(tmp_path / "data", plain) as made:
        yield made


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
def test_no_generated_call_finds_a_fault(server: Running, kind: str) -> None:
    load_all_checks()
    checks = [check for check in CHECKS.get_all() if check.__name__ not in LEFT_OUT]
    auth = KINDS[kind](server)
    known = {"job_id": server.run(token=server.ann), "name": "ann", "task": "trainer-0"}
    schema = schemathesis.openapi.from_url(f"{server.url}/v1/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    calls = st.one_of([operation.as_strategy() for operation in operations])
    session = requests.Session()

    @settings(max_examples=CALLS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=calls, real=st.booleans())
    def call(case: Any, real: bool) -> None:
        if real:
            case.path_parameters = {
                name: known.get(name, value) for name, value in (case.path_parameters or {}).items()
            }
        if case.path.endswith(("/events", "/logs")):
            case.query = {**(case.query or {}), "follow": "0"}  # one that is followed has no end to wait for
        response = case.call(base_url=server.url, session=session, auth=auth, timeout=30)
        case.validate_response(response, checks=checks)

    with session:
        call()
