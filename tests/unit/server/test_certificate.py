"""The server's certificate: what is refused before the start, what is shown, and how a renewal is taken up."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import socket
import ssl
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from paddlecloud.model.errors import ConfigError
from paddlecloud.server import certificate
from paddlecloud.server.app import utc_now
from paddlecloud.server.certificate import Certificate
from tests.certificates import Authority, Files
from tests.unit.server.running import running
from tests.waiting import wait_until

DAY = timedelta(days=1)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


def made_from(files: Files) -> Certificate:
    return Certificate(files.chain, files.key, utc_now)


def shown(url: str) -> str:
    """The fingerprint of what a server shows."""
    host, _, port = url.removeprefix("https://").partition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection((host, int(port)), timeout=5) as plain, context.wrap_socket(plain) as encrypted:
        return hashlib.sha256(encrypted.getpeercert(binary_form=True) or b"").hexdigest()


def test_a_good_pair_says_how_long_it_is_valid(authority: Authority) -> None:
    files = authority.issue(lasts=40 * DAY)
    pair = certificate.read(files.chain, files.key)
    assert 38 <= (pair.not_after - utc_now()).days <= 39
    assert pair.trouble(utc_now()) == ""
    assert "expires in 5 days" in pair.trouble(pair.not_after - 5.5 * DAY)
    assert "expired at" in pair.trouble(pair.not_after)
    assert "not valid before" in pair.trouble(pair.not_before - DAY)


def no_chain(files: Files) -> None:
    files.chain.unlink()


def no_key(files: Files) -> None:
    files.key.unlink()


def chain_of_nonsense(files: Files) -> None:
    files.chain.write_text("nonsense")


def key_of_nonsense(files: Files) -> None:
    files.key.write_text("nonsense")


def open_to_all(files: Files) -> None:
    files.key.chmod(0o644)


def writable_by_a_group(files: Files) -> None:
    files.key.chmod(0o660)


def a_folder(files: Files) -> None:
    files.key.unlink()
    files.key.mkdir(mode=0o700)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (no_chain, "server.certificate: {chain} cannot be read"),
        (no_key, "server.certificate_key: {key} cannot be read"),
        (chain_of_nonsense, "server.certificate: {chain} holds no certificate"),
        (key_of_nonsense, "server.certificate_key: {key} is not the private key of {chain}"),
        (open_to_all, "server.certificate_key: {key} is open to others (mode 0644): run chmod"),
        (writable_by_a_group, "server.certificate_key: {key} is open to others (mode 0660): run chmod"),
        (a_folder, "server.certificate_key: {key} "),
    ],
)
def test_a_pair_that_cannot_be_used_is_refused_with_the_setting_and_what_to_do(
    authority: Authority, spoil: Callable[[Files], None], says: str
) -> None:
    files = authority.issue()
    spoil(files)
    with pytest.raises(ConfigError) as refused:
        made_from(files)
    assert says.format(chain=files.chain, key=files.key) in refused.value.message


def test_the_key_of_another_certificate_is_refused(authority: Authority) -> None:
    one, other = authority.issue("one"), authority.issue("other")
    with pytest.raises(ConfigError, match="is not the private key of"):
        certificate.read(one.chain, other.key)


def test_a_key_with_a_passphrase_is_refused_without_asking_for_it(authority: Authority) -> None:
    files = authority.issue(passphrase=b"open sesame")
    with pytest.raises(ConfigError, match="encrypted by a passphrase"):
        made_from(files)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_key_of_roots_may_be_lent_to_a_group_and_one_of_somebody_else_is_refused(authority: Authority) -> None:
    files = authority.issue()
    files.key.chmod(0o640)
    made_from(files)
    os.chown(files.key, 12345, -1)
    with pytest.raises(ConfigError, match="belongs to user id 12345"):
        made_from(files)


def test_an_expired_certificate_is_served_and_said_loudly_once_a_day(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    files = authority.issue(begins=-3 * DAY, lasts=DAY)
    now = [utc_now()]
    made = Certificate(files.chain, files.key, lambda: now[0])
    made.renew()
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "expired at" in caplog.text
    assert str(files.chain) in caplog.text
    now[0] += DAY
    made.renew()
    assert len(caplog.records) == 2


def test_a_renewed_certificate_is_shown_without_a_restart_and_a_wrong_one_never(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files, renewed = authority.issue("server"), authority.issue("renewed")
    made = made_from(files)
    first = made.pair.fingerprint
    renewals: list[str] = []
    made.on_renewal = lambda: renewals.append(made.pair.fingerprint)
    with running(tmp_path / "data", certificate=made) as server:
        assert shown(server.url) == first
        caplog.clear()
        shutil.copyfile(renewed.chain, files.chain)  # the key follows later
        wait_until(lambda: "is not used" in caplog.text, "the half of a renewal is noticed")
        assert shown(server.url) == first
        shutil.copyfile(renewed.key, files.key)
        second = certificate.read(renewed.chain, renewed.key).fingerprint
        wait_until(lambda: shown(server.url) == second, "the renewed one is shown")
    assert renewals == [second]


def test_nothing_older_than_tls_1_2_is_spoken_and_no_handshake_is_begun_anew(authority: Authority) -> None:
    made = made_from(authority.issue())
    for context in (made.context, made.pair.context):
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2
        assert context.options & ssl.OP_NO_RENEGOTIATION


def test_whoever_begins_no_handshake_is_cut_off(authority: Authority, tmp_path: Path) -> None:
    with running(tmp_path / "data", certificate=made_from(authority.issue())) as server:
        host, _, port = server.url.removeprefix("https://").partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as silent:
            assert silent.recv(1) == b""


def test_a_head_without_end_is_cut_off_inside_tls_too(authority: Authority, tmp_path: Path) -> None:
    with running(tmp_path / "data", certificate=made_from(authority.issue())) as server:
        host, _, port = server.url.removeprefix("https://").partition(":")
        context = ssl.create_default_context(cafile=authority.file)
        with socket.create_connection((host, int(port)), timeout=10) as plain:
            with context.wrap_socket(plain, server_hostname=host) as encrypted:
                encrypted.sendall(b"GET / HTTP/1.1\r\nX-Long: ")
                with pytest.raises((ConnectionError, ssl.SSLError)):
                    _send_without_end(encrypted)


def _send_without_end(connection: ssl.SSLSocket) -> None:
    while True:
        connection.sendall(b"a" * 2**20)
