"""A real server on a loopback port, in this process, whose tasks end when a test says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import urllib3

from paddlecloud.backends.base import Launch
from paddlecloud.model.job import Resources
from paddlecloud.model.user import Role, Scope, User
from paddlecloud.server import config
from paddlecloud.server.app import create, utc_now
from paddlecloud.server.certificate import Certificate
from paddlecloud.server.datadir import hold
from paddlecloud.server.listening import Server, address, listen
from paddlecloud.server.services import Services
from paddlecloud.store.db import Database
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.fakes import FakeBackend
from tests.migrated import migrated
from tests.waiting import wait_until

MACHINE = Resources(cpus=1000.0, memory_bytes=2**40)


class Running:
    """The server, its parts, and requests to it in the name of its users."""

    def __init__(self, url: str, services: Services, users: Users, backends: Mapping[str, FakeBackend]) -> None:
        self.url = url
        self.services = services
        self.users = users
        self.backends = backends
        self.pool = urllib3.PoolManager(retries=False, timeout=30.0, maxsize=20)
        self.root = self.add_user("root-of-all", Role.ADMIN, Scope.ADMIN)
        self.ann = self.add_user("ann")
        self.bob = self.add_user("bob")

    def add_user(self, name: str, role: Role = Role.USER, scope: Scope = Scope.WRITE) -> str:
        """A new user; their token."""
        self.users.add(name, role, None, utc_now())
        return self.token(name, scope)

    def token(self, name: str, scope: Scope) -> str:
        return self.users.add_token(name, "test", scope, None, utc_now())[1]

    def user(self, name: str) -> User:
        return self.users.get(name)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        """The answer to a request in the name of a token's user; of Ann, if none is given."""
        sent = {"Authorization": f"Bearer {self.ann if token is None else token}", **(headers or {})}
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        return self.pool.request(method, self.url + path, body=raw, headers=sent, preload_content=not stream)

    def get(self, path: str, token: str | None = None) -> Any:
        answer = self.ask("GET", path, token=token)
        assert answer.status == 200, answer.data
        return answer.json()

    def submit(self, command: str = "go on", *, token: str | None = None, **changes: Any) -> str:
        """A job's id."""
        answer = self.ask("POST", "/v1/jobs", a_spec(command, **changes), token=token)
        assert answer.status == 201, answer.data
        return str(answer.json()["id"])

    def state(self, job: str) -> str:
        return str(self.get(f"/v1/jobs/{job}", self.root)["job"]["state"])

    def reaches(self, job: str, state: str) -> None:
        wait_until(lambda: self.state(job) == state, f"{job} is {state}")

    def run(self, command: str = "go on", **changes: Any) -> str:
        """The id of a job that is running."""
        job = self.submit(command, **changes)
        self.reaches(job, "running")
        return job

    def finish(self, job: str, exit_code: int = 0) -> None:
        backend, launch = self._launched(job)
        backend.end(launch.handle, exit_code=exit_code)
        self.services.loop.wake()

    def say(self, job: str, task: str, text: bytes) -> None:
        """Text in a task's log."""
        folder = self._launched(job)[1].results / "log"
        folder.mkdir(exist_ok=True)
        with (folder / f"{task}.log").open("ab") as log:
            log.write(text)

    def results(self, job: str) -> Path:
        return self._launched(job)[1].results

    def _launched(self, job: str) -> tuple[FakeBackend, Launch]:
        return next(
            (backend, launch)
            for backend in self.backends.values()
            for launch in reversed(backend.launches)
            if launch.job == job
        )


def a_spec(command: str = "go on", *, count: int = 1, **changes: Any) -> dict[str, object]:
    return {"roles": [{"name": "trainer", "count": count, "command": command}], **changes}


@contextmanager
def running(
    data: Path,
    plain: Mapping[str, object] | None = None,
    capacities: Mapping[str, Resources | None] | None = None,
    certificate: Certificate | None = None,
    head_seconds: float = 30.0,
) -> Iterator[Running]:
    """A server with these settings, whose clusters have these capacities (plenty where nothing is said)."""
    settings = config.parse(plain or {"clusters": {"local": {"policy": "open"}}}, data=data)
    settings = replace(settings, server=replace(settings.server, port=0))
    amounts = {name: (capacities or {}).get(name, MACHINE) for name in settings.clusters}
    backends = {name: FakeBackend(amount, clock=utc_now) for name, amount in amounts.items()}
    with hold(settings.server.data) as folder, listen(settings.server, embedded=False) as listening:
        migrated(folder.database)
        app = create(settings, utc_now, backends=lambda *_: backends)
        server = Server(app, certificate=certificate, handshake_seconds=1.0, head_seconds=head_seconds)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="server")
        thread.start()
        try:
            wait_until(lambda: server.started or not thread.is_alive(), "the server has started")
            database = Database.open(f"sqlite:///{folder.database}")
            url = address(listening, encrypted=certificate is not None)
            made = Running(url, app.state.services, Users(database, Cipher(folder.key)), backends)
            yield made
            made.pool.clear()
            database.close()
        finally:
            app.state.services.changes.close()
            server.should_exit = True
            thread.join()
