"""A task runs as the server's account, and yet reads none of the secrets that this account has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.flow.lab import Lab
from tests.waiting import wait_until

SECRET = "hunter2"
IN_HOME = (
    ".pgpass",
    ".pg_service.conf",
    ".paddle/config",
    ".config/paddlecloud/config.toml",
    "bin/paddlecloud/client.conf",
    "bin/paddlecloud/conf/client.conf",
)


@pytest.mark.timeout(120)
def test_a_task_finds_no_secret_that_the_settings_or_the_home_of_the_account_hold(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    files = Authority(tmp_path / "ca").issue()
    elsewhere, config = tmp_path / "mail-password", tmp_path / "server.toml"
    elsewhere.write_text(SECRET)
    for name in IN_HOME:
        (lab.home / name).parent.mkdir(parents=True, exist_ok=True)
        (lab.home / name).write_text(f"# {SECRET}\n")
    config.write_text(
        f'[server]\nport = 0\n{files.config}\n[mail]\npassword_file = "{elsewhere}"\n[clusters.local]\n'
        f'policy = "open"\n# {SECRET}\n'
    )
    serving = lab.begin("serve", "--config", str(config))
    try:
        wait_until((lab.data / "server.json").exists, "the server has started")
        key = lab.data / "embedded.json"
        secrets = [*(lab.home / name for name in IN_HOME), elsewhere, config, files.key, key]
        read = "; ".join(f"cat {path}" for path in secrets)
        lab.env |= {"HOME": str(tmp_path / "operator"), "PADDLECLOUD_CA": str(tmp_path / "ca" / "ca.pem")}
        told = lab.out("run", "--no-files", "--no-download", "--", "sh", "-c", f"{read}; echo done")
    finally:
        serving.terminate()
        serving.communicate(timeout=30)
    assert "done" in told
    assert SECRET not in told
    assert "PRIVATE KEY" not in told
    assert json.loads(key.read_text())["sk"] not in told
