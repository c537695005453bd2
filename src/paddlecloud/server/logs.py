"""The server's log: lines of text or of JSON, each with the request, user and job that it concerns, and no secret.

Nothing of ours logs a secret; what has the shape of one is masked all the same, since a library's error may quote what
it was given. Who reads the log is not always who may read the records.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from paddlecloud.server.settings import JSON, ServerSettings

FILE_BYTES = 16 * 1024 * 1024
OLD_FILES = 2
_REPEAT_SECONDS = 60.0
_WARNINGS_KNOWN = 1000

_request: ContextVar[Mapping[str, Any] | None] = ContextVar("request", default=None)

_JOB = re.compile(r"job-[0-9a-f]{32}")
_SECRETS = re.compile(
    # Tokens, of users, tasks and WebHDFS; passes; signatures.
    r"(?P<before>\bpc[tjw]_|\beyJ(?=[\w-]+\.[\w-]+\.)|\bBearer\s+|\bSignature=)[^\s\"',&]+"
    r"|(?P<named>\b(?:password|passwd|secret|token|sk)[\"']?\s?[=:]\s?)(?:\"[^\"]*\"|'[^']*'|[^\s\"',&]+)"
    r"|(?P<url>://[^\s/@:]*:)[^\s/]+(?=@)",
    re.IGNORECASE,
)
# Found far quicker.
_HINTS = ("pct_", "pcj_", "pcw_", "eyj", "bearer", "signature", "passw", "secret", "token", "sk", "://")
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127)} | {ord("\n"): "\\n", ord("\t"): " "}


def configure(server: ServerSettings, file: Path, *, file_bytes: int = FILE_BYTES) -> None:
    """Log to stderr. Where that is `file`, the file is this process's own, and is kept from growing for ever."""
    out: logging.Handler = _OwnFile(file, file_bytes) if _is_stderr(file) else logging.StreamHandler(sys.stderr)
    out.setFormatter(JsonLines() if server.log_format == JSON else TextLines())
    out.addFilter(OncePerMinute())
    # What no line shows need not be looked up for each (Python's logging HOWTO, "Optimization").
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()
    root.handlers[:] = [out]
    root.setLevel(server.log_level.upper())
    for chatty in ("uvicorn.error", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


@contextmanager
def concerning(request: Mapping[str, Any]) -> Iterator[None]:
    """What is logged in here, by any thread that works for it, concerns this request: its `request_id` and `user`."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


def masked(text: str) -> str:
    """The text without what has the shape of a token, a signature, a password in an address, or `password=…`."""
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):
        return text
    return _SECRETS.sub(lambda found: f"{found[found.lastgroup or 0]}…", text)


class OncePerMinute(logging.Filter):
    """Lets a warning pass once a minute: a cluster that does not answer is asked twice a second."""

    def __init__(self) -> None:
        super().__init__()
        self._passed: dict[str, tuple[float, int]] = {}  # by its text: when it passed last, and how often it did not

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING or record.exc_info:
            return True
        text = f"{record.name}: {record.getMessage()}"
        passed_at, repeated = self._passed.pop(text, (0.0, 0))
        if 0 <= record.created - passed_at < _REPEAT_SECONDS:
            self._passed[text] = passed_at, repeated + 1
            return False
        self._passed[text] = record.created, 0
        if len(self._passed) > _WARNINGS_KNOWN:
            del self._passed[next(iter(self._passed))]
        if repeated:
            record.msg, record.args = "%s (and %d times more since the last such line)", (record.getMessage(), repeated)
        return True


class TextLines(logging.Formatter):
    """For people, with times in UTC."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        if not record.message.isprintable():
            # What a stranger sent must not look like a line of its own.
            record.message = record.message.translate(_CONTROL)
        request = _request.get()
        if request is None or hasattr(record, "access"):
            return super().formatMessage(record)
        return f"{super().formatMessage(record)} (request {request['request_id']} of {request.get('user', '-')})"

    def format(self, record: logging.LogRecord) -> str:
        return masked(super().format(record))


class JsonLines(logging.Formatter):
    """One object a line. `access` of a record holds the fields of a request's own line."""

    def format(self, record: logging.LogRecord) -> str:
        request = _request.get() or {}
        access: Mapping[str, object] = getattr(record, "access", {})
        message = "{method} {path}".format_map(access) if access else record.getMessage()
        fields: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": masked(message),
            "request_id": request.get("request_id"),
            "user": request.get("user"),
            "job": _job(message),
            **access,
        }
        if "path" in access:
            fields["path"] = masked(str(access["path"]))
        if record.exc_info:
            fields["traceback"] = masked(self.formatException(record.exc_info))
        return json.dumps({name: value for name, value in fields.items() if value is not None}, ensure_ascii=False)


class _OwnFile(RotatingFileHandler):
    """A log that only this process writes; what anything in it writes to stderr stays in the newest file."""

    def __init__(self, file: Path, file_bytes: int) -> None:
        super().__init__(file, maxBytes=file_bytes, backupCount=OLD_FILES, encoding="utf-8", errors="backslashreplace")

    def shouldRollover(self, _: logging.LogRecord) -> bool:  # noqa: N802
        """Whether the file is full. By its size as it is: the line to come would have to be put together twice."""
        return self.stream is not None and os.fstat(self.stream.fileno()).st_size >= self.maxBytes

    def _open(self) -> TextIOWrapper:
        stream = super()._open()
        os.fchmod(stream.fileno(), 0o600)
        for descriptor in (1, 2):
            os.dup2(stream.fileno(), descriptor)
        return stream


def _is_stderr(file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(2), file.stat())
    except OSError:
        return False


def _job(message: str) -> str | None:
    found = _JOB.search(message)
    return found[0] if found else None
