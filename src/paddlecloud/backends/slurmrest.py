"""Slurm by its REST service, where the operator names it with a token; what it is asked is what the commands are.

It reads no #SBATCH lines, so those of our own script are put into its words here. A token is read anew for each call:
tokens end, and whoever renews one writes the file again.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from paddlecloud.backends.base import BusyError, RefusedError
from paddlecloud.backends.slurmnodes import Node, count_gpus, is_up
from paddlecloud.backends.slurmstate import Seen, by_id, combine, word
from paddlecloud.model.errors import ConfigError, UnreachableError
from paddlecloud.model.job import Resources

_SECONDS = 20.0
_PAUSE_SECONDS = 2.0
_HETEROGENEOUS = "#SBATCH hetjob"
_LATER = re.compile(r"submit limit|job count|too many|not available \(down", re.IGNORECASE)
# sbatch's option -> the field of a job; what is not here is not known there.
_FIELDS = {
    "job-name": "name",
    "comment": "comment",
    "output": "standard_output",
    "chdir": "current_working_directory",
    "time": "time_limit",
    "ntasks": "tasks",
    "nodes": "nodes",
    "cpus-per-task": "cpus_per_task",
    "mem-per-cpu": "memory_per_cpu",
    "gpus-per-task": "gpus_per_task",
    "partition": "partition",
    "qos": "qos",
    "account": "account",
    "constraint": "constraints",
    "gres": "gres",
    "nodelist": "required_nodes",
    "exclude": "excluded_nodes",
    "reservation": "reservation",
    "licenses": "licenses",
    "nice": "nice",
}
_NUMBERS = frozenset({"time_limit", "tasks", "cpus_per_task", "memory_per_cpu", "nice"})


class Rest:
    """One service, such as http://ctl:6820/slurm/v0.0.38. `{account}` in the name of the file with the token is whose
    it is."""

    def __init__(self, url: str, token_file: str, own_account: str) -> None:
        if not re.fullmatch(r"https?://[^/]+(?:/[^/]+)*/slurm/v\d+\.\d+\.\d+", url.rstrip("/")):
            raise ConfigError(
                f"slurmrestd = {url!r} must end with its version, such as http://localhost:6820/slurm/v0.0.38",
                field="slurmrestd",
            )
        self._url = url.rstrip("/")
        self._accounting = re.sub(r"/slurm/(v[\d.]+)$", r"/slurmdb/\1", self._url)
        self._token_file = token_file
        self.own = own_account
        self._silent_until = 0.0

    def submit(self, script: str, account: str | None) -> int:
        said = self._ask("POST", f"{self._url}/job/submit", account, request(script))
        if not said.get("job_id"):
            raise UnreachableError("slurmrestd took a job and said no number of it")
        return int(said["job_id"])

    def jobs(self) -> Mapping[int, Seen]:
        said = self._look(f"{self._url}/jobs")
        by_turn = sorted(
            said.get("jobs", ()), key=lambda job: (-_number(job.get("priority")), _number(job.get("job_id")))
        )
        return by_id(map(_seen, by_turn))

    def nodes(self) -> Sequence[Node]:
        default = {
            part["name"] for part in self._look(f"{self._url}/partitions").get("partitions", ()) if _takes_all(part)
        }
        return [
            _node(one, partition, is_default=partition in default)
            for one in self._look(f"{self._url}/nodes").get("nodes", ())
            for partition in one.get("partitions", ())
        ]

    def past(self, ids: Collection[int]) -> Mapping[int, Seen]:
        found = {}
        for number in sorted(ids):
            jobs = self._look(f"{self._accounting}/job/{number}").get("jobs", ())
            if jobs:
                found[number] = combine([_seen_past(job) for job in jobs])
        return found

    def cancel(self, job: int, account: str | None) -> None:
        self._signal(job, account, "KILL")

    def terminate(self, job: int, account: str | None, *, batch: bool) -> None:  # noqa: ARG002 - it signals both
        self._signal(job, account, "TERM")

    def addresses(self) -> Collection[str]:
        return [
            str(node["address"]) for node in self._look(f"{self._url}/nodes").get("nodes", ()) if node.get("address")
        ]

    def _look(self, url: str) -> dict[str, Any]:
        """What is only looked at is never refused: it is not told now."""
        try:
            return self._ask("GET", url, None)
        except (RefusedError, BusyError) as error:
            raise UnreachableError(error.message) from None

    def _signal(self, job: int, account: str | None, signal: str) -> None:
        try:
            self._ask("DELETE", f"{self._url}/job/{job}?signal={signal}", account)
        except RefusedError:
            return  # it has just ended

    def _ask(self, method: str, url: str, account: str | None, body: object = None) -> dict[str, Any]:
        if time.monotonic() < self._silent_until:
            raise UnreachableError("slurmrestd did not answer a moment ago; it is asked again soon")
        raw = None if body is None else json.dumps(body).encode()
        status, text = self._answer(Request(url, raw, self._headers(account or self.own), method=method))
        try:
            said: dict[str, Any] = json.loads(text)
        except ValueError:
            raise UnreachableError(f"slurmrestd answered {status} without a word") from None
        if status in (401, 403):
            raise UnreachableError("slurmrestd does not take the token: renew it (scontrol token)")
        if status >= 400 or said.get("errors"):
            raise _refusal(said.get("errors") or [{"error": f"it answered {status}"}])
        return said

    def _answer(self, asked: Request) -> tuple[int, bytes]:
        try:
            with urlopen(asked, timeout=_SECONDS) as answer:
                return answer.status, answer.read()
        except HTTPError as refused:
            return refused.code, refused.read()
        except (OSError, HTTPException) as error:
            self._silent_until = time.monotonic() + _PAUSE_SECONDS
            where = urlsplit(asked.full_url).netloc
            raise UnreachableError(f"slurmrestd at {where} does not answer: {error}") from None

    def _headers(self, account: str) -> dict[str, str]:
        named = Path(self._token_file.replace("{account}", account))
        try:
            token = named.read_text().strip()
        except OSError as error:
            raise UnreachableError(f"cannot read the token of Slurm in {named}: {error.strerror}") from None
        token = token.partition("=")[2] if token.startswith("SLURM_JWT=") else token
        return {"X-SLURM-USER-NAME": account, "X-SLURM-USER-TOKEN": token, "Content-Type": "application/json"}


def request(script: str) -> dict[str, Any]:
    """Our batch script as the service wants it: pure."""
    parts: list[dict[str, Any]] = [_job()]
    for line in script.splitlines():
        if line == _HETEROGENEOUS:
            parts.append(_job())
        elif line.startswith("#SBATCH "):
            _set(parts[-1], line[len("#SBATCH ") :])
    return {"script": script, "job": parts[0]} if len(parts) == 1 else {"script": script, "jobs": parts}


def _job() -> dict[str, Any]:
    return {"environment": {"PATH": "/usr/local/bin:/usr/bin:/bin"}, "requeue": False}


def _set(job: dict[str, Any], option: str) -> None:
    [plain] = shlex.split(option)
    name, equals, value = plain.removeprefix("--").partition("=")
    if name in ("no-requeue", "export-file"):
        return  # said by every job of ours
    field = _FIELDS.get(name)
    if field is None:
        raise RefusedError(f"slurmrestd knows no option {name!r}: leave it out, or let the server use sbatch")
    job[field] = int(value.rstrip("M")) if field in _NUMBERS else (value if equals else True)


def _takes_all(partition: Mapping[str, Any]) -> bool:
    """Whether jobs that name no partition go there."""
    flags = partition.get("flags") or partition.get("partition", {}).get("flags") or ()
    return any(str(flag).lower() == "default" for flag in flags)


def _node(node: Mapping[str, Any], partition: str, *, is_default: bool) -> Node:
    state = node.get("state")
    cpus, megabytes, gpus = int(node["cpus"]), int(node["real_memory"]), count_gpus(str(node.get("gres") or ""))
    return Node(
        name=str(node["name"]),
        partition=partition,
        is_default=is_default,
        up=all(is_up(str(word)) for word in (state if isinstance(state, list) else [state])),
        has=Resources(cpus=float(cpus), memory_bytes=megabytes << 20, gpus=gpus),
        idle=Resources(
            cpus=float(cpus - int(node.get("alloc_cpus") or 0)),
            memory_bytes=max(0, megabytes - int(node.get("alloc_memory") or 0)) << 20,
            gpus=max(0, gpus - count_gpus(str(node.get("gres_used") or ""))),
        ),
    )


def _seen(job: Mapping[str, Any]) -> Seen:
    state = job.get("job_state")
    return Seen(
        id=int(_number(job.get("het_job_id")) or _number(job.get("job_id"))),
        name=str(job.get("name")),
        user=str(job.get("user_name") or ""),
        state=word(str(state[0] if isinstance(state, list) else state)),
        reason=str(job.get("state_reason") or ""),
        start_at=_time(job.get("start_time")),
        end_at=_time(job.get("end_time")),
    )


def _seen_past(job: Mapping[str, Any]) -> Seen:
    state = job["state"]["current"]
    return Seen(
        id=int(job["job_id"]),
        state=word(str(state[0] if isinstance(state, list) else state)),
        start_at=_time(job["time"].get("start")),
        end_at=_time(job["time"].get("end")),
    )


def _number(value: Any) -> int:
    """Newer versions say {"set": true, "number": 7}."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") else 0
    return int(value or 0)


def _time(value: Any) -> datetime | None:
    seconds = _number(value)
    return datetime.fromtimestamp(seconds, UTC) if 0 < seconds < 2**32 else None


def _refusal(errors: Sequence[Mapping[str, Any]]) -> RefusedError | BusyError | UnreachableError:
    words = "; ".join(dict.fromkeys(str(one.get("description") or one.get("error") or one) for one in errors))[:500]
    if _LATER.search(words):
        return BusyError(f"Slurm takes no more jobs now: {words}")
    if re.search(
        r"contact|connect|timed out|Zero Bytes|authenticat|not responding|shutdown|communicat", words, re.IGNORECASE
    ):
        return UnreachableError(f"Slurm does not answer: {words}")
    return RefusedError(f"Slurm refuses it: {words}")
