"""A process is its boot, pid and start time; a zombie is dead."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from paddlecloud.runtime import processes
from tests.waiting import wait_until


def _identity(pid: int) -> processes.Identity:
    start = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return processes.Identity(boot=processes.boot_id(), pid=pid, start=start)


def test_this_process_is_alive() -> None:
    own = processes.own_identity()
    assert own.alive
    assert own == _identity(os.getpid())


def test_a_stranger_with_the_same_pid_is_not_the_same_process() -> None:
    own = processes.own_identity()
    assert not own._replace(start=own.start + 1).alive
    assert not own._replace(boot="another boot").alive


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen(["true"])
    identity = _identity(child.pid)
    wait_until(lambda: not identity.alive, "the child ends")
    assert Path(f"/proc/{child.pid}").exists()
    child.wait()


def test_descendants_are_found_and_strangers_are_not(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    with subprocess.Popen(["sh", "-c", f"sleep 1000 & echo $! > {ready}.part; mv {ready}.part {ready}; wait"]) as shell:
        wait_until(ready.exists, "the shell has a child")
        grandchild = int(ready.read_text())
        found = processes.descendants(os.getpid())
        assert {shell.pid, grandchild} <= set(found)
        assert os.getpid() not in found
        assert processes.descendants(shell.pid) == list(processes.walk_below(shell.pid)) == [grandchild]
        assert {shell.pid, grandchild} <= set(processes.walk_below(os.getpid()))
        assert (processes.ancestors(grandchild) or [])[:2] == [shell.pid, os.getpid()]
        processes.send([grandchild], 9)
    assert processes.ancestors(shell.pid) is None
    assert list(processes.walk_below(shell.pid)) == []


def test_children_of_every_thread_are_found() -> None:
    started: list[subprocess.Popen[bytes]] = []
    ended = threading.Event()

    def start() -> None:
        started.append(subprocess.Popen(["sleep", "1000"]))
        ended.wait()  # with its end, its children would be those of another thread

    thread = threading.Thread(target=start)
    thread.start()
    wait_until(lambda: started, "the thread has a child")
    with started[0] as child:
        assert child.pid in processes.walk_below(os.getpid())
        ended.set()
        child.kill()
    thread.join()


def test_a_name_with_parentheses_does_not_confuse(tmp_path: Path) -> None:
    program = tmp_path / "a) R 1 (b"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    with subprocess.Popen([str(program), "1000"]) as child:
        assert child.pid in processes.descendants(os.getpid())
        assert _identity(child.pid).alive
        child.kill()


def test_marked_processes_are_found_only_by_all_their_marks() -> None:
    with subprocess.Popen(["sleep", "1000"], env={"MARK_A": "1", "MARK_B": "2"}) as child:
        wait_until(lambda: processes.marked(["MARK_A=1", "MARK_B=2"]) == [child.pid], "it is found")
        assert processes.marked(["MARK_A=1", "MARK_B=3"]) == []
        child.kill()


def test_a_signal_also_reaches_what_is_being_made_while_it_is_sent() -> None:
    crowd = "import os, time\nfor _ in range(150): os.fork() or time.sleep(1000)\ntime.sleep(1000)"
    above = f"""
import signal, subprocess, sys, time
from paddlecloud.runtime import namespaces, processes
namespaces.become_subreaper()
subprocess.Popen([sys.executable, "-c", {crowd!r}])
while len(processes.descendants(processes.own_identity().pid)) < 30:
    pass
processes.send_below(signal.SIGTERM)
deadline = time.monotonic() + 10
while processes.has_children() and time.monotonic() < deadline:
    if not processes.reap():
        time.sleep(0.01)
left = processes.has_children()
processes.end_all_children()
sys.exit("some were not told" if left else 0)
"""
    ended = subprocess.run([sys.executable, "-c", above], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
