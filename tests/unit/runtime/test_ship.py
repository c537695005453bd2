"""What a far node sends comes whole or is sent again, whatever the server answers, and nothing of others goes along."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.model import paths
from paddlecloud.runtime.ship import AwayError, FileCarrier, LogCarrier, text_of
from tests.certificates import Authority
from tests.unit.runtime.far_server import FarServer, far_server


@pytest.fixture
def far() -> Iterator[FarServer]:
    with far_server() as serving:
        yield serving


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "results/rank-0").mkdir(parents=True)
    return tmp_path / "results"


def carrier(far: FarServer, results: Path) -> FileCarrier:
    return FileCarrier(far.client(), "trainer-0", str(results), [f"{results}/rank-0", f"{results}/log/trainer-0"])


def test_an_answer_in_part_is_no_answer_and_the_next_one_counts(far: FarServer, results: Path) -> None:
    log = LogCarrier(far.client(), "trainer-0", str(results), f"{results}/log/trainer-0.log")
    (results / "log/trainer-0.log").write_bytes(b"a line\n")
    far.cut = ["tasks/trainer-0/log"]
    with pytest.raises(AwayError):
        log.carry()
    log.carry()
    log.note("ours")
    log.carry()
    assert far.log == b"a line\npaddlecloud: ours\n"


def test_an_answer_that_is_not_the_servers_is_no_answer(far: FarServer) -> None:
    far.given = {"claims": b"<html>"}
    with pytest.raises(AwayError, match="makes no sense"):
        far.client().ask_json("POST", "claims")


@pytest.mark.parametrize(
    "raw", [b"plain", b"caf\xe9", "café".encode(), b"\xff\xfe", "\uefff".encode(), "\uef80é".encode()]
)
def test_a_name_is_told_as_the_server_understands_it(raw: bytes) -> None:
    assert text_of(raw) == paths.text_of(raw)
    assert paths.raw_of(text_of(raw)) == raw


def test_files_come_whatever_their_names(far: FarServer, results: Path) -> None:
    with open(os.fsencode(results) + b"/rank-0/caf\xe9", "wb") as file:
        file.write(b"latin")
    (results / "rank-0/deep/er").mkdir(parents=True)
    (results / "rank-0/deep/er/run.sh").touch(mode=0o755)
    carrier(far, results).carry(settled=True, now=time.time())
    assert far.files == {"rank-0/caf\uefe9": b"latin", "rank-0/deep/er/run.sh": b""}
    assert far.executable == {"rank-0/deep/er/run.sh"}


def test_a_file_that_is_refused_keeps_no_other_one_and_is_sent_once(far: FarServer, results: Path) -> None:
    for name in ("a", "bad", "z"):
        (results / "rank-0" / name).write_text(name)
    far.refused = ("bad",)
    files = carrier(far, results)
    files.carry(settled=True, now=time.time())
    files.carry(settled=True, now=time.time())
    assert sorted(far.files) == ["rank-0/a", "rank-0/z"]
    assert files.refused == ["rank-0/bad was not taken: it has no place here"]


def test_what_is_being_written_is_left_for_later(far: FarServer, results: Path) -> None:
    (results / "rank-0/a").write_text("begun")
    files = carrier(far, results)
    files.carry(settled=False, now=time.time())
    assert far.files == {}
    files.carry(settled=False, now=time.time() + 60)
    assert far.files == {"rank-0/a": b"begun"}


def test_no_link_that_a_task_leaves_brings_what_is_anothers(far: FarServer, results: Path, tmp_path: Path) -> None:
    log = LogCarrier(far.client(), "trainer-0", str(results), f"{results}/log/trainer-0.log")
    other = tmp_path / "other"
    (other / "trainer-0").mkdir(parents=True)
    for name in ("secret", "trainer-0.log", "trainer-0/secret"):
        (other / name).write_text("secret")
    (results / "rank-0").rename(results / "moved")
    (results / "log").rename(results / "moved-log")
    (results / "rank-0").symlink_to(other)
    (results / "log").symlink_to(other)
    files = carrier(far, results)
    files.carry(settled=True, now=time.time())
    log.carry()
    (results / "rank-0").unlink()
    (results / "rank-0").mkdir()
    (results / "rank-0/link").symlink_to(other / "secret")
    (results / "rank-0/folder").symlink_to(other)
    os.mkfifo(results / "rank-0/pipe")
    files.carry(settled=True, now=time.time())
    assert (far.files, far.log) == ({}, b"")


def test_a_certificate_is_known_without_the_root_of_its_chain(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    issued = authority.issue()
    with far_server(issued) as far:
        far.given = {"runtime": b"zip"}
        assert far.client(issued.chain.read_text()).ask("GET", "runtime") == b"zip"
        other = Authority(tmp_path / "other").issue()
        with pytest.raises(AwayError, match="verify failed"):
            far.client(other.chain.read_text()).ask("GET", "runtime")
