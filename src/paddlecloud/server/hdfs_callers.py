"""Identifies callers of WebHDFS, which have no credentials: by the secret in the address, or by where they call from.

`/t/<secret>/webhdfs/v1/…` names its user. A name alone (`user.name`) is believed only as far as [webhdfs] plain says:

off     never
tasks   from a process of a live task of that user on this machine, or from a machine that one has just called from
logins  also from an address where that user, and nobody else, has just logged in through OpenPAI's API; on this machine
        not from tasks of others, and never from a node of a cluster

Invariant: a name alone is not believed from a proxy, nor on a connection that is closed before the look-up has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from anyio import CapacityLimiter, Event, move_on_after, to_thread
from starlette.concurrency import run_in_threadpool

from paddlecloud.model.accounts import VSCODE_SETTING, WebHdfsAccess, vscode_line
from paddlecloud.model.errors import NotFoundError, UnauthenticatedError
from paddlecloud.model.job import Job
from paddlecloud.model.user import Scope, User
from paddlecloud.runtime.folder import TaskFolder
from paddlecloud.server.audit import Origin
from paddlecloud.server.auth import Identity
from paddlecloud.server.derived_tokens import DerivedTokens
from paddlecloud.server.face_settings import LOGINS, OFF
from paddlecloud.server.peers import Address, Peers, is_here
from paddlecloud.server.rates import Rates
from paddlecloud.server.secret_paths import PREFIX
from paddlecloud.server.seen import Seen
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.users import Users

_PURPOSE = "addresses of WebHDFS"
_FAR_LIFETIME = timedelta(minutes=10)
_LOGIN_LIFETIME = timedelta(seconds=4000)  # what a client of OpenPAI asks for when it logs in
_LOGIN_SECONDS = 10.0  # that a call waits for a login under way
_AT_ONCE = 4
_THIS_MACHINE = "127.0.0.1"  # any task can call from any address of 127.0.0.0/8: they share one limit
REMEDY = "`paddlecloud webhdfs` prints the address to use instead, which is yours alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a request says of who sends it, and where it comes from."""

    secret: str | None
    names: Sequence[str]
    client: Address | None
    server: Address | None
    host: str  # of the server, as the client calls it
    passed_on: bool  # by a proxy, or by a browser for a page: the address then says nothing of who asks
    is_established: Callable[[], bool]  # whether both sides still have the connection; the event loop's thread asks


class _Pending:
    """Logins from one address that are under way."""

    def __init__(self) -> None:
        self.count = 0
        self.over = Event()


class HdfsCallers:
    """`tasks` is the folder of tasks, by cluster and handle."""

    def __init__(
        self,
        users: Users,
        sign: Callable[[str, str], str],
        jobs: Jobs,
        tasks: Path,
        plain: str,
        rates: Rates,
        clock: Callable[[], datetime],
        runs_tasks_at: Callable[[str], bool] = lambda _: False,  # whether a node of a cluster has an address
    ) -> None:
        self._users = users
        self._jobs = jobs
        self._tasks = tasks
        self._plain = plain
        self._rates = rates
        self._clock = clock
        self._runs_tasks_at = runs_tasks_at
        self._logins = Seen(_LOGIN_LIFETIME)
        self._far = Seen(_FAR_LIFETIME)
        self._pending: dict[str, _Pending] = {}  # by address; the event loop's thread alone looks there
        self._peers = Peers()
        self._threads = CapacityLimiter(_AT_ONCE)  # anybody may say a name: the threads of all others are not theirs
        self._secrets = DerivedTokens(
            users, sign, purpose=_PURPOSE, prefix=PREFIX, refusal=f"the secret in this address is nobody's: {REMEDY}"
        )

    def access(self, user: User) -> WebHdfsAccess:
        """How the clients of a user come in: it is the same until all that they came in by is ended."""
        return WebHdfsAccess(user=user.name, path=f"/t/{self._secrets.of(user)}", plain=self._plain)

    def task_called(self, job: Job, address: str) -> None:
        """A task of this job has called from there, with its own token."""
        self._far.note(job.user, address, self._clock())

    def logged_in(self, user: User, origin: Origin) -> None:
        """A client of OpenPAI's API has given the user's password. A proxy's address says nothing of who that was."""
        if not origin.passed_on:
            self._logins.note(user.name, origin.address, self._clock(), self._users.epoch(user.name))

    @contextmanager
    def logging_in(self, origin: Origin) -> Iterator[None]:
        """While a client of OpenPAI's API logs in: calls from its address wait for the end of it."""
        pending = self._pending.setdefault(origin.address, _Pending())
        pending.count += 1
        try:
            yield
        finally:
            pending.count -= 1
            if not pending.count:
                self._pending.pop(origin.address)
                pending.over.set()

    async def identify(self, claim: Claim) -> Identity:
        """Who sends it; UnauthenticatedError says what to do about it."""
        if claim.secret is not None:
            address = claim.client[0] if claim.client else ""
            user = await self._secrets.owner(claim.secret, address, self._clock())
            if any(name != user.name for name in claim.names):
                raise UnauthenticatedError(f"this address is that of {user.name}, and user.name says another: {REMEDY}")
        else:
            await self._await_login(claim)
            user = await to_thread.run_sync(self._believed, claim, limiter=self._threads)
            if not claim.is_established():
                self._count_refusal(claim)
                # Its port may have gone to another process meanwhile, and the look-up have found that one.
                raise UnauthenticatedError(f"the connection was closed before its caller was known: {REMEDY}")
        # An address is shown and copied about: what only admins may do is not done by one.
        return Identity(user=user, scope=Scope.WRITE)

    async def recheck(self, claim: Claim) -> None:
        """Raise if who was identified by this a while ago has been shut out since."""
        if claim.secret is not None:
            await self.identify(claim)
        else:
            await run_in_threadpool(self._users.in_epoch, claim.names[0])

    async def _await_login(self, claim: Claim) -> None:
        """A client that finds the server started anew logs in and asks for its files at the same time."""
        address = claim.client[0] if claim.client else ""
        pending = self._pending.get(address) if self._plain == LOGINS else None
        if pending is not None and self._logins.only(address, self._clock()) not in claim.names:
            with move_on_after(_LOGIN_SECONDS):
                await pending.over.wait()

    def _believed(self, claim: Claim) -> User:
        names = set(claim.names)
        if len(names) != 1:
            raise UnauthenticatedError(f"the request does not say who sends it: {REMEDY}")
        name = names.pop()
        if self._plain == OFF:
            raise UnauthenticatedError(f"user.name alone is not believed here: {REMEDY}")
        if claim.client is None or claim.passed_on or not self._is_at(name, claim.client, claim.server):
            self._count_refusal(claim)
            raise UnauthenticatedError(
                f"user.name={name[:100]} alone is not believed from here: {REMEDY}; without it, only "
                f"{self._believers(name[:100])} may ask. {self._for_vscode(claim.host[:200])}"
            )
        try:
            return self._users.in_epoch(name)[0]
        except NotFoundError:
            raise UnauthenticatedError(f"there is no user {name}: {REMEDY}") from None

    def _for_vscode(self, host: str) -> str:
        line = vscode_line(host, "/t/<your secret>")
        told = f"In VS Code's configuration of this cluster write {line}: the home page (http://{host}/) shows it whole"
        return told if self._plain == LOGINS else f"{told}. No line is needed once the operator writes {VSCODE_SETTING}"

    def _believers(self, name: str) -> str:
        tasks = f"running tasks of {name}"
        return tasks if self._plain != LOGINS else f"{tasks}, and an address where only {name} has just logged in,"

    def _is_at(self, name: str, client: Address, server: Address | None) -> bool:
        now = self._clock()
        came_in = self._plain == LOGINS and self._has_come_in(name, client[0], now)
        own = self._held(name)
        if not own and not came_in:
            return False
        if not is_here(client[0]):
            runs_there = bool(own) and self._far.lately(name, client[0], now)
            return runs_there or (came_in and self._is_no_node(client[0], now))
        end = self._peers.end(client, server) if server is not None else None
        if end is None:
            return False
        if self._peers.is_below(end, name, self._supervisors(own)):
            return True
        if not came_in or self._peers.is_known_outside(end):
            return came_in
        # The only look-up that takes long. Those of tasks are never held up by what others on this machine ask.
        self._rates.check_unknown_caller(_THIS_MACHINE, now)
        return self._peers.is_outside(end, lambda: self._supervisors(self._held()))

    def _is_no_node(self, address: str, now: datetime) -> bool:
        """Whether no task could call from there in the name of a user who has logged in there."""
        return not self._far.anybody(address, now) and not self._runs_tasks_at(address)

    def _has_come_in(self, name: str, address: str, now: datetime) -> bool:
        """Whether they alone have logged in there, and nothing has ended their credentials since."""
        if self._logins.only(address, now) != name:
            return False
        try:
            return self._logins.epoch(name, address) == self._users.epoch(name)
        except NotFoundError:
            return False

    def _count_refusal(self, claim: Claim) -> None:
        """Raise RateError if too many were refused from there. Callers that are believed are not counted, nor held up
        by those that are not: they may share the address."""
        host = claim.client[0] if claim.client else ""
        self._rates.unknown_caller(_THIS_MACHINE if is_here(host) else host, self._clock())

    def _held(self, user: str | None = None) -> list[Job]:
        """The jobs that have tasks somewhere, of one user or of all."""
        return [job for job in self._jobs.live() if job.state.held and user in (None, job.user)]

    def _supervisors(self, held: Sequence[Job]) -> Iterator[int]:
        """The processes on this machine that watch tasks of these jobs."""
        for job in held:
            if job.placement is None:
                continue
            folder = self._tasks / job.placement.cluster / job.handle
            for task in job.placement.tasks:
                begun = TaskFolder(str(folder / task.name)).begun
                if begun is not None and begun.identity.alive:
                    yield begun.identity.pid
