"""Limits on open connections, and the end of those that say nothing."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from paddlecloud.server.accepting import ConnectionLimits, Connections, connection_limits
from tests.unit.server.running import a_spec, running

LIMITS = ConnectionLimits(total=10, address=2, local=4, all_local=7)


def held(addresses: list[str], limits: ConnectionLimits = LIMITS) -> tuple[Connections, list[str]]:
    """Connections from these addresses, and those that were refused, by the limit."""
    refused: list[str] = []
    connections = Connections(limits, refused.append)
    for address in addresses:
        connections.enter(address, 0.0)
    return connections, refused


@pytest.mark.parametrize(
    ("addresses", "refused"),
    [
        (["192.0.2.1"] * 2, []),
        (["192.0.2.1"] * 3, ["address"]),
        (["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1"], ["address"]),
        (["192.0.2.1", "192.0.2.1", "192.0.2.2"], []),
        (["2001:db8::1", "2001:db8::2", "2001:db8::3"], ["address"]),  # a /64 costs one customer nothing
        (["2001:db8::1", "2001:db8::2", "2001:db8:0:1::3"], []),
        (["127.0.0.1"] * 4, []),
        (["127.0.0.1"] * 5, ["address"]),
        (["127.0.0.1"] * 4 + ["127.0.0.2"] * 4, ["address"]),  # all of this machine's together
        ([f"127.0.0.{number}" for number in range(1, 9)] + ["::1", "192.0.2.1"], ["address", "address"]),
        ([f"192.0.2.{number}" for number in range(12)], ["total", "total"]),
    ],
)
def test_connections_are_limited_by_address_and_in_total(addresses: list[str], refused: list[str]) -> None:
    assert held(addresses)[1] == refused


def test_a_connection_that_ends_makes_room_once() -> None:
    connections, refused = held(["192.0.2.1"])
    leave = connections.enter("192.0.2.1", 0.0)
    assert leave is not None
    assert connections.enter("192.0.2.1", 0.0) is None
    leave()
    leave()
    assert connections.count == 1
    assert connections.enter("192.0.2.1", 0.0) is not None
    assert connections.enter("192.0.2.1", 0.0) is None
    assert refused == ["address", "address"]


def test_one_line_a_minute_tells_who_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    connections, _ = held(["192.0.2.1"] * 2)
    for now in (0.0, 1.0, 59.0, 61.0, 62.0):
        connections.enter("192.0.2.1", now)
    first, second = caplog.messages
    assert first.startswith("refused a connection from 192.0.2.1, which has 2 open, by the limit for one address")
    assert second.endswith("3 refused since the last such line")


@pytest.mark.parametrize("setting", [None, 0, 3, 10**6])
def test_the_setting_is_for_one_address_and_never_above_all(setting: int | None) -> None:
    limits = connection_limits(setting)
    expected = {None: min(512, limits.total // 4), 3: 3}.get(setting, limits.total)
    assert limits.address == expected
    assert limits.all_local < limits.total
    assert limits.local >= limits.total // 4


def test_a_silent_connection_is_cut_off_while_streams_and_slow_uploads_go_on(tmp_path: Path) -> None:
    with running(tmp_path / "data", head_seconds=1.0) as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        stream = server.ask("GET", "/v1/events", stream=True)
        body = json.dumps(a_spec()).encode()
        head = (
            f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.ann}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        with (
            socket.create_connection((host, int(port)), timeout=30) as silent,
            socket.create_connection((host, int(port)), timeout=30) as slow,
        ):
            slow.sendall(head.encode() + body[:10])
            assert silent.recv(1) == b"", "after a second"
            slow.sendall(body[10:])
            assert slow.recv(20).startswith(b"HTTP/1.1 201 Created")
        assert next(stream.stream(1)), "it goes on, with the job that was submitted"
        stream.close()
