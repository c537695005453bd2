"""A parameter server for small models: it holds the weights, takes gradients, and gives the weights back.

Each of several pservers has its part of the weights. Whoever talks to one must know the job's id (HMAC); what is sent
is numbers alone, so nothing of it is ever run. A trainer that was killed joins again, and is told how far it was.
"""

from __future__ import annotations

import os
import threading
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener

import numpy as np

JOIN, STEP, LEAVE = b"J", b"S", b"L"
_PATIENCE = 60.0


def serve(trainers: int, learning_rate: float, *, sync: bool) -> None:
    """Serve until stopped, which PaddleCloud does when all trainers have ended."""
    address = (os.environ["POD_IP"], int(os.environ["PADDLE_PORT"]))
    part = Part(trainers, learning_rate, sync=sync)
    with Listener(address, backlog=64, authkey=_key()) as listener:
        print(f"pserver at {address[0]}:{address[1]}, {'synchronous' if sync else 'asynchronous'}", flush=True)
        while True:
            try:
                connection = listener.accept()
            except (AuthenticationError, EOFError, OSError) as error:
                print(f"a stranger was sent away: {error!r}", flush=True)
                continue
            threading.Thread(target=_answer, args=(connection, part), daemon=True).start()


class Part:
    """One pserver's part of the weights, and how far each trainer is."""

    def __init__(self, trainers: int, learning_rate: float, *, sync: bool) -> None:
        self._learning_rate = learning_rate
        self._sync = sync
        self._weights: np.ndarray | None = None
        self._steps = [0] * trainers
        self._training = set(range(trainers))
        self._sent: dict[int, np.ndarray] = {}  # gradients of this round, by trainer
        self._round = 0
        self._changed = threading.Condition()

    def join(self, trainer: int, weights: np.ndarray) -> tuple[int, np.ndarray]:
        """The first to come brings the weights; whoever comes again is told how many steps it has taken."""
        with self._changed:
            if self._weights is None:
                self._weights = weights.copy()
            self._training.add(trainer)
            return self._steps[trainer], self._weights.copy()

    def step(self, trainer: int, gradient: np.ndarray) -> tuple[int, np.ndarray]:
        with self._changed:
            self._sent[trainer] = gradient
            if self._sync:
                here = self._round
                self._end_round()
                self._changed.wait_for(lambda: self._round > here)
            else:
                self._descend()
            return self._steps[trainer], self._weights.copy()

    def leave(self, trainer: int) -> tuple[int, np.ndarray]:
        """A trainer that has done its passes is not waited for any more."""
        with self._changed:
            self._training.discard(trainer)
            self._end_round()
            self._changed.wait_for(lambda: not (self._sync and self._training))  # all end with the same weights
            return self._steps[trainer], self._weights.copy()

    def _end_round(self) -> None:
        if self._sync and self._sent and self._sent.keys() >= self._training:
            self._descend()
            self._round += 1
        self._changed.notify_all()

    def _descend(self) -> None:
        """Take a step by what was sent. It counts for who sent it, also for one that was killed before the answer."""
        self._weights -= self._learning_rate * np.mean(list(self._sent.values()), axis=0)
        for trainer in self._sent:
            self._steps[trainer] += 1
        self._sent.clear()


class Servers:
    """All pservers, as a trainer sees them: one vector of weights."""

    def __init__(self, addresses: list[str], trainer: int) -> None:
        self._trainer = trainer.to_bytes(4, "big")
        self._connections = [_connect(address) for address in addresses]

    def join(self, weights: np.ndarray) -> tuple[int, np.ndarray]:
        """How many steps this trainer has taken already, and the weights as they are."""
        return self._ask(JOIN, weights)

    def step(self, gradient: np.ndarray) -> np.ndarray:
        return self._ask(STEP, gradient)[1]

    def leave(self) -> np.ndarray:
        return self._ask(LEAVE, np.empty(0))[1]

    def _ask(self, what: bytes, vector: np.ndarray) -> tuple[int, np.ndarray]:
        for connection, part in zip(self._connections, np.array_split(vector, len(self._connections))):
            connection.send_bytes(what + self._trainer + part.astype("<f4").tobytes())
        answers = [connection.recv_bytes() for connection in self._connections]
        weights = np.concatenate([np.frombuffer(answer[8:], "<f4") for answer in answers])
        return min(int.from_bytes(answer[:8], "big") for answer in answers), weights


def _answer(connection: Connection, part: Part) -> None:
    """Answer one trainer until it hangs up."""
    try:
        while True:
            asked = connection.recv_bytes()
            trainer, vector = int.from_bytes(asked[1:5], "big"), np.frombuffer(asked[5:], "<f4")
            if asked[:1] == JOIN:
                steps, weights = part.join(trainer, vector)
            elif asked[:1] == STEP:
                steps, weights = part.step(trainer, vector)
            else:
                steps, weights = part.leave(trainer)
            connection.send_bytes(steps.to_bytes(8, "big") + weights.tobytes())
    except (EOFError, OSError):
        connection.close()


def _connect(address: str) -> Connection:
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return Client((host, int(port)), authkey=_key())
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _key() -> bytes:
    return os.environ.get("JOB_ID", "alone").encode()
