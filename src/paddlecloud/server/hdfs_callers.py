"""Who a client of WebHDFS speaks for. It has no credentials, so its address holds a secret, `/t/<secret>/webhdfs/v1/…`;
a name alone (`user.name`) is believed only as far as [webhdfs] plain says, and never from behind a proxy.

off     never
tasks   from a process of a live task of that user on this machine, or from a machine that one has just called from
logins  also from an address that has just logged in as that user, whoever else is behind that address; on this machine
        not from tasks of others
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool

from paddlecloud.model.accounts import WebHdfsAccess
from paddlecloud.model.errors import NotFoundError, UnauthenticatedError
from paddlecloud.model.job import Job
from paddlecloud.model.user import Scope, User
from paddlecloud.runtime.folder import TaskFolder
from paddlecloud.server.auth import Identity
from paddlecloud.server.derived_tokens import DerivedTokens
from paddlecloud.server.face_settings import LOGINS, OFF
from paddlecloud.server.peers import Address, Peers, is_here
from paddlecloud.server.secret_paths import PREFIX
from paddlecloud.server.seen import Seen
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.users import Users

_PURPOSE = "addresses of WebHDFS"
_FAR_LIFETIME = timedelta(minutes=10)
_AT_ONCE = 4
_OTHERS = ""  # whoever it is: no user has such a name
REMEDY = "`paddlecloud webhdfs` prints the address to use instead, which is yours alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a request says of who sends it, and where it comes from."""

    secret: str | None
    names: Sequence[str]
    client: Address | None
    server: Address | None
    passed_on: bool  # by a proxy, or by a browser for a page: the address then says nothing of who asks


class HdfsCallers:
    """`logins` knows who has just logged in from where; `tasks` is the folder of tasks, by cluster and handle."""

    def __init__(
        self,
        users: Users,
        sign: Callable[[str, str], str],
        jobs: Jobs,
        tasks: Path,
        plain: str,
        logins: Seen,
        clock: Callable[[], datetime],
    ) -> None:
        self._users = users
        self._jobs = jobs
        self._tasks = tasks
        self._plain = plain
        self._logins = logins
        self._clock = clock
        self._far = Seen(_FAR_LIFETIME)
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

    async def identify(self, claim: Claim) -> Identity:
        """Who sends it; UnauthenticatedError says what to do about it."""
        if claim.secret is not None:
            address = claim.client[0] if claim.client else ""
            user = await self._secrets.owner(claim.secret, address, self._clock())
            if any(name != user.name for name in claim.names):
                raise UnauthenticatedError(f"this address is that of {user.name}, and user.name says another: {REMEDY}")
        else:
            user = await to_thread.run_sync(self._believed, claim, limiter=self._threads)
        # An address is shown and copied about: what only admins may do is not done by one.
        return Identity(user=user, scope=Scope.WRITE)

    async def recheck(self, claim: Claim) -> None:
        """Raise if who was identified by this a while ago has been shut out since."""
        if claim.secret is not None:
            await self.identify(claim)
        else:
            await run_in_threadpool(self._users.in_epoch, claim.names[0])

    def _believed(self, claim: Claim) -> User:
        names = set(claim.names)
        if len(names) != 1:
            raise UnauthenticatedError(f"the request does not say who sends it: {REMEDY}")
        name = names.pop()
        if self._plain == OFF:
            raise UnauthenticatedError(f"user.name alone is not believed here: {REMEDY}")
        if claim.client is None or claim.passed_on or not self._is_at(name, claim.client, claim.server):
            raise UnauthenticatedError(
                f"user.name={name[:100]} alone is not believed from here: {REMEDY}; without it, only "
                f"{self._believers(name[:100])} may ask"
            )
        try:
            return self._users.in_epoch(name)[0]
        except NotFoundError:
            raise UnauthenticatedError(f"there is no user {name}: {REMEDY}") from None

    def _believers(self, name: str) -> str:
        tasks = f"running tasks of {name}"
        return tasks if self._plain != LOGINS else f"{tasks}, and an address that has just logged in as {name},"

    def _is_at(self, name: str, client: Address, server: Address | None) -> bool:
        now = self._clock()
        came_in = self._plain == LOGINS and self._logins.lately(name, client[0], now)
        held = [job for job in self._jobs.live() if job.state.held]
        own = [job for job in held if job.user == name]
        if not own and not came_in:
            return False
        socket = self._peers.socket(client, server) if server is not None else None
        if socket is None:
            # Who hung up on this machine before they were looked for may be anybody.
            return not is_here(client[0]) and (came_in or self._far.lately(name, client[0], now))
        if self._peers.is_below(socket, name, self._supervisors(own)):
            return True
        # Tasks of others have the address of this machine too, which somebody may have logged in from.
        others = [job for job in held if job.user != name]
        return came_in and not self._peers.is_below(socket, _OTHERS, self._supervisors(others))

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
