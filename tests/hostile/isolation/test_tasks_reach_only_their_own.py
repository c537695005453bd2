"""Job code of one user against another's files, the server's keys and the machine: each way that was once open."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from tests.hostile.isolation.boxes import PLAIN, Account, Box, Person, python, tried

SECRET = "alices-secret-4711"


def test_the_home_of_the_servers_account_is_neither_seen_nor_written(server: Box, mallory: Person) -> None:
    """H1: a task put a key into ~/.ssh/authorized_keys, and the local shell of that account read everything."""
    home = server.account.home
    (home / ".profile").touch()
    before = (home / ".profile").read_text()
    said = mallory.run(
        tried(
            f"ls -la {home}/.profile {home}/.ssh && echo SEEN",
            f"mkdir -p {home}/.ssh && echo key > {home}/.ssh/authorized_keys",
            f"echo evil >> {home}/.profile",
            f"mkdir -p {home}/.config/systemd/user && echo x > {home}/.config/systemd/user/x.service",
        )
    )
    assert "tried-all" in said
    assert "SEEN" not in said
    assert (home / ".profile").read_text() == before
    assert not (home / ".ssh").exists()
    assert not (home / ".config/systemd").exists()


def test_no_setuid_program_of_a_task_gives_its_rights_to_anybody(server: Box, mallory: Person) -> None:
    """H2: cp /bin/bash /tmp/x; chmod 4755 made every local user the server's account, or root."""
    name = "h2-of-a-test"
    places = ["/tmp", "/var/tmp", "/dev/shm", "$HOME", "$OUTPUT_PATH", ".", "/pfs/local/home/mallory"]
    made = [f"cp /usr/bin/id {place}/{name} && chmod 6755 {place}/{name} && {place}/{name}" for place in places]
    said = mallory.run(tried("id", *made))
    assert said.count("uid=") == len(places) + 1, said
    assert len({line.partition(" ")[0] for line in said.splitlines() if line.startswith("uid=")}) == 1
    for shared in ("/tmp", "/var/tmp", "/dev/shm"):
        assert not os.path.lexists(f"{shared}/{name}")
    for found in server.data.rglob(name):
        assert found.stat().st_uid != 0 or server.kind == PLAIN or not found.stat().st_mode & stat.S_ISUID
    assert server.data.stat().st_mode & 0o077 == 0


TAKE = """
import array, os, socket, sys
name, data = sys.argv[1], sys.argv[2]
listening = socket.socket(socket.AF_UNIX)
listening.bind("\\0" + name)
listening.listen()
print("listening", flush=True)
connection, _ = listening.accept()
fds = array.array("i")
_, ancillary, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(fds.itemsize))
fds.frombytes(ancillary[0][2][: fds.itemsize])
top = fds[0]
def attempt(what, act):
    try:
        print(what, "REACHED", act())
    except OSError as error:
        print(what, "refused:", error.strerror)
below = data.lstrip("/")
attempt("system", lambda: os.close(os.open("usr/bin/env", os.O_RDONLY, dir_fd=top)))
attempt("key", lambda: os.read(os.open(below + "/key", os.O_RDONLY, dir_fd=top), 100))
attempt("list", lambda: os.listdir(os.open(below + "/pfs/local/home/alice", os.O_RDONLY | os.O_DIRECTORY, dir_fd=top)))
attempt("read", lambda: os.read(os.open(below + "/pfs/local/home/alice/secret", os.O_RDONLY, dir_fd=top), 100))
attempt("write", lambda: os.close(os.open(below + "/pfs/local/home/alice/evil", os.O_WRONLY | os.O_CREAT, dir_fd=top)))
attempt("passwd", lambda: os.close(os.open("etc/passwd", os.O_WRONLY, dir_fd=top)))
os.fchdir(top)
attempt("after fchdir", lambda: open(below + "/key").read())
print("tried-all")
"""
HAND_OVER = """
import array, os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect("\\0" + sys.argv[1])
top = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
line.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [top]))])
print("handed over")
"""


def test_a_descriptor_of_the_machines_root_that_a_local_shell_hands_over_opens_nothing(
    server: Box, alice: Person, mallory: Person, local_attacker: Account
) -> None:
    """H3: a directory descriptor of / passed over an abstract socket led to data/key and into every home."""
    alice.run(f"echo {SECRET} > /pfs/local/home/alice/secret")
    meeting = f"paddlecloud-h3-{os.getpid()}-{server.data.parent.name}"
    job = mallory.begin(python(TAKE, meeting, str(server.data)))
    mallory.hears(job, "listening")
    told = local_attacker.run("/usr/bin/env", "python3", "-c", HAND_OVER, meeting)
    assert "handed over" in told, told
    said = mallory.hears(job, "tried-all")
    # What everybody may read is no secret; Landlock refuses it all the same where the kernel has it.
    reached = [line for line in said.splitlines() if "REACHED" in line and not line.startswith("system")]
    assert reached == []
    assert SECRET not in said
    assert not (server.data / "pfs/local/home/alice/evil").exists()


def test_what_a_task_keeps_in_tmp_and_shared_memory_is_its_own(server: Box, alice: Person, mallory: Person) -> None:
    """H5: /tmp and /dev/shm were the machine's, and all tasks had one account."""
    name = f"h5-{os.getpid()}"
    hold = f"""
import mmap, os, sys, time
for folder in ("/tmp", "/var/tmp", "/dev/shm"):
    with open(folder + "/{name}", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write("{SECRET}")
print("holding", flush=True)
while True:
    time.sleep(0.1)
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        if open(folder + "/{name}").read() != "{SECRET}":
            print("CHANGED", flush=True)
"""
    job = alice.begin(python(hold))
    alice.hears(job, "holding")
    paths = [f"{folder}/{name}" for folder in ("/tmp", "/var/tmp", "/dev/shm")]
    said = mallory.run(tried(*(f"cat {path}" for path in paths), *(f"echo evil > {path}" for path in paths)))
    assert SECRET not in said
    assert "CHANGED" not in alice.said(job)
    assert not any(os.path.lexists(path) for path in paths if path != f"/tmp/{name}")
    assert alice.client.get(job).job.state.label == "running"


PROBE = """
import ctypes, json, os, socket
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines())
def can(act):
    try:
        act()
    except OSError as error:
        return error.strerror
    return "YES"
libc = ctypes.CDLL(None, use_errno=True)
def set_clock():
    now = (ctypes.c_long * 2)()
    libc.gettimeofday(now, None)
    if libc.settimeofday(now, None):
        raise OSError(ctypes.get_errno(), "no clock")
def kernel_log():
    if libc.klogctl(3, ctypes.create_string_buffer(100), 100) < 0:
        raise OSError(ctypes.get_errno(), "no kernel log")
print(json.dumps({
    "capabilities": {status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16},
    "no_new_privs": status["NoNewPrivs"].strip(),
    "packets": can(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)),
    "raw": can(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
    "clock": can(set_clock),
    "kernel log": can(kernel_log),
    "nice": can(lambda: os.nice(-5)),
    "mknod": can(lambda: os.mknod("/tmp/disk", 0o60666, os.makedev(253, 0))),
    "new device": can(lambda: open("/dev/evil", "w")),
    "devices": sorted(os.listdir("/dev")),
    "session keyring": libc.syscall(250 if os.uname().machine == "x86_64" else 219, 0, -3, 1),
    "uid": os.getuid(),
    "groups": os.getgroups(),
}))
"""


def test_a_task_has_no_capability_no_devices_and_no_keys_of_others(server: Box, alice: Person, mallory: Person) -> None:
    """H6: root's tasks kept NET_RAW, NET_ADMIN, SYS_TIME, SYSLOG and SYS_NICE, the user's keyring and all of /dev."""
    [hers, his] = [json.loads(person.run(python(PROBE)).splitlines()[-1]) for person in (alice, mallory)]
    for found in (hers, his):
        assert found["capabilities"] is True
        assert found["no_new_privs"] == "1"
        denied = {
            name: found[name] for name in ("packets", "raw", "clock", "kernel log", "nice", "mknod", "new device")
        }
        assert "YES" not in denied.values(), denied
        known = {
            "fd",
            "full",
            "null",
            "ptmx",
            "pts",
            "random",
            "shm",
            "stderr",
            "stdin",
            "stdout",
            "tty",
            "urandom",
            "zero",
        }
        assert set(found["devices"]) == known
    assert hers["session keyring"] != his["session keyring"] or hers["session keyring"] == -1
    if server.one_account:
        assert hers["uid"] == his["uid"] != 0
    else:
        assert hers["uid"] != his["uid"]
        assert 0 not in {hers["uid"], his["uid"]}


def test_nothing_of_the_machine_is_seen_but_what_programs_need(server: Box, mallory: Person) -> None:
    said = mallory.run(tried("ls -A /", "ls -A /etc", "cat /etc/shadow", "cat /etc/passwd", "mount"))
    assert "root:*" not in said
    assert "root:$" not in said
    for name in ("home\n", "root\n", "srv\n", "opt\n", "mnt\n", "shadow\n", "ssh\n"):
        beginning = said.partition("cat:")[0].splitlines()
        own = {part for path in (server.data, Path(os.path.realpath("/usr/bin/python3"))) for part in path.parts[1:2]}
        assert name.strip() not in beginning or name.strip() in own | {"root"}, said
    assert f"{server.account.home}/data/key" not in said
    assert not [line for line in said.splitlines() if " on /" in line and "nosuid" not in line]


def test_no_file_of_another_user_is_reached_by_its_path_on_the_disk(
    server: Box, alice: Person, mallory: Person
) -> None:
    alice.run(f"echo {SECRET} > /pfs/local/home/alice/secret; echo {SECRET} > $OUTPUT_PATH/secret")
    data = server.data
    said = mallory.run(
        tried(
            f"cat {data}/key {data}/embedded.json {data}/paddlecloud.db",
            f"cat {data}/pfs/local/home/alice/secret /pfs/local/home/alice/secret",
            "find / -xdev -name secret -exec cat {} + ",
            f"grep -r {SECRET} {data} /pfs",
            f"ls -R {data}/results {data}/files",
        )
    )
    assert "tried-all" in said
    assert SECRET not in said
    assert "alice" not in said.replace("home/alice", "")
