"""The log: what each line tells, in both forms, that no secret is in it, and that its file does not grow for ever."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.server import logs
from paddlecloud.server.logs import JsonLines, TextLines, masked

JOB = "job-" + "0a" * 16


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("paddlecloud.some.part", logging.WARNING, __file__, 1, message, arguments, None)
    for name, value in extra.items():
        setattr(made, name, value)
    return made


def as_json(made: logging.LogRecord) -> dict[str, Any]:
    line = JsonLines().format(made)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_line_of_text_tells_the_time_in_utc_and_the_request_that_it_concerns() -> None:
    made = record("%s waits", JOB)
    made.created, made.msecs = 1_700_000_000.25, 250.0
    line = f"2023-11-14T22:13:20.250Z WARNING paddlecloud.some.part: {JOB} waits"
    assert TextLines().format(made) == line
    with logs.concerning({"request_id": "r-1", "user": "ann"}):
        assert TextLines().format(made) == f"{line} (request r-1 of ann)"
    with logs.concerning({"request_id": "r-1"}):
        assert TextLines().format(made) == f"{line} (request r-1 of -)"


def test_a_line_of_json_is_one_object_with_request_user_and_job() -> None:
    made = record("%s-1 waits", JOB)
    made.created = 1_700_000_000.25
    assert as_json(made) == {
        "ts": "2023-11-14T22:13:20.250Z",
        "level": "warning",
        "logger": "paddlecloud.some.part",
        "message": f"{JOB}-1 waits",
        "job": JOB,
    }
    with logs.concerning({"request_id": "r-1", "user": "ann"}):
        found = as_json(made)
    assert (found["request_id"], found["user"]) == ("r-1", "ann")


def test_the_line_of_a_request_has_its_fields_and_a_path_without_secrets() -> None:
    access = {"method": "GET", "path": "/v1/pct_hunter2", "route": "none", "status": 404, "ms": 1.5}
    found = as_json(record("any", access=access))
    assert found["message"] == "GET /v1/pct_…"
    assert {name: found[name] for name in access} == access | {"path": "/v1/pct_…"}
    with logs.concerning({"request_id": "r-1", "user": "ann"}):
        assert TextLines().format(record("r-1 ann GET", access=access)).endswith("part: r-1 ann GET")


def test_a_message_of_several_lines_stays_one_line() -> None:
    forged = "who\n2023-11-14T22:13:20.250Z ERROR root: all is lost\x1b[31m"
    assert "\n" not in TextLines().format(record("%s", forged))
    assert "\x1b" not in TextLines().format(record("%s", forged))
    assert as_json(record("%s", forged))["message"] == forged


def test_a_traceback_is_part_of_its_line_of_json_and_shows_no_secret() -> None:
    try:
        raise RuntimeError("cannot connect to postgresql://pc:hunter2@db/name with Bearer pct_abcdefgh")
    except RuntimeError:
        made = record("it failed")
        made.exc_info = sys.exc_info()
    found = as_json(made)
    assert "RuntimeError: cannot connect to postgresql://pc:…@db/name" in found["traceback"]
    for line in (found["traceback"], TextLines().format(made)):
        assert "hunter2" not in line
        assert "abcdefgh" not in line


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer hunter2", "hunter2"),
        ("the token pct_hunter2-_x is not known", "hunter2"),
        ("the token pcj_0123hunter2 is not known", "hunter2"),
        ("PC1-HMAC-SHA256 Credential=ak, Signature=hunter2", "hunter2"),
        ("postgresql://user:hunter2@host/name?x=1", "hunter2"),
        ("postgresql://user:hun@ter,2@host/name", "ter,2"),
        ("smtps://user:hunter2@host:465", "hunter2"),
        ("{'name': 'ann', 'password': 'hunter 2, too'}", "hunter 2"),
        ('{"password":"hunter2"}', "hunter2"),
        ("host=db password=hunter2 user=x", "hunter2"),
        ("GET /v1/jobs?sk=hunter2&x=1", "hunter2"),
        ("sk: hunter2", "hunter2"),
        ("Secret=hunter2", "hunter2"),
        ("DELETE /rest-server/api/v1/token/eyJhbGciOiJIUzI1NiJ9.eyJ1c2VyIjoiYSJ9.hunter2-_x", "hunter2"),
    ],
)
def test_what_has_the_shape_of_a_secret_is_masked(text: str, secret: str) -> None:
    assert secret not in masked(text)
    assert "…" in masked(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{JOB} waits: no room for trainer-0 on cluster local",
        "tasks in /data/tasks/local: PID, mount namespaces; limits by cgroups v1 (cpu, memory)",
        "PaddleCloud 0.1.0 serves http://127.0.0.1:8642 from /data",
        "the disk is full; the token's owner is ann",
        "PUT /v1/chunks/" + "0a" * 32,
    ],
)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    assert masked(text) == text


WRITE = """
import logging, os, sys
from pathlib import Path
from paddlecloud.server import logs
from paddlecloud.server.settings import ServerSettings
logs.configure(ServerSettings(), Path(sys.argv[1]), file_bytes=int(sys.argv[2]))
for number in range(int(sys.argv[3])):
    logging.info("line %d %s", number, "x" * 100)
print("said to stdout", flush=True)
os.write(2, b"said to stderr\\n")
"""


def write(file: Path, size: int, lines: int) -> subprocess.CompletedProcess[str]:
    with file.open("a") as log:
        return subprocess.run(
            [sys.executable, "-c", WRITE, str(file), str(size), str(lines)],
            stdout=log,
            stderr=log,
            text=True,
            check=True,
        )


def test_a_log_that_is_the_processs_own_is_kept_from_growing_and_private(tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    write(file, 10_000, 1000)
    kept = sorted(os.listdir(tmp_path))
    assert kept == ["server.log", "server.log.1", "server.log.2"]
    assert all((tmp_path / name).stat().st_size <= 11_000 for name in kept)
    assert all((tmp_path / name).stat().st_mode & 0o077 == 0 for name in kept)
    newest = file.read_text()
    assert "line 999" in newest
    assert newest.endswith("said to stdout\nsaid to stderr\n"), "what else the process says is not lost"


def test_a_log_that_goes_elsewhere_is_left_to_who_reads_it(tmp_path: Path) -> None:
    (tmp_path / "server.log").touch()
    ran = subprocess.run(
        [sys.executable, "-c", WRITE, str(tmp_path / "server.log"), "10000", "1000"], capture_output=True, check=True
    )
    assert ran.stderr.count(b"\n") == 1001
    assert (tmp_path / "server.log").read_text() == ""


def test_a_warning_that_repeats_is_written_once_a_minute() -> None:
    once = logs.OncePerMinute()

    def passes(seconds: float, text: str = "cluster hpc does not answer") -> str:
        made = record("%s", text)
        made.created = 1_700_000_000.0 + seconds
        return made.getMessage() if once.filter(made) else ""

    assert [bool(passes(seconds)) for seconds in (0, 0.5, 59.9)] == [True, False, False]
    assert passes(1, "another") == "another"
    assert passes(60) == "cluster hpc does not answer (and 2 times more since the last such line)"
    assert passes(121) == "cluster hpc does not answer"
    assert passes(-5) == "cluster hpc does not answer", "a clock that was put back hides nothing"
    assert all(passes(200 + number / 100, f"{number}") for number in range(1100))
    error = record("x")
    error.levelno = logging.ERROR
    assert once.filter(error)
    assert once.filter(error)
