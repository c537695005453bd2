"""Each cause of a failure is recognised by what a real program leaves behind."""

from __future__ import annotations

import pytest

from paddlecloud.model import causes
from paddlecloud.model.causes import Class
from paddlecloud.model.state import StopReason
from paddlecloud.model.task import TaskReport, TaskState

TRACE = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'


@pytest.mark.parametrize(
    ("found", "name"),
    [
        ({"exit_code": 1, "tail": f"{TRACE}ModuleNotFoundError: No module named 'torch'\n"}, "missing_module"),
        ({"exit_code": 1, "tail": "/usr/bin/python3: No module named t2t\n"}, "missing_module"),
        ({"exit_code": 1, "tail": f"{TRACE}torch.OutOfMemoryError: CUDA out of memory. Tried\n"}, "cuda_out_of_memory"),
        ({"exit_code": 1, "tail": f"{TRACE}MemoryError\n"}, "out_of_memory"),
        ({"signal": 9, "reason": "out of memory: used more than its limit of 64.0 MiB"}, "out_of_memory"),
        ({"exit_code": 1, "tail": "OSError: [Errno 28] No space left on device\n"}, "disk_full"),
        ({"exit_code": 1, "tail": '  File "x.py", line 1\n    a b\nSyntaxError: invalid syntax\n'}, "python_syntax"),
        ({"exit_code": 127, "reason": "exit code 127: command not found"}, "command_not_found"),
        ({"exit_code": 126}, "not_permitted"),
        ({"exit_code": 1, "tail": f"{TRACE}PermissionError: [Errno 13] Permission denied: 'x'\n"}, "not_permitted"),
        ({"exit_code": 1, "tail": f"{TRACE}FileNotFoundError: [Errno 2] No such file\n"}, "missing_file"),
        (
            {"exit_code": 2, "tail": "python: can't open file '/data/x.py': [Errno 2] No such file or directory\n"},
            "missing_file",
        ),
        ({"exit_code": 2, "tail": "sh: 1: cannot open /data/x: No such file\n"}, "missing_file"),
        ({"exit_code": 1, "tail": f"{TRACE}x.NotFoundError: /data/x; No such file or directory\n"}, "missing_file"),
        ({"exit_code": 1, "tail": "/x/command: line 4: FOO: unbound variable\n"}, "unbound_variable"),
        ({"exit_code": 1, "tail": "OSError: [Errno 98] Address already in use\n"}, "port_in_use"),
        ({"exit_code": 1, "tail": "RuntimeError: No CUDA GPUs are available\n"}, "no_gpu"),
        ({"exit_code": 1, "tail": "RuntimeError: NCCL error in: x\n"}, "peer_lost"),
        ({"signal": 9}, "killed"),
        ({"exit_code": 137}, "killed"),
        ({"signal": 15}, "terminated"),
        ({"exit_code": 130}, "terminated"),
        ({"signal": 11}, "crashed"),
        ({"exit_code": 134}, "crashed"),
        ({"exit_code": 1, "tail": f"{TRACE}ValueError: x\n"}, "python_error"),
        ({"exit_code": 3, "tail": "that did not work\n"}, "failed"),
        ({"exit_code": 1, "reason": "its environment could not be built from requirements.txt: x"}, "environment"),
    ],
)
def test_a_failure_has_its_cause(found: dict[str, object], name: str) -> None:
    cause = causes.of_task(TaskReport(name="a-0", state=TaskState.FAILED, **found))  # type: ignore[arg-type]
    assert cause is not None
    assert cause.name == name
    assert cause.remedies


@pytest.mark.parametrize(
    ("found", "line"),
    [
        ({"exit_code": 1, "tail": f"{TRACE}ModuleNotFoundError: No module named 'numpi'\n"}, "No module named 'numpi'"),
        ({"exit_code": 1, "tail": "/usr/bin/python3: No module named t2t\n"}, "No module named t2t"),
        ({"exit_code": 1, "tail": f"libcuda.so.1: cannot open\n{TRACE}ValueError: x\nbye\n"}, "ValueError: x"),
        ({"exit_code": 1, "tail": f"{TRACE}ValueError: \x1b[31m\x00x\r\n"}, "ValueError:  [31m x"),
        ({"exit_code": 1, "tail": f"{TRACE}ValueError: {'x' * 500}\n"}, f"ValueError: {'x' * 187}…"),
        (
            {"exit_code": 1, "tail": '  File "x.py", line 1\nSyntaxError: invalid syntax\n'},
            "SyntaxError: invalid syntax",
        ),
        (
            {"exit_code": 127, "reason": "exit code 127: x", "tail": "sh: 1: pyton: not found\n"},
            "sh: 1: pyton: not found",
        ),
        ({"exit_code": 1, "tail": "Connection refused\n" + "fine\n" * 20}, ""),  # too long ago
        ({"exit_code": 1, "tail": TRACE}, ""),
        ({"exit_code": 3, "tail": "that did not work\n"}, ""),
        ({"signal": 9, "tail": "Connection refused\n"}, ""),
        ({"exit_code": 137, "tail": "Connection refused\n"}, ""),
    ],
)
def test_the_line_that_tells_why_is_found(found: dict[str, object], line: str) -> None:
    assert causes.line_of(TaskReport(name="a-0", state=TaskState.FAILED, **found)) == line  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stop", "name", "kind"),
    [
        (StopReason.NODE_LOST, "node_lost", Class.TRANSIENT),
        (StopReason.PREEMPTED, "preempted", Class.TRANSIENT),
        (StopReason.WALL_TIME, "time_limit", Class.PERMANENT),
        (StopReason.ASKED, "stopped", Class.PERMANENT),
        (StopReason.QUEUE_TIME, "not_placed", Class.UNKNOWN),
        (StopReason.HUNG, "hung", Class.UNKNOWN),
        (StopReason.TASK_FAILED, "command_not_found", Class.PERMANENT),
    ],
)
def test_a_job_that_was_stopped_has_the_cause_of_its_stop(stop: StopReason, name: str, kind: Class) -> None:
    cause = causes.of_job(stop, [TaskReport(name="a-0", state=TaskState.FAILED, exit_code=127)])
    assert cause is not None
    assert (cause.name, cause.class_) == (name, kind)


def test_what_has_not_failed_has_no_cause() -> None:
    assert causes.of_task(TaskReport(name="a-0", state=TaskState.SUCCEEDED, exit_code=0)) is None
    assert causes.of_task(TaskReport(name="a-0", state=TaskState.RUNNING)) is None
    assert causes.of_job(StopReason.DONE, []) is None
    assert causes.of_job(None, []) is None


def test_names_tell_causes_apart() -> None:
    names = [cause.name for cause in causes.ALL]
    assert len(names) == len(set(names)) > 15


OWN = f"/srv/cloud/tasks/local/job-{'0' * 32}-1/trainer-0/own/work"
MISSING = "FileNotFoundError: [Errno 2] No such file or directory:"


@pytest.mark.parametrize(
    ("found", "path", "folder"),
    [
        ({"exit_code": 1, "tail": f"{TRACE}{MISSING} '/data/train/part-0'\n"}, "/data/train/part-0", "/data"),
        ({"exit_code": 1, "tail": f"{TRACE}{MISSING} '/scratch'\n"}, "/scratch", "/scratch"),
        (
            {"exit_code": 1, "tail": "cat: /mnt/nfs/cifar/x: No such file or directory\n"},
            "/mnt/nfs/cifar/x",
            "/mnt/nfs",
        ),
        ({"exit_code": 2, "tail": "sh: 1: cd: can't cd to /home/zhang/code\n"}, "/home/zhang/code", "/home/zhang"),
        (
            {"exit_code": 127, "tail": "sh: 1: /opt/conda/bin/python: not found\n"},
            "/opt/conda/bin/python",
            "/opt/conda",
        ),
        (
            {"exit_code": 126, "tail": "sh: ./x: /opt/conda/bin/python: bad interpreter: No such file or directory\n"},
            "/opt/conda/bin/python",
            "/opt/conda",
        ),
        ({"exit_code": 1, "tail": f"{OWN}/run.sh: line 3: /data/x: No such file or directory\n"}, "/data/x", "/data"),
        ({"exit_code": 1, "tail": f"{MISSING} '/data/a' -> '/pfs/local/home/you/a'\n"}, "/data/a", "/data"),
    ],
)
def test_a_path_that_tasks_may_not_see_is_named_with_the_setting_that_shows_it(
    found: dict[str, object], path: str, folder: str
) -> None:
    task = TaskReport(name="a-0", state=TaskState.FAILED, **found)  # type: ignore[arg-type]
    cause = causes.of_job(StopReason.TASK_FAILED, [task], cluster="cce")
    assert cause is not None
    first = cause.remedies[0]
    assert first.startswith(f"if {path} exists on the server's machine: tasks of a shared server do not see it")
    assert first.endswith(f'ask the operator to add visible = ["{folder}"] to [clusters.cce]')
    usual = next(one for one in causes.ALL if one.name == cause.name)
    assert cause.remedies[1:] == usual.remedies


@pytest.mark.parametrize(
    "tail",
    [
        f"{MISSING} 'data/x'\n",
        f"{MISSING} '/pfs/local/home/you/x'\n",
        f"{MISSING} '/tmp/x'\n",
        f"{MISSING} '/usr/share/x'\n",
        f"{MISSING} '{OWN}/x'\n",
        f"{OWN}/run.sh: line 3: x.txt: No such file or directory\n",
        f"{MISSING} 'hdfs://namenode:54310/data/x'\n",
        f"{MISSING} '../data/x'\n",
        f"see /data/x for help\n{MISSING} 'x'\n",
    ],
)
def test_a_path_that_tasks_have_or_that_is_relative_is_not_said_to_be_unseen(tail: str) -> None:
    cause = causes.of_task(TaskReport(name="a-0", state=TaskState.FAILED, exit_code=1, tail=tail))
    assert cause == causes.NO_FILE


def test_a_cluster_that_is_not_known_is_left_to_the_reader() -> None:
    task = TaskReport(name="a-0", state=TaskState.FAILED, exit_code=1, tail=f"{MISSING} '/data/x'\n")
    cause = causes.of_task(task)
    assert cause is not None
    assert cause.remedies[0].endswith("to [clusters.NAME]")
