"""What of an address may stand in a log."""

from __future__ import annotations

import pytest

from paddlecloud.server.secret_paths import has_secret, without_secret


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/t/pcw_abc/webhdfs/v1/x", "/t/…/webhdfs/v1/x"),
        ("/rest-server/api/v2/tokens/eyJhbGciOiJIUzI1NiJ9.eyJ1Ijoi.c2ln", "/rest-server/api/v2/tokens/…"),
        ("/rest-server/api/v1/token/pct_0a1b", "/rest-server/api/v1/token/…"),
        ("/v1/jobs", "/v1/jobs"),
        ("/rest-server/api/v2/jobs/ann~pct_job", "/rest-server/api/v2/jobs/ann~pct_job"),
    ],
)
def test_a_secret_in_a_path_is_not_shown(path: str, shown: str) -> None:
    assert without_secret(path) == shown
    assert has_secret(path) == (path != shown)
