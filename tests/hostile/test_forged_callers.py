"""Job code of one user that calls WebHDFS under another's name, on a connection whose port then goes to that user."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from tests.flow.lab import Lab
from tests.ports import free_ports
from tests.waiting import wait_until

PASSWORD = "correct horse"
CONNECTIONS = 24
ROUNDS = 6

BEGINNING = """
import select, socket, struct, sys
server, meeting, ports = sys.argv[1], sys.argv[2], [int(local) for local in sys.argv[3].split(",")]
host, _, port = server.rpartition("//")[2].partition(":")

def connected(local):
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", local))
    made.connect((host, int(port)))
    return made

def reset(line):
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.close()

def call(method, path, op):
    target = f"/webhdfs/v1{path}?op={op}&user.name=alice" if op else path
    return f"{method} {target} HTTP/1.1\\r\\nHost: {host}\\r\\nContent-Length: 0\\r\\n\\r\\n".encode()

def status(line):
    head = b""
    while b"\\r\\n" not in head:
        head += line.recv(65536) or b"000 closed\\r\\n"
    return int(head.split()[1])

signals = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
victim = ("127.0.0.1", ports[0])
"""
VICTIM = f"""{BEGINNING}
signals.bind(victim)
print("ready", flush=True)
while True:
    said, attacker = signals.recvfrom(100)
    if said == b"end":
        break
    lines = [connected(local) for local in ports]
    # Look-ups are made in turn: once this one is answered, those of the attacker are over too.
    lines[-1].sendall(call("GET", "/user/alice", "GETFILESTATUS"))
    print("own", status(lines[-1]), flush=True)
    for line in lines:
        reset(line)
    signals.sendto(b"done", attacker)
"""
ATTACKER = f"""{BEGINNING}
signals.bind(("127.0.0.1", ports[1]))
for attempt in range(int(sys.argv[4])):
    lines = [connected(local) for local in ports]
    for line in lines:
        line.sendall(call("GET", "/healthz", ""))
        assert status(line) == 200
    for number, line in enumerate(lines):
        line.sendall(call("PUT", f"/user/alice/forged-{{attempt}}-{{number}}", "MKDIRS"))
    for line in lines:
        reset(line)
    signals.sendto(b"now", victim)
    signals.recv(100)
signals.sendto(b"end", victim)
"""
HIDING = f"""{BEGINNING}
near, far = socket.socketpair()
for attempt in range(int(sys.argv[4])):
    for local in ports:
        line = connected(local)
        line.sendall(call("GET", "/user/alice", "GETFILESTATUS"))
        # Open, but in the queue of another socket: no process holds it while it is looked for.
        socket.send_fds(near, [b"x"], [line.fileno()])
        line.close()
        select.select([], [], [], 0.05)
        line = socket.socket(fileno=socket.recv_fds(far, 1, 1)[1][0])
        print("as alice", status(line), flush=True)
        reset(line)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Lab]:
    (tmp_path / "server").mkdir()
    lab = Lab(tmp_path / "server")
    python = Path(sys.prefix) / "bin" / "python"
    lab.configure(f"[clusters.local]\npolicy = 'open'\n[jobs]\npython = '{python}'\n[webhdfs]\nplain = 'logins'\n")
    lab.type("up")
    yield lab
    lab.close()


def desk(server: Lab, folder: Path, name: str) -> Lab:
    """Where a new user works, who has logged in."""
    server.type("user", "add", name, "--password", stdin=f"{PASSWORD}\n")
    folder.mkdir()
    made = Lab(folder)
    made.data = server.data
    del made.env["PADDLECLOUD_DATA"]
    made.type("login", "--server", server.server["url"], "--user", name, stdin=f"{PASSWORD}\n")
    return made


def test_a_reset_connection_is_not_taken_for_that_of_the_user_who_gets_its_port(server: Lab, tmp_path: Path) -> None:
    alice, bob = desk(server, tmp_path / "alice", "alice"), desk(server, tmp_path / "bob", "bob")
    ports = ",".join(map(str, free_ports(CONNECTIONS)))
    told = [server.server["url"], f"meeting-{ports[:5]}", ports, str(ROUNDS)]
    (alice.folder("victim") / "victim.py").write_text(VICTIM)
    (bob.folder("attacker") / "attacker.py").write_text(ATTACKER)
    victim = alice.out("submit", "victim", "--", "python", "victim.py", *told).split()[-1]
    wait_until(lambda: "ready" in alice.out("logs", victim), f"{victim} listens")
    bob.type("run", "attacker", "--", "python", "attacker.py", *told)
    alice.type("wait", victim)
    assert alice.out("logs", victim).count("own 200") == ROUNDS
    assert alice.out("ls", "/pfs/local/home/alice").count("forged-") == 0


def test_a_task_that_hides_its_connection_is_not_taken_for_who_has_logged_in_here(server: Lab, tmp_path: Path) -> None:
    desk(server, tmp_path / "alice", "alice")
    bob = desk(server, tmp_path / "bob", "bob")
    sent = {"username": "alice", "password": PASSWORD}
    assert urllib3.request("POST", f"{server.server['url']}/rest-server/api/v1/token", json=sent).status == 200
    told = [server.server["url"], "nowhere", ",".join(map(str, free_ports(CONNECTIONS))), "1"]
    (bob.folder("hiding") / "hide.py").write_text(HIDING)
    said = bob.type("run", "hiding", "--", "python", "hide.py", *told).stdout
    assert said.count("as alice 401") == CONNECTIONS
