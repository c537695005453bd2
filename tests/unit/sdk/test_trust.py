"""Whose certificate the client believes, and what it says of the others."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from paddlecloud.model.errors import ConfigError, UnreachableError
from paddlecloud.model.state import JobState
from paddlecloud.sdk import trust
from paddlecloud.sdk.client import Client
from paddlecloud.sdk.profile import Profile
from paddlecloud.server.app import utc_now
from paddlecloud.server.certificate import Certificate
from tests.certificates import Authority, Files
from tests.unit.server.running import Running, running
from tests.waiting import wait_until

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def files(authority: Authority) -> Files:
    return authority.issue(hosts=["127.0.0.1"])


@pytest.fixture(scope="module")
def server(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    certificate = Certificate(files.chain, files.key, utc_now)
    with running(tmp_path_factory.mktemp("server") / "data", certificate=certificate) as made:
        yield made


def refusal(profile: Profile) -> str:
    with Client(profile) as client, pytest.raises(UnreachableError) as caught:
        client.accounts.me()
    return caught.value.message


@pytest.mark.parametrize("by", ["key", "token"])
def test_the_file_of_its_ca_is_enough_for_a_whole_conversation(server: Running, authority: Authority, by: str) -> None:
    key, sk = server.users.add_key("ann", utc_now())
    profile = Profile(server=server.url, ca=str(authority.file))
    profile = replace(profile, ak=key.ak, sk=sk) if by == "key" else replace(profile, token=server.ann)
    with Client(profile) as client:
        job = client.submit(command="go on")
        wait_until(lambda: client.get(job.id).job.state is JobState.RUNNING, "it runs")
        server.say(job.id, "trainer-0", b"hello\n")
        pieces = client.logs(job.id, follow=True)
        assert next(pieces).text == "hello\n"
        server.say(job.id, "trainer-0", b"and on\n")
        assert next(pieces).text == "and on\n"
        server.finish(job.id)
        assert list(pieces) == []


def test_the_certificate_itself_will_do_as_the_file(server: Running, files: Files) -> None:
    with Client(Profile(server=server.url, ca=str(files.chain), token=server.ann)) as client:
        assert client.accounts.me().name == "ann"


def test_the_announced_certificate_is_believed_under_any_name_and_no_other_is(server: Running, files: Files) -> None:
    fingerprint = Certificate(files.chain, files.key, utc_now).pair.fingerprint
    profile = Profile(server=server.url.replace("127.0.0.1", "localhost"), fingerprint=fingerprint, token=server.ann)
    with Client(profile) as client:
        assert client.accounts.me().name == "ann"
    assert "another certificate than it announced" in refusal(replace(profile, fingerprint="0" * 64))


def test_an_unknown_authority_is_refused_with_what_to_type(server: Running, tmp_path: Path) -> None:
    said = refusal(Profile(server=server.url, token=server.ann))
    assert "nobody that this machine knows" in said
    assert f"paddlecloud login --server {server.url} --ca FILE" in said
    assert "PADDLECLOUD_CA" in said
    wrong = Authority(tmp_path / "other", "another CA")
    said = refusal(Profile(server=server.url, ca=str(wrong.file), token=server.ann, sources={"ca": "the environment"}))
    assert f"nobody that {wrong.file} (the environment) knows" in said


def test_another_name_is_refused_with_both(server: Running, authority: Authority) -> None:
    url = server.url.replace("127.0.0.1", "localhost")
    said = refusal(Profile(server=url, ca=str(authority.file), token=server.ann))
    assert "localhost" in said
    assert "use the name that its certificate was made for" in said


@pytest.mark.parametrize(
    ("begins", "says"), [(-3 * DAY, "its certificate has expired"), (3 * DAY, "its certificate is not valid yet")]
)
def test_a_certificate_out_of_its_time_is_refused(
    authority: Authority, tmp_path: Path, begins: timedelta, says: str
) -> None:
    files = authority.issue(f"from-{begins.days}", begins=begins, lasts=DAY)
    with running(tmp_path / "data", certificate=Certificate(files.chain, files.key, utc_now)) as server:
        assert says in refusal(Profile(server=server.url, ca=str(authority.file), token=server.ann))


def test_plain_http_to_an_encrypted_port_is_told_to_write_https(server: Running) -> None:
    plain = server.url.replace("https:", "http:")
    assert f"it speaks TLS: write {server.url}" in refusal(Profile(server=plain, token=server.ann))


def test_https_to_a_plain_port_is_told_to_write_http(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server:
        encrypted = server.url.replace("http:", "https:")
        assert f"it does not speak TLS: write {server.url}" in refusal(Profile(server=encrypted, token=server.ann))


def test_a_server_that_is_away_is_not_said_to_speak_tls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert "does not answer" in refusal(Profile(server=f"http://127.0.0.1:{port}", token="t"))


def nowhere(file: Path) -> None:
    file.unlink(missing_ok=True)


def nonsense(file: Path) -> None:
    file.write_text("nonsense")


@pytest.mark.parametrize(("spoil", "says"), [(nowhere, "cannot be read"), (nonsense, "holds no certificate")])
def test_a_ca_file_that_is_none_is_named(tmp_path: Path, spoil: Callable[[Path], None], says: str) -> None:
    spoil(tmp_path / "ca.pem")
    profile = Profile(server="https://h", ca=str(tmp_path / "ca.pem"), sources={"ca": "--ca"})
    with pytest.raises(ConfigError) as caught:
        Client(profile)
    assert f"{tmp_path}/ca.pem (named by --ca) {says}" in caught.value.message


def test_it_is_known_how_long_a_certificate_is_valid(server: Running, authority: Authority) -> None:
    ends = trust.certificate_end(Profile(server=server.url, ca=str(authority.file)))
    assert 28 <= (ends - utc_now()).days <= 29
