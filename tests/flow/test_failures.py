"""A job that fails is started again as it asked, one that hangs is named, and what it leaves can be looked at."""

from __future__ import annotations

import json

from tests.flow.lab import Lab
from tests.waiting import wait_until

# Resumes from its newest checkpoint, and dies in the middle of its first two attempts.
RESUMING = """
import os
folder = os.environ["OUTPUT_PATH"]
done = max([int(name) for name in os.listdir(folder)], default=0)
print("attempt", os.environ["PADDLECLOUD_ATTEMPT"], "from step", done, flush=True)
for step in range(done + 1, 10):
    with open(os.path.join(folder, ".part"), "w") as checkpoint:
        checkpoint.write("weights")
    os.rename(os.path.join(folder, ".part"), os.path.join(folder, str(step)))
    if step in (3, 6):
        raise SystemExit(CODE)
"""


def attempts(lab: Lab, job: str) -> int:
    return int(json.loads(lab.out("show", job, "-o", "json"))["job"]["attempt"])


def test_a_job_that_fails_goes_on_from_its_checkpoint_as_often_as_it_may(lab: Lab) -> None:
    lab.folder(train_py=RESUMING.replace("CODE", "1"))
    job = lab.out("submit", "job", "--retry", "2", "--", "python", "train.py").split()[-1]
    lab.ends(job, "success", seconds=60)
    assert attempts(lab, job) == 3
    said = [line for line in lab.out("logs", job).splitlines() if line.startswith("attempt")]
    assert said == ["attempt 1 from step 0", "attempt 2 from step 3", "attempt 3 from step 6"]
    history = lab.out("show", job)
    assert "trainer-0 failed first: exit code 1; attempt 2 follows (retry 1 of 2)" in history
    once = lab.out("submit", "job", "--", "python", "train.py").split()[-1]
    lab.ends(once, "failed")


def test_exit_code_101_means_restart_me(lab: Lab) -> None:
    lab.folder(train_py=RESUMING.replace("CODE", "101"))
    job = lab.out("submit", "job", "--", "python", "train.py").split()[-1]
    lab.ends(job, "success", seconds=60)
    assert attempts(lab, job) == 3


def test_a_gang_is_started_again_as_a_whole_with_new_ports(lab: Lab) -> None:
    lab.folder(
        run_sh='echo "$PADDLE_TRAINER_ENDPOINTS" > $OUTPUT_PATH/attempt-$PADDLECLOUD_ATTEMPT\n'
        '[ "$PADDLECLOUD_ATTEMPT$PADDLE_TRAINER_ID" = 11 ] && exit 9\n'
        '[ "$PADDLECLOUD_ATTEMPT" = 1 ] && sleep 1000\nexit 0\n'
    )
    job = lab.out("submit", "job", "--nodes", "2", "--retry", "1", "--", "sh", "run.sh").split()[-1]
    lab.ends(job, "success", seconds=60)
    lab.out("cp", job, "got")
    seen = {path.name: path.read_text() for path in lab.work.glob("got/**/rank-0/attempt-*")}
    ports = [{endpoint.rpartition(":")[2] for endpoint in text.strip().split(",")} for text in seen.values()]
    assert len(ports) == 2
    assert not ports[0] & ports[1]


def test_a_deadlocked_pair_is_named_and_ended_if_asked(lab: Lab) -> None:
    lab.folder(run_sh="echo hello\nexec sleep 1000\n")
    named = lab.out("submit", "job", "--nodes", "2", "--hang", "5s", "--", "sh", "run.sh").split()[-1]
    client = lab.client()
    wait_until(lambda: client.get(named).job.quiet_since, "it is seen to hang", seconds=60)
    assert "it seems to hang" in lab.out("ls")
    assert "running -> running" in lab.out("events", named)
    assert client.get(named).job.state.label == "running"
    lab.type("kill", named)
    killed = lab.out("submit", "job", "--nodes", "2", "--hang", "5s", "--kill-hung", "--", "sh", "run.sh").split()[-1]
    lab.ends(killed, "failed", seconds=60)
    assert "it seems to hang" in lab.field(killed, "error_msg")


def test_a_failed_jobs_workspace_can_be_looked_at(lab: Lab) -> None:
    lab.folder(run_sh="echo half > state\nexit 4\n")
    job = lab.out("submit", "job", "--keep-on-failure", "--", "sh", "run.sh").split()[-1]
    lab.ends(job, "failed")
    lab.out("cp", job, "got")
    assert [path.read_text() for path in lab.work.glob("got/**/workspace/attempt-1/trainer-0/state")] == ["half\n"]


def test_what_makes_a_trainer_train_alone_is_refused(lab: Lab) -> None:
    lab.folder()
    done = lab.type("submit", "job", "--env", "WORLD_SIZE=1", "--", "true", code=None)
    assert done.returncode != 0
    assert "WORLD_SIZE is set by PaddleCloud in each task and cannot be given" in done.stderr
    done = lab.type("submit", "job", "--retry", "-1", "--", "true", code=None)
    assert done.returncode != 0
    assert "retry.user_error is -1" in done.stderr
