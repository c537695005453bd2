"""Every call to Slurm's commands, each with a deadline, and its words read: nothing here decides anything.

A call that Slurm does not answer is an UnreachableError, which changes nothing; after one, no other is tried for a
while, so that a controller that hangs does not hold up the jobs of other clusters; the accounts are asked apart.
"""

from __future__ import annotations

import pwd
import re
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol

from paddlecloud.backends import slurmnodes
from paddlecloud.backends.base import BusyError, RefusedError
from paddlecloud.backends.slurmnodes import Node
from paddlecloud.backends.slurmstate import Seen, by_id, word
from paddlecloud.model.errors import ConfigError, UnreachableError
from paddlecloud.runtime import rootless

_SECONDS = 30.0
_CONTROLLER, _ACCOUNTS = "slurmctld", "slurmdbd"
_SHORTEST_PAUSE_SECONDS = 2.0
_PAUSES = 4  # times as long as it was waited for in vain, so that others have most of the time
_LOOK_SECONDS = 10.0  # of what is asked again and again
_FIELDS = "%i|%u|%T|%r|%S|%e|%j"
_NO_ANSWER = re.compile(
    r"Unable to (?:contact|connect)|Socket timed out|Connection (?:refused|reset|timed)|Zero Bytes|Transport endpoint|"
    r"ommunication connection|ommunication shutdown|Message (?:send|receive) fail|Unexpected message|not responding|"
    r"standby mode|temporarily (?:unable|unavailable)|Munge|authentication|slurmctld|slurmdbd|No route to host|"
    r"configuration (?:file|source)|fatal: |Problem talking to the database",
    re.IGNORECASE,
)
# Lines in which sbatch repeats what it was given: whatever that is, it says nothing of Slurm itself.
_REPEATS = re.compile(r"invalid|unrecognized|ambiguous|requires an argument", re.IGNORECASE)
_VERDICT = re.compile(r"submission failed: *(.*)")
_LATER = re.compile(
    r"(?:Max|Grp)Submit|job count|in use|too many jobs|MaxJobCount|queue (?:is )?full|temporarily unavail|"
    r"inactive or drain",
    re.IGNORECASE,
)
_PASSING = re.compile(r"^sudo: |I/O error", re.MULTILINE)  # accounts that cannot be looked up, a full disk
_GONE = re.compile(
    r"Invalid job id|already (?:completed|finished)|not pending or running|Job/step already", re.IGNORECASE
)
_NO_ACCOUNTING = re.compile(r"accounting storage is disabled", re.IGNORECASE)


_LOOKS = ("squeue", "sacct", "sinfo")


class Calls(Protocol):
    """What the backend asks of Slurm. The names of jobs are our handles, and whose they are says that we made them."""

    @property
    def own(self) -> str:
        """The account that submits where no other is named."""
        ...

    def submit(self, script: str, account: str | None) -> int:
        """The id of the new job; RefusedError: it can never run; BusyError: not now."""
        ...

    def jobs(self) -> Mapping[int, Seen]:
        """All jobs of ours that Slurm still has in mind, by id, in the order in which it would start them."""
        ...

    def nodes(self) -> Sequence[Node]:
        """Every node, once for each of its partitions."""
        ...

    def past(self, ids: Collection[int]) -> Mapping[int, Seen]:
        """What the accounting says of jobs that Slurm has forgotten; nothing where there is none."""
        ...

    def cancel(self, job: int, account: str | None) -> None:
        """End it as Slurm does."""
        ...

    def terminate(self, job: int, account: str | None, *, batch: bool) -> None:
        """SIGTERM to its tasks; `batch`: its only task is the batch script itself."""
        ...

    def addresses(self) -> Collection[str]:
        """What the nodes are reached by, each a name or an address."""
        ...


class Commands:
    """sbatch, squeue, sacct and scancel, as the service's account or, by sudo, as its users'."""

    def __init__(self, *, env: Mapping[str, str], seconds: float = _SECONDS, accounts: Collection[str] = ()) -> None:
        self._env = {**env, "TZ": "UTC", "LC_ALL": "C", "SLURM_TIME_FORMAT": "standard"}
        self._seconds = seconds
        self._silent_until = {_CONTROLLER: 0.0, _ACCOUNTS: 0.0}
        # Who may run a few commands alone may not keep a variable either, so it is asked for only where there is one.
        self._sudo = ["sudo", "-n", *(["--preserve-env=SLURM_CONF"] if env.get("SLURM_CONF") else [])]
        self._users = ",".join(str(user) for user in sorted({rootless.own_uid(), *_numbers(accounts)}))
        self.own = rootless.own_name()
        if shutil.which("sbatch", path=env.get("PATH")) is None:
            raise ConfigError(
                "sbatch is not on this machine: install Slurm's client (Debian: slurm-client), or set PATH"
            )

    def submit(self, script: str, account: str | None) -> int:
        done = self._call(["sbatch", "--parsable"], account, script)
        if done.returncode != 0:
            raise _refusal(done.stderr)
        found = re.match(r"(\d+)", done.stdout)
        if found is None:
            raise UnreachableError(f"sbatch said {done.stdout[:100]!r}, and no number of a job")
        return int(found.group(1))

    def jobs(self) -> Mapping[int, Seen]:
        sorted_by = "--sort=-p,i"
        whose = f"--user={self._users}"
        done = self._call(["squeue", "--noheader", "--states=all", sorted_by, whose, f"--format={_FIELDS}"])
        if done.returncode != 0:
            raise _unreachable(done.stderr)
        return by_id(read_line(line) for line in done.stdout.splitlines())

    def nodes(self) -> Sequence[Node]:
        done = self._call(["sinfo", "--noheader", "--Node", f"--Format={slurmnodes.FORMAT}"])
        if done.returncode != 0:
            raise _unreachable(done.stderr)
        return list(slurmnodes.read(done.stdout))

    def past(self, ids: Collection[int]) -> Mapping[int, Seen]:
        if not ids:
            return {}
        asked = ["sacct", "--noheader", "--parsable2", "--allocations", "--format=JobID,State,Start,End"]
        done = self._call([*asked, f"--jobs={','.join(map(str, sorted(ids)))}"])
        if _NO_ACCOUNTING.search(done.stderr):
            return {}
        if done.returncode != 0:
            raise _unreachable(done.stderr)
        return by_id(read_past(line) for line in done.stdout.splitlines())

    def cancel(self, job: int, account: str | None) -> None:
        self._signal(["scancel", str(job)], account)

    def terminate(self, job: int, account: str | None, *, batch: bool) -> None:
        self._signal(["scancel", "--signal=TERM", *(["--batch"] if batch else []), str(job)], account)

    def addresses(self) -> Collection[str]:
        done = self._call(["scontrol", "--oneliner", "show", "node"])
        if done.returncode != 0:
            raise _unreachable(done.stderr)
        return re.findall(r"\bNodeAddr=(\S+)", done.stdout)

    def _signal(self, command: Sequence[str], account: str | None) -> None:
        done = self._call(command, account)
        if done.returncode != 0 and done.stderr and not _GONE.search(done.stderr):  # without a word: it has just ended
            raise _unreachable(done.stderr)

    def _call(
        self, command: Sequence[str], account: str | None = None, script: str = ""
    ) -> subprocess.CompletedProcess[str]:
        began = time.monotonic()
        asked = _ACCOUNTS if command[0] == "sacct" else _CONTROLLER
        if began < self._silent_until[asked]:
            raise UnreachableError("Slurm did not answer a moment ago; it is asked again soon")
        seconds = min(self._seconds, _LOOK_SECONDS) if command[0] in _LOOKS else self._seconds
        as_account = [] if account is None else [*self._sudo, "-u", account, "--"]
        try:
            done = subprocess.run(
                [*as_account, *command],
                input=script,
                capture_output=True,
                text=True,
                errors="replace",
                env=self._env,
                timeout=seconds,
                cwd="/",
                check=False,
            )
        except subprocess.TimeoutExpired:
            self._be_silent(asked, began)
            raise UnreachableError(f"Slurm did not answer {command[0]} within {seconds:g} s") from None
        except OSError as error:
            raise UnreachableError(f"cannot run {command[0]}: {error.strerror}") from None
        if done.returncode != 0 and did_not_answer(done.stderr):
            self._be_silent(asked, began)
            raise _unreachable(done.stderr)
        return done

    def _be_silent(self, asked: str, began: float) -> None:
        now = time.monotonic()
        self._silent_until[asked] = now + max(_SHORTEST_PAUSE_SECONDS, _PAUSES * (now - began))


def read_line(line: str) -> Seen | None:
    """A line of squeue."""
    found, parts = re.match(r"\d+", line), line.split("|", 6)
    if found is None or len(parts) < 7:
        return None
    _, user, state, reason, start, end, name = parts
    return Seen(
        id=int(found.group()),
        name=name,
        user=user,
        state=word(state),
        reason=reason,
        start_at=_time(start),
        end_at=_time(end),
    )


def read_past(line: str) -> Seen | None:
    """A line of sacct."""
    found, parts = re.match(r"\d+", line), line.split("|")
    if found is None or len(parts) < 4:
        return None
    return Seen(id=int(found.group()), state=word(parts[1]), start_at=_time(parts[2]), end_at=_time(parts[3]))


def did_not_answer(stderr: str) -> bool:
    """Whether a command failed because it did not reach Slurm, whatever it was asked for."""
    if verdict := _VERDICT.search(stderr):
        return bool(_NO_ANSWER.search(verdict.group(1)))
    return any(_NO_ANSWER.search(line) and not _REPEATS.search(line) for line in stderr.splitlines())


def _numbers(accounts: Collection[str]) -> Iterator[int]:
    """Of those that there are: squeue would refuse to tell anything of the others."""
    for name in accounts:
        with suppress(KeyError):
            yield pwd.getpwnam(name).pw_uid


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)  # a tenth of what strptime takes, for every job
    except ValueError:
        return None  # N/A, Unknown, None


def _words(stderr: str) -> str:
    lines = [re.sub(r"^\w+: (?:error: )?", "", line).strip() for line in stderr.splitlines() if line.strip()]
    return "; ".join(dict.fromkeys(lines))[:500] or "no word of why"


def _unreachable(stderr: str) -> UnreachableError:
    return UnreachableError(f"Slurm does not answer: {_words(stderr)}")


def _refusal(stderr: str) -> RefusedError | BusyError:
    words = _words(stderr).replace("Batch job submission failed: ", "")
    verdict = _VERDICT.search(stderr)
    if _PASSING.search(stderr):
        return BusyError(f"Slurm cannot be given it now: {words}")
    if verdict and any(_LATER.search(line) and not _REPEATS.search(line) for line in stderr.splitlines()):
        return BusyError(f"Slurm takes no more jobs now: {words}")
    return RefusedError(f"Slurm refuses it: {words}")
