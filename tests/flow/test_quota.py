"""A shared server gives what the manual's free policy gives, says so when it is too much, and what is left."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from paddlecloud.model.errors import ConflictError
from paddlecloud.sdk.client import Client
from paddlecloud.sdk.profile import Profile
from tests.flow.lab import Lab
from tests.waiting import wait_until

SHARED = (
    '[server]\nport = 0\ntimezone = "Asia/Shanghai"\n[jobs]\ngrace = 5\n'
    '[clusters.cce]\nbackend = "local"\ncpus = 4\ngpus = 0\n'
)
CONF = "// of the mail\n[main]\nuserid: {user}\nak: {ak}\nsk: {sk}\n\n[openapi]\nhost = 127.0.0.1\nport = {port}\n"


class SharedLab(Lab):
    """A server that its operator started for others; who types has an access key, in the manual's client.conf."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.configure(SHARED)
        self.serving = self.begin("serve")
        try:
            wait_until((self.data / "server.json").exists, "the server has started")
            self._let_in(folder / "zhang")
        except BaseException:
            self._end()
            raise

    def as_operator(self, *words: str) -> str:
        return self.type(*words, HOME=str(self.home_of_operator)).stdout

    def close(self) -> None:
        for job in self.operator.list(everyone=True):
            if not job.state.final:
                with suppress(ConflictError):  # it may end by itself in this moment
                    self.operator.kill(job.id)
                self.operator.wait(job.id, timeout=30)
        self.user.close()
        self.operator.close()
        self._end()

    def _let_in(self, home: Path) -> None:
        self.operator = self.client()
        self.home_of_operator, self.home = self.home, home
        self.operator.accounts.add_user("zhang@example.com")
        made = self.operator.accounts.create_key("zhang@example.com")
        conf = self.home / "bin" / "paddlecloud" / "conf"
        conf.mkdir(parents=True)
        port = self.server["url"].rpartition(":")[2]
        (conf / "client.conf").write_text(CONF.format(user=made.key.user, ak=made.key.ak, sk=made.sk, port=port))
        self.env["HOME"] = str(self.home)
        self.user = Client(Profile(server=self.server["url"], ak=made.key.ak, sk=made.sk))

    def _end(self) -> None:
        self.serving.terminate()
        self.serving.communicate(timeout=30)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[SharedLab]:
    made = SharedLab(tmp_path)
    yield made
    made.close()


def test_the_third_job_queues_and_says_for_what_and_starts_when_one_ends(lab: SharedLab) -> None:
    first, second = (lab.submit("sleep 1000") for _ in range(2))
    wait_until(lambda: {lab.field(job, "job_status") for job in (first, second)} == {"running"}, "both run")
    third = lab.submit("true")
    wait_until(lambda: lab.field(third, "job_status") == "queue", "it waits")
    assert re.fullmatch(
        r"first in the queue, starts within (2[5-9]|30) min; "
        r"quota: 2 of 2 jobs running for zhang@example\.com on cce; it starts when one ends \(about (2[5-9]|30) min\)",
        lab.field(third, "queue_reason"),
    )
    head, cce, overall = lab.out("quota").splitlines()
    assert head.split("  ")[0] == "CLUSTER"
    assert re.match(r"cce +2 of 2 +1 of 100 +0 of 100 \(resets at .* 16:00:00\) +00:30:00 +1 +cluster$", cce)
    assert re.match(r"all clusters +2 +1 +0 +no limit +no limit +0 B$", overall)
    assert "2 of 2" in lab.as_operator("quota", "--user", "zhang@example.com")
    lab.type("kill_job", f"--job_id={first}")
    lab.user.wait(third, timeout=30)
    assert lab.field(third, "job_status") == "success"


@pytest.mark.parametrize(
    ("parameter", "says"),
    [
        ("--instance_count=2", "instance_count 2 asked for, 1 allowed for one job of zhang@example.com on cce"),
        (
            "--wall_time=00:31:00",
            "wall_time 00:31:00 asked for, 00:30:00 allowed for one job of zhang@example.com on cce",
        ),
    ],
)
def test_more_than_the_free_policy_gives_to_a_job_is_refused(lab: SharedLab, parameter: str, says: str) -> None:
    lab.folder()
    refused = lab.type("submit_job", "--files=job", "--start_cmd=true", parameter, code=3)
    assert refused.stderr == f"paddlecloud: quota: {says}\n"
    assert lab.out("ls") == ""
    lab.as_operator("user", "quota", "zhang@example.com", "--cluster", "cce", "--instances", "2", "--wall-time", "2h")
    lab.type("submit_job", "--files=job", "--start_cmd=true", parameter)


def test_a_task_that_will_not_stop_uses_its_users_minutes_until_it_has(lab: SharedLab) -> None:
    job = lab.submit("trap '' TERM; sleep 1000 & while :; do wait; done", "--wall_time=1s")
    lab.user.wait(job, timeout=60)
    assert lab.field(job, "job_status") == "timeout"
    assert lab.user.quota().overall.minutes_today * 60 >= 5.5


def test_a_user_without_minutes_is_told_when_there_are_more(lab: SharedLab) -> None:
    lab.as_operator("user", "quota", "zhang@example.com", "--minutes-a-day", "1")
    job = lab.submit("true")
    lab.user.wait(job, timeout=30)
    assert lab.field(job, "wall_time") == "00:01:00"
    refused = lab.type("submit_job", "--files=job", "--start_cmd=true", code=3)
    assert re.fullmatch(
        r"paddlecloud: quota: 0 of 1 minutes used today \(Asia/Shanghai\) by zhang@example\.com on all clusters, "
        r"and less than one is left; there are more after midnight, at \d{4}-\d\d-\d\dT00:00\+08:00\n",
        refused.stderr,
    )
    lab.as_operator("user", "quota", "zhang@example.com", "--reset")
    assert lab.submit("true").startswith("job-")
