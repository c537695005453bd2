"""Trainers start after the pservers of their job listen, or have ended, or have had their time."""

from __future__ import annotations

import os
import secrets
import signal
import socket
from pathlib import Path

import pytest

from paddlecloud.backends.base import Launch
from paddlecloud.model.task import TaskState
from tests.contract.local import Room, log
from tests.launches import ended, started, wait_for
from tests.waiting import wait_until

LISTEN = """
import os, socket, time
while not os.path.exists({go!r}):
    time.sleep(0.01)
listener = socket.socket()
listener.bind(({host}, int(os.environ[{port!r}])))
listener.listen()
listener.settimeout(2)
try:
    listener.accept()
    print("someone knocked", flush=True)
except TimeoutError:
    print("nobody knocked", flush=True)
time.sleep(1000)
"""
OWN = 'os.environ["POD_IP"]'


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def with_pserver(room: Room, pserver: str, trainer: str = "echo trained") -> Launch:
    # Its own: at PADDLE_INIT_PORT, a test beside this one would be found.
    address = f"127.77.{secrets.randbelow(250)}.{secrets.randbelow(250) + 1}"
    return room.launch(trainer, pservers=[pserver], ports=free_ports(2), address=address, distribute="PSERVER")


@pytest.mark.parametrize(("host", "port"), [(OWN, "PADDLE_PORT"), ("''", "PADDLE_PORT"), (OWN, "PADDLE_INIT_PORT")])
def test_a_trainer_starts_once_its_pserver_listens(room: Room, host: str, port: str) -> None:
    go = room.folder / "results" / "go"
    go.parent.mkdir()  # which the tasks would, a moment after they are said to have started
    source = LISTEN.format(go=str(go), host=host, port=port)
    launch = with_pserver(room, f"exec python -c '{source.replace(chr(39), chr(34))}'")
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    assert log(launch) == ""
    go.touch()
    wait_until(lambda: log(launch) == "trained\n", "the trainer has run")
    wait_until(lambda: "nobody knocked" in log(launch, "pserver-0"), "the pserver was left alone")


def test_a_trainer_waits_for_no_pserver_that_has_ended(room: Room) -> None:
    launch = with_pserver(room, "sleep 0.3")
    room.backend.start(launch)
    tasks = wait_for(room.backend, launch.handle, ended).tasks
    assert [task.state for task in tasks] == [TaskState.SUCCEEDED, TaskState.SUCCEEDED]


def test_a_trainer_that_has_waited_long_enough_says_so_and_starts(tmp_path: Path) -> None:
    with Room(tmp_path, gate_seconds=0.3) as room:
        launch = with_pserver(room, "sleep 1000")
        room.backend.start(launch)
        wait_until(lambda: "trained" in log(launch), "the trainer has run")
        place = launch.placement.tasks[1]
        endpoint = f"{place.address}:{place.ports[0]}"
        assert log(launch) == (
            f"paddlecloud: pserver-0 at {endpoint} does not listen after 0.3 s; this trainer starts all the same\n"
            "trained\n"
        )


def test_a_stop_is_heard_at_the_gate(room: Room) -> None:
    launch = with_pserver(room, "sleep 1000")
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    room.backend.stop(launch.handle)
    tasks = {task.name: task for task in wait_for(room.backend, launch.handle, ended).tasks}
    assert tasks["trainer-0"].outcome == "stopped before it started"


def test_a_trainer_does_not_start_because_a_stop_has_ended_its_pserver(room: Room) -> None:
    launch = with_pserver(room, "sleep 1000")
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    os.kill(room.supervisor(launch), signal.SIGSTOP)
    room.backend.stop(launch.handle)
    wait_until(lambda: room.task_folder(launch, "pserver-0").ended, "the pserver has ended")
    os.kill(room.supervisor(launch), signal.SIGCONT)
    tasks = {task.name: task for task in wait_for(room.backend, launch.handle, ended).tasks}
    assert tasks["trainer-0"].outcome == "stopped before it started"
