"""Every name we make up: job ids, handles, task names, and the layout of a job's results."""

from __future__ import annotations

import re

from paddlecloud.model.errors import InvalidError, NotFoundError

_JOB_ID = re.compile(r"job-[0-9a-f]{32}")

NAME_BYTES = 255
PATH_BYTES = 4096
LEVELS = 128
LOGS = "log"  # the folder in a job's results that holds its logs
_ESCAPED = 0xEF00


def job_id(random_bytes: bytes) -> str:
    """A job id in seed 002's form, from 16 random bytes."""
    return f"job-{random_bytes.hex()}"


def is_job_id(text: str) -> bool:
    return _JOB_ID.fullmatch(text) is not None


def handle(job: str, attempt: int) -> str:
    return f"{job}-{attempt}"


def task_name(role: str, index: int) -> str:
    return f"{role}-{index}"


def output_prefix(job: str) -> str:
    """Where a job's results are listed, as seed 000 shows."""
    return f"output/{job}"


def rank_folder(role: str, index: int) -> str:
    """A task's OUTPUT_PATH inside its job's results: `rank-0` for a trainer, its own name for any other role."""
    return f"rank-{index}" if role == "trainer" else task_name(role, index)


def log_file(task: str) -> str:
    """A task's stdout and stderr inside its job's results."""
    return f"{LOGS}/{task}.log"


def log_folder(task: str) -> str:
    """A task's LOCAL_LOG_PATH inside its job's results."""
    return f"{LOGS}/{task}"


def kept_folder(attempt: int, task: str) -> str:
    """Where a failed task's working directory stays inside its job's results, if it was asked for."""
    return f"workspace/attempt-{attempt}/{task}"


def text_of(raw: bytes) -> str:
    """A file's name, or path, as text that any wire takes.

    A byte that is not UTF-8 becomes a private-use character (0xFF is U+EFFF), and so does each byte of those
    characters themselves, so that `raw_of` finds the very bytes again.
    """

    def escape(character: str) -> str:
        if "\udc80" <= character <= "\udcff" or "\uef80" <= character <= "\uefff":
            return "".join(chr(_ESCAPED + byte) for byte in character.encode("utf-8", "surrogateescape"))
        return character

    text = raw.decode("utf-8", "surrogateescape")
    return text if text.isascii() else "".join(map(escape, text))


def raw_of(text: str) -> bytes:
    """The bytes of a name, or path, that `text_of` made a text of."""
    if text.isascii():
        return text.encode()
    return b"".join(
        bytes([ord(character) - _ESCAPED]) if "\uef80" <= character <= "\uefff" else character.encode()
        for character in text
    )


def check_relative(path: str, field: str = "path") -> str:
    """The path itself, if it names something strictly below a folder; hostile and odd forms are refused."""

    def refuse(why: str) -> InvalidError:
        return InvalidError(f"{field} {path!r} {why}", field=field)

    if not path:
        raise refuse("is empty")
    if "\0" in path:
        raise refuse("contains a NUL byte")
    try:
        raw = raw_of(path)
    except UnicodeEncodeError:
        raise refuse("is not valid UTF-8; rename it") from None
    if len(raw) >= PATH_BYTES:
        raise refuse(f"is not shorter than {PATH_BYTES} bytes")
    parts = raw.split(b"/")
    if len(parts) > LEVELS:
        raise refuse(f"has more than {LEVELS} levels")
    for part in parts:
        if part in (b"", b".", b".."):
            raise refuse("must be relative, without empty, '.' or '..' parts")
        if len(part) > NAME_BYTES:
            raise refuse(f"has a part longer than {NAME_BYTES} bytes")
    return path


def key_prefix(job: str, prefix: str) -> tuple[str, str]:
    """A prefix of results as an object store has them: the folder that holds all that begin so, and how they begin."""
    below = below_output(job, prefix)
    whole = f"{output_prefix(job)}/{below}" + ("/" if below and prefix.endswith("/") else "")
    return whole.rpartition("/")[0], whole


def below_output(job: str, prefix: str) -> str:
    """The part of a results path or prefix below `output/<job>`; "" is all of it.

    Seed 002's `/`, seed 000's `output/<job>/log` and a bare `log` are all understood.
    """
    prefix = prefix.strip("/")
    whole = output_prefix(job)
    if prefix in ("", "output", whole):
        return ""
    if prefix.startswith(whole + "/"):
        prefix = prefix[len(whole) + 1 :]
    elif re.match(r"output/job-[0-9a-f]{32}(/|$)", prefix):
        raise NotFoundError(f"{prefix!r} is not of {job}: its results are below {whole}/", field="prefix")
    return check_relative(prefix, "prefix")
