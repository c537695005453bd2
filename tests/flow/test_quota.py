"""A shared server limits nobody as shipped; with one setting it gives what the manual's free policy gives."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from paddlecloud.model.errors import ConflictError
from paddlecloud.sdk.client import Client
from paddlecloud.sdk.profile import Profile
from tests.flow.lab import Lab
from tests.waiting import wait_until

FREE = '[server]\nport = 0\npolicy = "free"\ntimezone = "Asia/Shanghai"\n'
CLUSTERS = "[jobs]\ngrace = 5\n[clusters.cce]\ncpus = 4\ngpus = 0\n[clusters.bcc]\ncpus = 4\ngpus = 0\n"
EXAMPLES = Path(__file__).parents[2] / "examples"
SHIPPED = "[server]\nport = 0\n"
CONF = "// of the mail\n[main]\nuserid: {user}\nak: {ak}\nsk: {sk}\n\n[openapi]\nhost = 127.0.0.1\nport = {port}\n"


class SharedLab(Lab):
    """A server that its operator started for others; who types has an access key, in the manual's client.conf."""

    def __init__(self, folder: Path, settings: str = FREE + CLUSTERS) -> None:
        super().__init__(folder)
        self.configure(settings)
        self.serving = self.begin("serve")
        try:
            wait_until((self.data / "server.json").exists, "the server has started")
            self.operator = self.client()
            self.home_of_operator = self.home
            self.home = self.let_in("zhang@example.com", folder / "zhang")
            self.env["HOME"] = str(self.home)
            self.user = Client(self._profile)
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

    def let_in(self, name: str, home: Path) -> Path:
        """The home of a new user, with the manual's client.conf in it."""
        self.operator.accounts.add_user(name)
        made = self.operator.accounts.create_key(name)
        conf = home / "bin" / "paddlecloud" / "conf"
        conf.mkdir(parents=True)
        port = self.server["url"].rpartition(":")[2]
        (conf / "client.conf").write_text(CONF.format(user=made.key.user, ak=made.key.ak, sk=made.sk, port=port))
        self._profile = Profile(server=self.server["url"], ak=made.key.ak, sk=made.sk)
        return home

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
    third = lab.submit("true", "--cluster=bcc")
    wait_until(lambda: lab.field(third, "job_status") == "queue", "it waits")
    reason = lab.field(third, "queue_reason")
    assert "quota: 2 of 2 jobs running for zhang@example.com on all clusters; it starts when one ends" in reason
    head, cce, _, overall = lab.out("quota").splitlines()
    assert head.split("  ")[0] == "CLUSTER"
    assert re.match(r"cce +2 +0 +0 +no limit +no limit", cce)
    assert re.match(
        r"all clusters +2 of 2 +1 of 100 +0 of 100 \(resets at .* 16:00:00\) +00:30:00 +1 +0 B +server$", overall
    )
    assert "2 of 2" in lab.as_operator("quota", "--user", "zhang@example.com")
    lab.type("kill_job", f"--job_id={first}")
    lab.user.wait(third, timeout=30)
    assert lab.field(third, "job_status") == "success"


@pytest.mark.parametrize(
    ("parameter", "says"),
    [
        (
            "--instance_count=2",
            (
                "instance_count 2 asked for, 1 allowed for one job of zhang@example.com on all clusters: "
                "ask for --instance_count=1"
            ),
        ),
        (
            "--wall_time=00:31:00",
            (
                "wall_time 00:31:00 asked for, 00:30:00 allowed for one job of zhang@example.com on all clusters: "
                "ask for --wall_time=00:30:00"
            ),
        ),
    ],
)
def test_more_than_the_free_policy_gives_to_a_job_is_refused(lab: SharedLab, parameter: str, says: str) -> None:
    lab.folder()
    refused = lab.type("submit_job", "--files=job", "--start_cmd=true", parameter, code=3)
    assert refused.stderr == f"paddlecloud: quota: {says}\n"
    assert lab.out("ls") == ""
    lab.as_operator("user", "quota", "zhang@example.com", "--instances", "2", "--wall-time", "2h")
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


def test_a_shared_server_as_shipped_limits_neither_of_two_users_and_tells_each_limit(tmp_path: Path) -> None:
    lab = SharedLab(tmp_path, SHIPPED)
    try:
        li = lab.let_in("li@example.com", tmp_path / "li")
        lab.folder(run_sh="echo rank $PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM\n")
        by_manual = lab.submit("sh run.sh", "--instance_count=2")
        by_li = lab.type("submit", "job", "--nodes", "2", "--", "sh", "run.sh", HOME=str(li)).stdout.split()[-1]
        for job in (by_manual, by_li):
            lab.operator.wait(job, timeout=60)
        assert (lab.field(by_manual, "job_status"), lab.field(by_manual, "wall_time")) == ("success", "00:30:00")
        asked = lab.type("query_job", f"--job_id={by_li}", HOME=str(li)).stdout
        assert "job_status: success" in asked
        assert asked.splitlines()[-1] == "wall_time:", "no limit"
        assert "may run for" not in lab.type("run", "job", "--no-download", "--", "true", HOME=str(li)).stderr
        limited = lab.type("run", "job", "--no-download", "--time-limit", "1h", "--", "true")
        assert "; it may run for 01:00:00" in limited.stderr
        conf = li / "bin" / "paddlecloud" / "conf" / "client.conf"
        conf.write_text(conf.read_text().replace("userid: li@example.com", "userid: wang@example.com"))
        other = f"{conf} names the user wang@example.com, and its access key is li@example.com's, which counts"
        assert f"warning: {other}" in lab.type("submit_job", "--files=job", "--start_cmd=true", HOME=str(li)).stderr
        assert f"warning  identity: {other}" in lab.type("doctor", HOME=str(li), code=None).stdout
        doctor = lab.as_operator("doctor")
        assert "share this embedded server" not in doctor
        assert 'policy: open policy: no limits for each user on all clusters together; server.policy = "free"' in doctor
        assert "the shared server runs already" in lab.type("up", HOME=str(lab.home_of_operator)).stderr
    finally:
        lab.close()
    told = lab.type("status", HOME=str(lab.home_of_operator), code=None).stdout
    refused = lab.type("up", HOME=str(lab.home_of_operator), code=None).stderr
    assert "start it with: paddlecloud serve" in told, "as `up` says"
    assert "it is started with: paddlecloud serve" in refused


def test_an_example_runs_as_shipped_on_a_shared_server_as_shipped(tmp_path: Path) -> None:
    lab = SharedLab(tmp_path, f"{SHIPPED}[clusters.local]\ncpus = 8\n")
    try:
        path = f"{Path(sys.executable).parent}:{lab.env['PATH']}"
        done = subprocess.run(
            ["sh", "submit.sh"],
            cwd=EXAMPLES / "plain",
            env=lab.env | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        job = done.stdout.split()[-1]
        assert lab.user.wait(job, timeout=120).state.label == "success"
    finally:
        lab.close()


@pytest.mark.parametrize(("typed", "policy"), [("free\n", "free"), ("\n", "open"), ("", "open")])
def test_init_writes_a_commented_config_with_the_policy_that_was_asked_for(
    tmp_path: Path, typed: str, policy: str
) -> None:
    lab = Lab(tmp_path)
    done = lab.type("serve", "--init", "--config", "lab.toml", stdin=typed)
    assert done.stdout.strip() == str(lab.work / "lab.toml")
    assert "which limits do users have?" in done.stderr
    text = (lab.work / "lab.toml").read_text()
    assert tomllib.loads(text)["server"] == {"policy": policy}
    assert "# port = 8642" in text
    assert "exists: edit it" in lab.type("serve", "--init", "--config", "lab.toml", code=2).stderr
    assert "policy 'all' is not known: write open or free" in lab.type("serve", "--init", stdin="all", code=2).stderr
    lab.type("serve", "--init", "--policy", "free")
    assert tomllib.loads((lab.data / "server.toml").read_text())["server"] == {"policy": "free"}
