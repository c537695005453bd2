"""A session over https: its cookie is never sent without."""

from __future__ import annotations

from pathlib import Path

import urllib3

from paddlecloud.model.user import Role
from paddlecloud.server.app import utc_now
from paddlecloud.server.certificate import Certificate
from tests.certificates import Authority
from tests.unit.server.openpai.asking import FORM, PASSWORD
from tests.unit.server.running import running


def test_a_cookie_of_an_encrypted_server_is_secure(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    files = authority.issue()
    with running(tmp_path / "data", certificate=Certificate(files.chain, files.key, utc_now)) as server:
        server.users.add("carl", Role.USER, PASSWORD, utc_now())
        pool = urllib3.PoolManager(ca_certs=str(authority.file), retries=False)
        body = f"username=carl&password={PASSWORD.replace(' ', '+')}"
        headers = {"Content-Type": FORM, "Origin": server.url, "Sec-Fetch-Site": "same-origin"}
        answer = pool.request("POST", f"{server.url}/login.html", body=body, headers=headers, redirect=False)
        assert answer.status == 303
        assert "; Secure" in answer.headers["Set-Cookie"]
        pool.clear()
