"""System calls by which a task would take down what keeps it from others, and those that every program needs."""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.local import Room, log

# A namespace of mounts of its own, in which none of ours is left, so that the place of one of them can be renamed.
MOVE = r"""
import ctypes, mmap, os, platform, sys
way, folder, name = sys.argv[1:]
libc, flags = ctypes.CDLL(None, use_errno=True), 0x10000000 | 0x00020000
intel = platform.machine() == "x86_64"
above, uid, gid = os.open(folder, os.O_RDONLY | os.O_DIRECTORY), os.getuid(), os.getgid()

def forked(pid):
    if pid > 0:
        os.waitpid(pid, 0)
        os._exit(0)
    return pid

def as_i386():
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(bytes.fromhex("53 b8 36010000 bb 00000210 cd80 5b c3"))
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()

ways = {
    "unshare": lambda: libc.unshare(flags),
    "unshare with high bits": lambda: libc.syscall(272 if intel else 97, ctypes.c_long(flags | 1 << 40)),
    "clone": lambda: forked(libc.syscall(56 if intel else 220, flags | 17, 0, 0, 0, 0)),
    "clone3": lambda: forked(libc.syscall(435, (ctypes.c_uint64 * 8)(flags, 0, 0, 0, 17), 64)),
    "x32": lambda: libc.syscall(0x40000000 + 272, flags),
    "i386": as_i386,
}
if ways[way]() != 0:
    sys.exit(f"refused: {os.strerror(ctypes.get_errno())}")
for file, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
    with open(f"/proc/self/{file}", "w") as written:
        written.write(text)
libc.mount(b"none", b"/", None, 16384 | 1 << 18, None)
libc.mount(b"tmpfs", b"/mnt", b"tmpfs", 0, None)
os.chdir("/mnt")
libc.syscall(155 if intel else 41, b".", b".")
libc.umount2(b".", 2)
os.rename(name, name + "2", src_dir_fd=above, dst_dir_fd=above)
print("moved")
"""

ORDINARY = r"""
import concurrent.futures, multiprocessing, os, subprocess, sys, threading
def main():
    threads = [threading.Thread(target=print, args=("thread",)) for _ in range(2)]
    for one in threads:
        one.start()
        one.join()
    for how in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(how).Pool(2) as pool:
            print(how, sum(pool.map(abs, [-1, -2])))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        print("pool", *pool.map(abs, [-1, -2]))
    run = dict(stdout=subprocess.PIPE, text=True, check=True)
    print(subprocess.run(["echo", "run"], close_fds=True, start_new_session=True, **run).stdout.strip())
    print(subprocess.run("echo shell | cat", shell=True, close_fds=False, **run).stdout.strip())
    print("spawned", os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)[1])
if __name__ == "__main__":
    main()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of the server's account: its data folder, its keys, and a link to a file with a secret."""
    (tmp_path / "home/data/results").mkdir(parents=True)
    (tmp_path / "home/keys").mkdir()
    (tmp_path / "home/keys/key").write_text("secret")
    (tmp_path / "home/password").write_text("secret")
    (tmp_path / "home/.pgpass").symlink_to("password")
    return tmp_path / "home"


@pytest.fixture
def room(home: Path) -> Iterator[Room]:
    data = home / "data"
    with Room(data, hidden=(data, home / "keys", home / ".pgpass", home / "absent")) as room:
        if "mount" not in room.backend.isolation:
            pytest.skip(room.backend.isolation)
        yield room


def said(room: Room, command: str) -> str:
    launch = room.launch(command)
    room.run(launch)
    return log(launch)


def python(program: str, *arguments: str) -> str:
    words = " ".join(f"'{word}'" for word in arguments)
    return f"cat > program.py <<'END'\n{program}\nEND\nTMPDIR=/tmp python program.py {words}"


INTEL = pytest.mark.skipif(platform.machine() != "x86_64", reason="a way of x86_64")


@pytest.mark.parametrize("name", ["keys", "password"])
@pytest.mark.parametrize(
    "way",
    [
        "unshare",
        "unshare with high bits",
        "clone",
        "clone3",
        pytest.param("x32", marks=INTEL),
        pytest.param("i386", marks=INTEL),
    ],
)
def test_no_task_leaves_its_mounts_to_move_what_is_hidden(room: Room, home: Path, way: str, name: str) -> None:
    assert "moved" not in said(room, python(MOVE, way, str(home), name))
    assert (home / name).exists()
    assert "secret" not in said(room, f"cat {home}/{name}2/* {home}/{name}2")


@INTEL
def test_a_call_of_another_architecture_ends_the_process_by_a_signal_that_says_so(room: Room, home: Path) -> None:
    if "a filter of system calls" not in room.backend.isolation:
        pytest.skip(room.backend.isolation)
    ended = room.run(room.launch(python(MOVE, "i386", str(home), "keys") + "; exit $?"))
    assert ended.exit_code == 128 + signal.SIGSYS


def test_what_every_program_needs_is_allowed(room: Room) -> None:
    assert said(room, python(ORDINARY)).splitlines() == [
        *["thread", "thread", "fork 3", "spawn 3", "forkserver 3", "pool 1 2", "run", "shell", "spawned 0"]
    ]


def test_the_filter_is_on_and_no_program_gives_more_rights(room: Room) -> None:
    if "a filter of system calls" not in room.backend.isolation:
        pytest.skip(room.backend.isolation)
    status = dict(line.split(":\t") for line in said(room, "cat /proc/self/status").splitlines())
    assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")


def test_a_task_makes_no_file_that_nobody_can_remove(room: Room) -> None:
    made = "touch $OUTPUT_PATH/x; chattr +i $OUTPUT_PATH/x 2> /dev/null; rm -f $OUTPUT_PATH/x && echo removed"
    tidy = "chattr -i $OUTPUT_PATH/x 2> /dev/null; rm -f $OUTPUT_PATH/x"
    assert said(room, f"{made}; {tidy}") == "removed\n"


def test_a_task_has_no_capability_and_gets_none(room: Room) -> None:
    status = dict(line.split(":\t") for line in said(room, "cat /proc/self/status").splitlines())
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}


@pytest.mark.parametrize("name", ["keys", "password"])
def test_what_was_moved_since_the_servers_start_is_hidden_where_it_is_now(room: Room, home: Path, name: str) -> None:
    (home / name).rename(home / "moved")
    assert "secret" not in said(room, f"cat {home}/moved/* {home}/moved")


def test_a_link_that_a_task_removes_shows_nobody_what_it_led_to(room: Room, home: Path) -> None:
    said(room, f"rm {home}/.pgpass")
    assert not os.path.lexists(home / ".pgpass")
    assert "secret" not in said(room, f"cat {home}/password")


def test_a_file_that_was_replaced_is_hidden_as_before(room: Room, home: Path) -> None:
    (home / "new").write_text("secret of today")
    (home / "new").rename(home / "password")
    assert "secret" not in said(room, f"cat {home}/password {home}/.pgpass; echo done")


def test_what_was_moved_into_something_hidden_is_in_nobodys_way(room: Room, home: Path) -> None:
    (home / "password").rename(home / "keys/password")
    assert said(room, f"cat {home}/keys/* 2> /dev/null; echo done") == "done\n"
