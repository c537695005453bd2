"""The forking helper: a small process with one thread that makes a supervisor for each task by two forks.

A fork of it costs a few milliseconds where a fresh interpreter costs fifty, and, unlike the server's, is safe, since no
thread can hold a lock meanwhile. Supervisors are no one's children; the helper ends with the server, they go on.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback

from paddlecloud.runtime import cgroups, namespaces
from paddlecloud.runtime.cgroups import Groups
from paddlecloud.runtime.namespaces import Isolation
from paddlecloud.runtime.run import supervise

REQUEST_BYTES = 8192


def main(fd: int, root: str, group: str, with_namespaces: str, with_cgroups: str) -> None:
    """Serve requests from the socket `fd` until the server is gone: {"folder": …} -> {} or {"error": …}.

    `group` names the folder of our control groups; an empty `with_…` leaves that kind of isolation out.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = socket.socket(fileno=fd)
    groups = cgroups.find(group, cgroups.own_hierarchies() if with_cgroups else [])
    isolation = _probe(root) if with_namespaces else Isolation()
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page of ours
    _answer(channel, {"mount": isolation.mount, "isolation": f"{isolation}; {groups}"})
    while True:
        request = channel.recv(REQUEST_BYTES)
        if not request:
            break
        _answer(channel, _fork_supervisor(channel, json.loads(request)["folder"], isolation, groups))
    groups.remove()


def _fork_supervisor(channel: socket.socket, folder: str, isolation: Isolation, groups: Groups) -> dict[str, object]:
    try:
        between = os.fork()
    except OSError as error:
        return {"error": f"cannot start a process: {error.strerror}"}
    if between == 0:
        code = 1
        try:
            helper = os.getppid()
            if os.fork() == 0:
                _become_supervisor(channel, folder, isolation, groups, helper)
            code = 0
        except OSError:
            pass
        finally:
            os._exit(code)
    if os.waitpid(between, 0)[1] != 0:
        return {"error": "cannot start a process: too many are running"}
    return {}


def _become_supervisor(channel: socket.socket, folder: str, isolation: Isolation, groups: Groups, helper: int) -> None:
    code = 1
    try:
        channel.close()
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        supervise(folder, isolation, groups, time.time)
        if not os.path.exists(f"/proc/{helper}"):
            groups.remove()  # the helper could not, while this task was running
        code = 0
    except BaseException:  # nothing may unwind into the helper's loop in this process
        traceback.print_exc()
    finally:
        os._exit(code)


def _probe(root: str) -> Isolation:
    scratch = tempfile.mkdtemp(prefix=".probe-", dir=root)
    try:
        for name in ("lower", "upper", "overlay", "work"):
            os.mkdir(os.path.join(scratch, name))
        return namespaces.probe(scratch)
    finally:
        for folder, _, _ in os.walk(scratch):
            os.chmod(folder, 0o700)
        shutil.rmtree(scratch, ignore_errors=True)


def _answer(channel: socket.socket, words: dict[str, object]) -> None:
    try:
        channel.send(json.dumps(words).encode())
    except OSError:
        sys.exit(0)  # the server is gone
