"""Why a task failed and what to do about it, recognised from its exit code, its signal, its reason and its last lines.

The table is tried from the top, and the first line that fits is the answer. A class says whether another attempt may
help: a lost node is transient, a module that is missing is permanent, and of most failures nobody can tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from paddlecloud.model import unseen
from paddlecloud.model.state import StopReason
from paddlecloud.model.task import TaskReport, TaskState, signal_number


class Class(StrEnum):
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    UNKNOWN = "unknown"


class Cause(Struct, frozen=True, kw_only=True):
    """`name` stays the same for ever; `what` is the end of a sentence that begins with "since" or "because"."""

    name: str
    what: str
    remedies: tuple[str, ...]
    class_: Class = Class.UNKNOWN
    by: str = "user"  # whose doing it is: user, platform or unknown


def _numbers(names: str) -> tuple[int, ...]:
    return tuple(map(signal_number, names.split()))


class _Sign(Struct, frozen=True, kw_only=True):
    """What a cause is recognised by: one of its exit codes or signals, or a pattern in the reason or the last lines."""

    cause: Cause
    exit_codes: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    reason: re.Pattern[str] | None = None
    lines: re.Pattern[str] | None = None

    def fits(self, task: TaskReport) -> bool:
        ended_by = task.signal if task.signal is not None else (task.exit_code or 0) - 128
        return (
            task.exit_code in self.exit_codes
            or ended_by in self.signals
            or (self.reason is not None and self.reason.search(task.reason) is not None)
            or (self.lines is not None and self.lines.search(task.tail[-_TAIL:]) is not None)
        )


_TAIL = 20_000


def _text(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


CUDA_MEMORY = Cause(
    name="cuda_out_of_memory",
    what="a GPU has run out of memory",
    remedies=(
        "make the batch or the model smaller",
        "see in the log whether an earlier process still holds the GPU",
        "ask for a GPU with more memory",
    ),
    class_=Class.PERMANENT,
)
MEMORY = Cause(
    name="out_of_memory",
    what="it used more memory than it had asked for",
    remedies=("ask for more memory", "make the batch smaller", "use fewer workers that load data"),
    class_=Class.PERMANENT,
)
DISK = Cause(
    name="disk_full",
    what="there was no space left where it wrote",
    remedies=(
        "remove what you need no more: paddlecloud df shows what you keep",
        "keep fewer checkpoints",
        "ask the operator whether the disk is full for everybody",
    ),
    by="unknown",
)
MODULE = Cause(
    name="missing_module",
    what="Python has not found a module that it imports",
    remedies=(
        "name the package in requirements.txt",
        "send the file with the job, or name the folder that it is in by PYTHONPATH",
        "see whether the image that the job names is used where it runs",
    ),
    class_=Class.PERMANENT,
)
SYNTAX = Cause(
    name="python_syntax",
    what="Python cannot read the program: it is no Python, or of another version",
    remedies=("mend the line that the log names", "name the Python that it is written for (--python)"),
    class_=Class.PERMANENT,
)
NOT_FOUND = Cause(
    name="command_not_found",
    what="there is no such command where it ran",
    remedies=(
        "see whether the name is right and the program installed on the nodes",
        "call a script of your own by its path: sh train.sh, or ./train.sh",
    ),
    class_=Class.PERMANENT,
)
PERMISSION = Cause(
    name="not_permitted",
    what="it may not run or change a file",
    remedies=(
        "make the script executable (chmod +x), or run it by its interpreter: sh train.sh",
        "write to the working directory or to $OUTPUT_PATH: what is elsewhere may only be read",
    ),
)
NO_FILE = Cause(
    name="missing_file",
    what="it has not found a file or folder that it opens",
    remedies=(
        "see whether the file is sent with the job, or one of its inputs",
        "use paths from the working directory",
    ),
)
UNBOUND = Cause(
    name="unbound_variable",
    what="its script uses a variable that is not set",
    remedies=("set it in the job's parameters or environment", "write ${NAME:-} where it may be missing"),
    class_=Class.PERMANENT,
)
PORT = Cause(
    name="port_in_use",
    what="a port that it wanted to listen on was taken",
    remedies=("listen on the ports that the task is given: $PADDLE_PORT, or $PAI_PORT_LIST_…",),
    by="unknown",
)
PEER = Cause(
    name="peer_lost",
    what="it lost another task of the job, or could not reach it",
    remedies=("look at the log of the task that failed first", "give the others longer to start"),
)
GPU = Cause(
    name="gpu_fault",
    what="a GPU or its driver failed",
    remedies=("submit it again: it may come to another GPU", "tell the operator which node it was"),
    by="platform",
)
NO_GPU = Cause(
    name="no_gpu",
    what="it looked for a GPU where there is none for it",
    remedies=("ask for GPUs", "let the program run on CPUs where there are no GPUs"),
    class_=Class.PERMANENT,
)
NODE = Cause(
    name="node_lost",
    what="its node was lost, or what watched it there",
    remedies=("nothing: it is started again by itself, unless the job asks for no retries", "write checkpoints"),
    class_=Class.TRANSIENT,
    by="platform",
)
PREEMPTED = Cause(
    name="preempted",
    what="its place was needed for a job that goes before it",
    remedies=("nothing: it is started again by itself, unless the job asks for no retries", "write checkpoints"),
    class_=Class.TRANSIENT,
    by="platform",
)
WALL_TIME = Cause(
    name="time_limit",
    what="it ran longer than it may",
    remedies=("ask for more time (--time-limit)", "write checkpoints, and go on from the last"),
    class_=Class.PERMANENT,
)
QUEUE_TIME = Cause(
    name="not_placed",
    what="there was no place for it in time",
    remedies=(
        "ask for less, or for another cluster",
        "submit it when fewer jobs wait: paddlecloud clusters shows them",
    ),
    by="platform",
)
HUNG = Cause(
    name="hung",
    what="it did nothing for so long that it was taken to hang",
    remedies=("see the last line of each task's log", "give it longer (--hang), if it was at work"),
)
STOPPED = Cause(
    name="stopped",
    what="somebody stopped it",
    remedies=("submit it again, if it was a mistake",),
    class_=Class.PERMANENT,
)
ENVIRONMENT = Cause(
    name="environment",
    what="the Python environment of its requirements could not be built",
    remedies=("mend the line of the requirements that the log names", "see whether the node reaches the package index"),
    class_=Class.PERMANENT,
)
INPUT = Cause(
    name="input_missing",
    what="a file or folder that is an input of the job was gone",
    remedies=("see whether it was moved or removed since the job was submitted",),
    class_=Class.PERMANENT,
)
_KILLED = Cause(
    name="killed",
    what="it was killed, by itself or from outside (SIGKILL)",
    remedies=(
        "ask for more memory: a machine that has none left kills the largest",
        "see whether the program ends its own processes",
    ),
    by="unknown",
)
_TERMINATED = Cause(
    name="terminated",
    what="it was asked to end, by itself or from outside",
    remedies=("see in the job's history whether it was stopped", "see whether the program ends its own processes"),
    by="unknown",
)
_CRASHED = Cause(
    name="crashed",
    what="the program crashed in native code",
    remedies=(
        "run it with python -X faulthandler to see where",
        "see whether the versions of the libraries fit each other and the machine",
        "ask for more shared memory, or use fewer workers that load data, where it is a bus error",
    ),
)
_RAISED = Cause(
    name="python_error",
    what="the program ended with a Python exception that it did not handle",
    remedies=("read the traceback at the end of the log: its last line says what, the line above it where",),
)
OTHER = Cause(
    name="failed",
    what="the program said that it had failed, by its exit code",
    remedies=("read the end of its log",),
)

_TRACEBACK = "Traceback (most recent call last):"
_NO_MODULE = "No module named "
_NO_COMMAND = _text(r": (?:command )?not found$")
_NOT_FOUND_CODE = 127
_LAST_LINES = 20
_LONGEST_LINE = 200
_NO_FILE = r"^FileNotFoundError: |[:;\]] No such file(?: or directory)?$|cd: can't cd to "
_SIGNS: tuple[_Sign, ...] = (
    _Sign(cause=ENVIRONMENT, reason=_text(r"^its environment could not be built")),
    _Sign(cause=INPUT, reason=_text(r"which is an input of the job|an input of the job, is neither")),
    _Sign(
        cause=CUDA_MEMORY,
        lines=_text(
            r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|torch\.OutOfMemoryError"
            r"|Out of memory error on GPU|CUBLAS_STATUS_ALLOC_FAILED|failed to allocate .* from device"
        ),
    ),
    _Sign(
        cause=MEMORY,
        reason=_text(r"^out of memory"),
        lines=_text(r"^MemoryError\b|std::bad_alloc|Cannot allocate memory|Unable to allocate .* for an array"),
    ),
    _Sign(
        cause=DISK,
        reason=_text(r"No space left|Disk quota"),
        lines=_text(r"No space left on device|Disk quota exceeded"),
    ),
    _Sign(
        cause=NO_GPU,
        lines=_text(
            r"no CUDA-capable device is detected|Found no NVIDIA driver|No CUDA GPUs are available"
            r"|Torch not compiled with CUDA enabled|libcuda\.so\.1: cannot open"
        ),
    ),
    _Sign(
        cause=GPU,
        lines=_text(r"CUDA error: (?:uncorrectable ECC|unspecified launch failure)|GPU is lost|Xid \(|NVML: "),
    ),
    _Sign(cause=MODULE, lines=_text(r"^(?:ModuleNotFoundError|ImportError): |^.*: No module named ")),
    _Sign(cause=SYNTAX, lines=_text(r"^(?:SyntaxError|IndentationError|TabError): ")),
    _Sign(cause=PORT, lines=_text(r"Address already in use|EADDRINUSE")),
    _Sign(
        cause=PEER,
        lines=_text(
            r"Connection (?:reset by peer|refused|closed by peer)|NCCL error|ncclSystemError|Socket [Tt]imeout"
            r"|DistNetworkError|rendezvous .* timed out"
        ),
    ),
    _Sign(cause=UNBOUND, lines=_text(r": unbound variable$|: parameter not set$")),
    _Sign(cause=NOT_FOUND, exit_codes=(_NOT_FOUND_CODE,)),
    _Sign(cause=PERMISSION, exit_codes=(126,), lines=_text(r"^PermissionError: |: Permission denied$")),
    _Sign(cause=NO_FILE, lines=_text(_NO_FILE)),
    _Sign(cause=_KILLED, signals=_numbers("KILL")),
    _Sign(cause=_TERMINATED, signals=_numbers("TERM INT HUP")),
    _Sign(
        cause=_CRASHED,
        signals=_numbers("SEGV BUS ABRT FPE ILL TRAP"),
    ),
    # The last: its lines name no cause.
    _Sign(cause=_RAISED, lines=_text(rf"^{re.escape(_TRACEBACK)}")),
)
_OF_MISSING_FILES = (NO_FILE, NOT_FOUND, PERMISSION)  # PERMISSION: of a script whose interpreter is not found
_STOPS = {
    StopReason.NODE_LOST: NODE,
    StopReason.PREEMPTED: PREEMPTED,
    StopReason.WALL_TIME: WALL_TIME,
    StopReason.QUEUE_TIME: QUEUE_TIME,
    StopReason.HUNG: HUNG,
    StopReason.ASKED: STOPPED,
}
ALL: tuple[Cause, ...] = tuple(
    dict.fromkeys([*_STOPS.values(), *(sign.cause for sign in _SIGNS), OTHER]),
)


def of_task(task: TaskReport, *, cluster: str = "") -> Cause | None:
    """Why a task failed; None: it has not. `cluster` is where it ran, for remedies that name a setting."""
    if task.state is TaskState.LOST:
        return NODE
    if task.state is not TaskState.FAILED:
        return None
    cause = next((sign.cause for sign in _SIGNS if sign.fits(task)), OTHER)
    path = unseen.path_in(task.tail[-_TAIL:]) if cause in _OF_MISSING_FILES else ""
    return replace(cause, remedies=(unseen.remedy(path, cluster), *cause.remedies)) if path else cause


def line_of(task: TaskReport) -> str:
    """The line of a failed task's log that tells why, such as "No module named 'numpi'"; "": no line does.

    The exception of an unhandled traceback comes first: an earlier warning may look like another cause.
    """
    if task.state is not TaskState.FAILED or not 0 < (task.exit_code or 0) < 128:
        return ""
    lines = [line.rstrip() for line in task.tail[-_TAIL:].splitlines() if line.strip()]
    raised = _raised(lines)
    if not raised:
        signs = [sign.lines for sign in _SIGNS[:-1] if sign.lines is not None and sign.fits(task)]
        if task.exit_code == _NOT_FOUND_CODE:
            signs.append(_NO_COMMAND)
        last = lines[-_LAST_LINES:]
        raised = next((line for pattern in signs for line in reversed(last) if pattern.search(line)), "")
    told = "".join(letter if letter.isprintable() else " " for letter in raised).strip()
    told = told[max(told.find(_NO_MODULE), 0) :]
    return told if len(told) <= _LONGEST_LINE else f"{told[: _LONGEST_LINE - 1]}…"


def _raised(lines: Sequence[str]) -> str:
    """The exception that the last traceback ends with; "": there is none, or it was cut off."""
    starts = [number for number, line in enumerate(lines) if line.startswith(_TRACEBACK)]
    if not starts:
        return ""
    return next((line for line in lines[starts[-1] + 1 :] if not line.startswith(" ")), "")


def of_job(stop: StopReason | None, tasks: Sequence[TaskReport], *, cluster: str = "") -> Cause | None:
    """Why a job ended without success, from why it was stopped and what is known of its tasks; None: it has not.
    `cluster` is where it ran, for remedies that name a setting."""
    if stop is None or stop is StopReason.DONE:
        return None
    if stop in _STOPS:
        return _STOPS[stop]
    failed = [task for task in tasks if task.state is TaskState.FAILED]
    first = min(failed, key=lambda task: (task.ended_at is None, task.ended_at), default=None)
    return OTHER if first is None else of_task(first, cluster=cluster)
