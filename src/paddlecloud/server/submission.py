"""The rules a job must keep to be accepted, and what is filled in for what it leaves open: pure.

A job that could never run is refused here with the numbers, instead of waiting in the queue for ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import asdict, replace

from paddlecloud.backends.slurmnodes import Room
from paddlecloud.backends.slurmscript import check_option
from paddlecloud.model import manual
from paddlecloud.model.bos import parse_bos_url
from paddlecloud.model.errors import InvalidError, PaddleCloudError, QuotaError, UnsupportedError
from paddlecloud.model.job import NOTHING, PSERVER, JobSpec, Resources, total
from paddlecloud.model.paths import NAME_BYTES, PATH_BYTES, check_relative
from paddlecloud.model.units import describe_counts
from paddlecloud.runtime.environments import NONE
from paddlecloud.runtime.variables import GANG
from paddlecloud.scheduler import places
from paddlecloud.scheduler.caps import counted, too_large
from paddlecloud.scheduler.ledger import Standing
from paddlecloud.scheduler.plan import describe
from paddlecloud.scheduler.queues import Cap
from paddlecloud.server.roles import COMMAND_BYTES, RESTARTS, check_role, check_text

GPU, CPU = "gpu", "cpu"
JOB_TYPES = (GPU, CPU)
DISTRIBUTIONS = ("PSERVER", "NCCL2")
PRIORITIES = range(-1000, 1001)
NAME_CHARACTERS = 255
ENV_BYTES = 100_000
PORTS_OF_A_JOB = 8_000
WALL_TIME_SECONDS = 10 * 365 * 86400
LEAST_HANG_SECONDS = 5

_PYTHON = re.compile(r"|\d+(\.\d+){0,2}|(/[\w.+@-]+)+", re.ASCII)
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A cluster that a job may go to, and where its user stands there. `capacity` is None where it does not tell."""

    name: str
    capacity: Resources | None
    standing: Standing
    options: tuple[str, ...] | None = None  # of Slurm, that a job may set itself; None: it is no Slurm
    room: Room | None = None  # of a job whose trainers are to have nodes of their own; None: they need not


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    tasks: int
    wall_time_seconds: int | None  # of a job that asks for no time; None: none, but submit_job's
    hang_seconds: int  # of a job that does not say when it hangs
    cap: Cap | None = None  # what the jobs of its queue may use at a time


def check_shape(spec: JobSpec, limits: Limits) -> None:
    """Refuse what is wrong wherever the job would go."""
    _check_name(spec)
    check_text(spec.folder, "folder", NAME_BYTES)
    _check_roles(spec, limits)
    _check_environment(spec)
    _check_choices(spec)
    _check_private_resources(spec)
    _check_texts_of_images(spec)
    _check_care(spec)
    _check_packages(spec)
    _check_inputs(spec)


def _check_inputs(spec: JobSpec) -> None:
    if spec.inputs and spec.package:
        raise InvalidError(
            "inputs are put into a job's own copy of its folder, and a package is run where it is: submit the folder, "
            "or leave inputs out",
            field="inputs",
        )


def accept(spec: JobSpec, offers: Sequence[Offer], limits: Limits) -> JobSpec:
    """The job as it is recorded, if one of these clusters could run it within its user's limits."""
    _check_options(spec, offers)
    offers = _open_to(offers, lambda offer: _too_few_nodes(spec, offer))
    offers = _open_to(offers, lambda offer: offer.standing.refusal(spec, offer.capacity))
    spec = replace(spec, job_type=_job_type(spec, offers))
    offers = _large_enough(spec, offers)
    if (cap := limits.cap) is not None:
        offers = _open_to(offers, lambda offer: _above_cap(spec, offer, cap))
    spec = replace(spec, wall_time_seconds=_wall_time(spec, offers, limits))
    if spec.hang.after_seconds is None:
        spec = replace(spec, hang=replace(spec.hang, after_seconds=limits.hang_seconds))
    offers = _open_to(offers, lambda offer: _used_up(spec, offer))
    _open_to(offers, _too_many_wait)
    return spec


def _check_name(spec: JobSpec) -> None:
    if not spec.name or len(spec.name) > NAME_CHARACTERS or not spec.name.isprintable():
        raise InvalidError(
            f"name {spec.name[:40]!r} (job_name) must be 1 to {NAME_CHARACTERS} printable characters", field="name"
        )


def _check_roles(spec: JobSpec, limits: Limits) -> None:
    if not spec.roles:
        raise InvalidError("roles is empty: a job needs at least one role with a command", field="roles")
    seen: set[str] = set()
    for number, role in enumerate(spec.roles):
        check_role(role, f"roles[{number}]", seen)
        seen.add(role.name)
    if not spec.first_role_ends and all(role.successes_needed == 0 for role in spec.roles):
        raise InvalidError("roles: no role needs a success, so the job could not end", field="roles")
    if spec.tasks > limits.tasks:
        raise InvalidError(
            f"the job has {spec.tasks} tasks ({_counts(spec)}); this server takes {limits.tasks} at most", field="roles"
        )
    if (ports := sum(role.count * role.port_count for role in spec.roles)) > PORTS_OF_A_JOB:
        raise InvalidError(
            f"the job asks for {ports} ports ({_counts(spec)}); {PORTS_OF_A_JOB} is the most: ask for fewer of a task",
            field="roles",
        )


def _check_environment(spec: JobSpec) -> None:
    for name, value in spec.env.items():
        if not _ENV_NAME.fullmatch(name):
            raise InvalidError(
                f"env name {name!r} must be letters, digits and _, not beginning with a digit", field="env"
            )
        if name in GANG:
            raise InvalidError(
                f"env {name} is set by PaddleCloud in each task and cannot be given: a trainer that is told another "
                "number or address trains alone; if you mean to, set it in your command",
                field="env",
            )
        check_text(value, f"env.{name}", ENV_BYTES)


def _check_choices(spec: JobSpec) -> None:
    if spec.job_type is not None and spec.job_type not in JOB_TYPES:
        raise InvalidError(f"job_type {spec.job_type!r} is not known: use gpu or cpu", field="job_type")
    if spec.distribute is not None and spec.distribute not in DISTRIBUTIONS:
        raise InvalidError(f"distribute {spec.distribute!r} is not known: use PSERVER or NCCL2", field="distribute")
    if spec.distribute == "PSERVER" and not any(role.name == PSERVER for role in spec.roles):
        raise InvalidError("distribute PSERVER needs a role called pserver", field="distribute")
    if spec.job_type == CPU and _gpus(spec):
        raise InvalidError("job_type cpu does not go with roles that ask for GPUs", field="job_type")
    if spec.priority not in PRIORITIES:
        raise InvalidError(
            f"priority {spec.priority} must be from {PRIORITIES[0]} to {PRIORITIES[-1]}", field="priority"
        )
    if spec.wall_time_seconds is not None and not 0 < spec.wall_time_seconds <= WALL_TIME_SECONDS:
        raise InvalidError(
            f"wall_time_seconds {spec.wall_time_seconds} (wall_time) must be above 0, and ten years at most",
            field="wall_time_seconds",
        )


def _check_packages(spec: JobSpec) -> None:
    if spec.requirements and spec.requirements != NONE:
        check_relative(spec.requirements, "requirements")
        if not spec.requirements.endswith((".txt", ".toml", ".in")):
            raise InvalidError(
                f"requirements {spec.requirements!r} must be a requirements.txt or a pyproject.toml",
                field="requirements",
            )
    if not _PYTHON.fullmatch(spec.python):
        raise InvalidError(
            f"python {spec.python[:40]!r} must be a version such as 3.12, or the path of an interpreter", field="python"
        )
    for number, step in enumerate(spec.setup):
        check_text(step, f"setup[{number}]", COMMAND_BYTES)


def _check_care(spec: JobSpec) -> None:
    """What is to be done when the job fails or hangs."""
    retry = spec.retry
    asked = {
        "user_error": retry.user_error,
        "restart_me": retry.restart_me,
        "node_lost": retry.node_lost,
        "preempted": retry.preempted,
    }
    for name, times in asked.items():
        if times is not None and not 0 <= times <= RESTARTS:
            raise InvalidError(f"retry.{name} is {times}; it must be from 0 to {RESTARTS}", field=f"retry.{name}")
    after = spec.hang.after_seconds
    if after is not None and after != 0 and not LEAST_HANG_SECONDS <= after <= WALL_TIME_SECONDS:
        raise InvalidError(
            f"hang.after_seconds is {after}; it must be {LEAST_HANG_SECONDS} or more, or 0 to look for no hang",
            field="hang.after_seconds",
        )


def _check_private_resources(spec: JobSpec) -> None:
    if not spec.public_bcc:
        raise UnsupportedError(
            "public_bcc=0: this server cannot rent machines of your own yet; leave public_bcc at 1 to use its clusters",
            field="public_bcc",
        )
    if not spec.public_bos:
        _check_own_storage(spec)
        return
    for name in ("bos_url", "storage_key"):
        if getattr(spec, name):
            raise InvalidError(f"{name} is for storage of your own (public_bos=0): leave it out", field=name)


def _check_own_storage(spec: JobSpec) -> None:
    if not spec.bos_url:
        raise InvalidError("bos_url is missing: with public_bos=0 name the folder in your storage", field="bos_url")
    parse_bos_url(spec.bos_url)
    check_text(spec.storage_key, "storage_key", NAME_BYTES)
    if not spec.storage_key:
        raise InvalidError(
            "storage_key is missing: send the key to your storage (POST /v1/storage_keys) and name it by its id",
            field="storage_key",
        )
    for name in ("tree", "package"):
        if getattr(spec, name):
            raise InvalidError(f"{name}: with public_bos=0 a job's files are in your storage: send none", field=name)


def _check_texts_of_images(spec: JobSpec) -> None:
    for name in ("datacenter", "package", "image", "registry", "face", "queue", "note"):
        check_text(getattr(spec, name), name, PATH_BYTES)
    for name, value in asdict(spec.openpai).items() if spec.openpai is not None else ():
        check_text(str(value), f"openpai.{name}", PATH_BYTES)
    if spec.registry and not spec.image:
        raise InvalidError("registry is for an image of yours: name it too (-image), or leave it out", field="image")
    if spec.package and spec.tree is not None:
        raise InvalidError("a job runs in a folder sent (tree) or one of the PFS (package): name one", field="tree")


def _check_options(spec: JobSpec, offers: Sequence[Offer]) -> None:
    """Each cluster that the job may go to must let it set what it sets."""
    for name, value in spec.slurm.items():
        field = f"slurm.{name[:40]}"
        if wrong := check_option(name[:80], value):
            raise InvalidError(f"slurm: {wrong}", field=field)
        for offer in offers:
            if offer.options is None:
                raise InvalidError(
                    f"slurm: cluster {offer.name} is no Slurm: leave {name} out, or name another cluster",
                    field=field,
                )
            if name not in offer.options:
                allowed = ", ".join(offer.options) or "none"
                raise InvalidError(
                    f"slurm: {name} cannot be set by jobs on cluster {offer.name}, whose operator allows {allowed}",
                    field=field,
                )


def _open_to(offers: Sequence[Offer], refuses: Callable[[Offer], PaddleCloudError | None]) -> list[Offer]:
    """The offers that do not refuse a job; if all do, what they say is raised."""
    refusals = [(offer, refuses(offer)) for offer in offers]
    left = [offer for offer, refused in refusals if refused is None]
    if left:
        return left
    said = [refused for _, refused in refusals if refused is not None]
    raise type(said[0])("; ".join(dict.fromkeys(refused.message for refused in said)), field=said[0].field)


def _too_few_nodes(spec: JobSpec, offer: Offer) -> InvalidError | None:
    room = offer.room
    if room is None or spec.tasks <= room.nodes:
        return None
    return InvalidError(
        f"the job asks for {spec.tasks} nodes (--num_nodes), and partition {room.partition} of {offer.name} has "
        f"{room.nodes}: ask for {room.nodes} at most, or let the operator set `pack = true` in "
        f"[clusters.{offer.name}], by which trainers share nodes",
        field="roles",
    )


def _job_type(spec: JobSpec, offers: Sequence[Offer]) -> str | None:
    """gpu where the cluster has GPUs, else cpu; None, for the placement to decide, where the clusters differ."""
    has_gpus = {offer.capacity.gpus > 0 if offer.capacity else None for offer in offers}
    if has_gpus == {False}:
        _check_no_gpus(spec, " and ".join(offer.name for offer in offers))
    if spec.job_type is not None:
        return spec.job_type
    if _gpus(spec) or has_gpus == {True}:
        return GPU
    return CPU if has_gpus == {False} else None


def _check_no_gpus(spec: JobSpec, clusters: str) -> None:
    if wanted := _gpus(spec):
        raise InvalidError(
            f"the job asks for {describe_counts({'GPU': wanted})}, and there are none in {clusters}: ask for no GPUs, "
            "or name another cluster",
            field="roles",
        )
    if spec.job_type == GPU:
        raise InvalidError(
            f"job_type gpu: there are no GPUs in {clusters}; use job_type cpu, or name another cluster",
            field="job_type",
        )


def _large_enough(spec: JobSpec, offers: Sequence[Offer]) -> list[Offer]:
    """The offers that could give what the job needs when nothing else runs there; refuse it if none could."""
    needs = [(offer, _need(spec, offer)) for offer in offers]
    left = [offer for offer, need in needs if need is None or offer.capacity is None or need.fits(offer.capacity)]
    if left:
        return left
    told = "; ".join(
        f"{offer.name} has {describe(offer.capacity or NOTHING)} in all and it needs {describe(need or NOTHING)}"
        for offer, need in needs
    )
    raise InvalidError(f"the job ({_counts(spec)}) can never run: {told}", field="roles")


def _above_cap(spec: JobSpec, offer: Offer, cap: Cap) -> InvalidError | None:
    need = counted(places.requests(spec, offer.capacity))
    return None if need.fits(cap.room) else InvalidError(too_large(spec.queue, cap, need), field="roles")


def _need(spec: JobSpec, offer: Offer) -> Resources | None:
    if offer.capacity is None:
        return None
    return total(task.resources for task in places.requests(spec, offer.capacity))


def _wall_time(spec: JobSpec, offers: Sequence[Offer], limits: Limits) -> int | None:
    """What was asked for, else the default, or less if one of the clusters gives less: then all of them can run it.

    None: nothing limits it.
    """
    if spec.wall_time_seconds is not None:
        return spec.wall_time_seconds
    default = limits.wall_time_seconds
    if default is None and spec.face == manual.FACE:
        default = manual.WALL_TIME_SECONDS
    most = [tally.limit.quota.wall_time_seconds for offer in offers for tally in offer.standing.tallies]
    return min((limit for limit in (default, *most) if limit is not None), default=None)


def longest(offer: Offer) -> int | None:
    """The longest run that the user's limits allow there; None: any."""
    limits = [tally.limit.quota.wall_time_seconds for tally in offer.standing.tallies]
    return min((limit for limit in limits if limit is not None), default=None)


def _used_up(spec: JobSpec, offer: Offer) -> QuotaError | None:
    for tally in offer.standing.tallies:
        if why := tally.why_not_today(spec):
            return QuotaError(f"{why}; there are more after midnight, at {tally.day.next_begins}")
    return None


def _too_many_wait(offer: Offer) -> QuotaError | None:
    """Counted before the job is recorded, so submits of one moment may pass the limit by a few: it is one on floods."""
    for tally in offer.standing.tallies:
        most = tally.limit.quota.waiting_jobs
        if most is not None and tally.waiting >= most:
            words = f"quota: {tally.waiting} of {most} jobs waiting for {tally.limit.whose}"
            return QuotaError(f"{words}; submit more when one has started")
    return None


def _counts(spec: JobSpec) -> str:
    return describe_counts({role.name: role.count for role in spec.roles})


def _gpus(spec: JobSpec) -> int:
    return sum(role.count * role.resources.gpus for role in spec.roles if role.resources is not None)
