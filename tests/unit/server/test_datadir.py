"""One owner, one server, and nothing in it that others can read."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from paddlecloud.model.errors import ConfigError
from paddlecloud.server.certificate import Certificate
from paddlecloud.server.datadir import announced, hold, read_private, write_private
from tests.certificates import Authority


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_data_folder_is_made_for_its_owner_alone_also_when_it_was_open_to_others(tmp_path: Path) -> None:
    with hold(tmp_path / "a" / "b"):
        assert mode(tmp_path / "a" / "b") == 0o700
    (tmp_path / "open").mkdir(mode=0o755)
    with hold(tmp_path / "open"):
        assert mode(tmp_path / "open") == 0o700


def test_a_second_server_is_refused_with_the_pid_of_the_first_and_let_in_after_it(tmp_path: Path) -> None:
    with hold(tmp_path), pytest.raises(ConfigError, match=rf"pid {os.getpid()}\)"):
        with hold(tmp_path):
            pass
    with hold(tmp_path):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
def test_a_folder_of_another_user_is_refused_and_left_alone(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o755)
    os.chown(theirs, 65534, 65534)
    with pytest.raises(ConfigError, match="belongs to user id 65534"), hold(theirs):
        pass
    assert list(theirs.iterdir()) == []
    assert mode(theirs) == 0o755


def test_a_folder_that_cannot_be_made_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "data"):
        with pytest.raises(ConfigError, match="PADDLECLOUD_DATA"), hold(path):
            pass


def test_a_server_is_announced_while_it_runs_and_to_its_owner_alone(tmp_path: Path) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with hold(tmp_path) as folder:
        with announced(folder, url="http://127.0.0.1:1", started_at=at, version="1"):
            assert mode(folder.server) == 0o600
            assert json.loads(folder.server.read_text()) == {
                "url": "http://127.0.0.1:1",
                "pid": os.getpid(),
                "started_at": "2026-01-01T00:00:00Z",
                "version": "1",
            }
        assert not folder.server.exists()


def test_a_private_file_is_replaced_as_a_whole_and_a_broken_one_counts_as_none(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("{")
    assert read_private(file) == {}
    write_private(file, {"a": 1})
    assert (read_private(file), mode(file)) == ({"a": 1}, 0o600)
    assert read_private(tmp_path / "none") == {}


def test_a_server_announces_the_certificate_that_it_shows_now(tmp_path: Path) -> None:
    authority, at = Authority(tmp_path / "ca"), datetime.now(UTC)
    files, renewed = authority.issue("server"), authority.issue("renewed")
    certificate = Certificate(files.chain, files.key, lambda: at)
    with hold(tmp_path / "data") as folder:
        with announced(folder, url="https://127.0.0.1:1", started_at=at, version="1", certificate=certificate):
            first = read_private(folder.server)["fingerprint"]
            assert first == certificate.pair.fingerprint
            for new, old in ((renewed.chain, files.chain), (renewed.key, files.key)):
                new.rename(old)
            certificate.renew()
            assert read_private(folder.server)["fingerprint"] == certificate.pair.fingerprint != first
