"""An operator's stories about records: PostgreSQL behind a running server, backups, restores, and moving house."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.model.job import JobSpec, RoleSpec
from paddlecloud.sdk.client import Client
from tests.flow.lab import Lab, a_free_port, alive
from tests.postgres import Postgres
from tests.waiting import wait_until


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    with postgres.database() as made:
        yield made


def use(lab: Lab, url: str = "") -> None:
    """Have the records at this URL from the next start on, or in the data folder."""
    database = f'database = "{url}"\n' if url else ""
    lab.configure(f'[server]\nport = {a_free_port()}\n{database}[clusters.local]\nbackend = "local"\ncpus = 20\n')


def submit(client: Client, command: str = "true") -> str:
    return client.submit(spec=JobSpec(name="it", roles=(RoleSpec(name="trainer", count=1, command=command),))).id


def test_jobs_go_on_while_postgresql_is_restarted_under_the_server(postgres: Postgres, url: str, lab: Lab) -> None:
    use(lab, url)
    lab.type("up")
    client = lab.client()
    jobs = [submit(client, "sleep 2; echo done")]
    stop = threading.Event()

    def submit_all() -> None:
        """Whatever happens to the database, the client tries on until each submit is taken once."""
        while not stop.is_set():
            jobs.append(submit(client, "echo done"))

    submitter = threading.Thread(target=submit_all)
    submitter.start()
    for how in (signal.SIGINT, signal.SIGQUIT, signal.SIGINT):
        taken = len(jobs)
        wait_until(lambda: len(jobs) > taken + 2, "jobs are taken")  # noqa: B023
        postgres.restart(how)
    taken = len(jobs)
    wait_until(lambda: len(jobs) > taken + 2, "jobs are taken again")
    stop.set()
    submitter.join()
    for job in jobs:
        lab.ends(job, "success", seconds=60)
    assert sorted(job.id for job in client.list()) == sorted(jobs)
    assert all(client.get(job).job.attempt == 1 for job in jobs)


def test_a_database_that_is_away_is_a_503_that_says_so_and_readyz_tells_it(
    postgres: Postgres, url: str, lab: Lab
) -> None:
    use(lab, url)
    lab.type("up")
    postgres.stop()
    refused = lab.type("ls", code=4)
    assert f"the database {url} does not answer" in refused.stderr
    lab.type("status", code=4)
    log = lab.data / "server.log"
    wait_until(
        lambda: f"a round failed (the database {url} does not answer" in log.read_text(), "a round fails", seconds=30
    )
    postgres.start()
    wait_until(lambda: lab.type("status", code=None).returncode == 0, "the server is ready again")
    assert lab.type("ls").returncode == 0
    assert "Traceback" not in log.read_text()


def test_a_second_server_on_the_same_database_is_refused_with_the_name_of_the_first(
    url: str, lab: Lab, tmp_path: Path
) -> None:
    use(lab, url)
    lab.type("up")
    (tmp_path / "other").mkdir()
    other = Lab(tmp_path / "other")
    use(other, url)
    refused = other.type("serve", code=1)
    assert f"pid {lab.server['pid']}" in refused.stderr
    assert "stop that server, or set server.database to another database" in refused.stderr
    assert "Traceback" not in refused.stderr
    lab.ends(submit(lab.client()), "success")


def test_a_server_whose_database_another_has_taken_over_ends(
    postgres: Postgres, url: str, lab: Lab, tmp_path: Path
) -> None:
    use(lab, url)
    lab.type("up")
    first = lab.server["pid"]
    os.kill(first, signal.SIGSTOP)
    name = url.rpartition("/")[2]
    postgres.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'")
    (tmp_path / "other").mkdir()
    other = Lab(tmp_path / "other")
    use(other, url)
    (other.data / "key").write_bytes((lab.data / "key").read_bytes())
    (other.data / "key").chmod(0o600)
    other.type("up")
    second = other.server["pid"]
    os.kill(first, signal.SIGCONT)
    wait_until(lambda: not alive(first), "the first server has ended", seconds=40)
    said = (lab.data / "server.log").read_text()
    assert f"pid {second}" in said
    assert "has taken over the database" in said
    other.close()


def test_records_are_backed_up_while_jobs_run_moved_to_postgresql_and_back_and_restored(url: str, lab: Lab) -> None:
    use(lab)
    lab.type("up")
    job = lab.submit("sleep 2; echo done")
    shown = lab.work / "running.backup"
    made = lab.type("db", "backup", "running.backup")
    assert made.stdout == f"{shown}\n"
    assert "backed up 1 job, 1 user" in made.stderr
    assert "keep it as safe as the data folder" in made.stderr
    assert "uploads and results are not in it" in made.stderr
    assert "a server (pid" in lab.type("db", "migrate", "--to", url, code=1).stderr
    lab.type("down")
    moved = lab.type("db", "migrate", "--to", url)
    assert moved.stdout == f"copied 1 job, 1 user from {lab.data / 'paddlecloud.db'} to {url}\n"
    assert f'write database = "{url}" into [server] in {lab.data / "server.toml"}' in moved.stderr
    use(lab, url)
    lab.type("up")
    lab.ends(job, "success")
    assert json.loads(lab.out("db", "status", "-o", "json"))["kind"] == "PostgreSQL"
    second = lab.submit("echo again")
    lab.ends(second, "success")
    lab.type("down")
    assert "has records already" in lab.type("db", "migrate", "--to", "sqlite", code=1).stderr
    back = lab.type("db", "migrate", "--to", "sqlite", "--force")
    assert "take the line database = … out of [server]" in back.stderr
    assert "what was there before is in" in back.stderr
    use(lab)
    lab.type("up")
    assert {found.id for found in lab.client().list()} == {job, second}
    assert lab.out("logs", job) == "done\n"
    assert "a server (pid" in lab.type("db", "restore", "--force", "running.backup", code=1).stderr
    lab.type("down")
    assert "restored 1 job, 1 user" in lab.out("db", "restore", "--force", "running.backup")
    lab.type("up")
    lab.ends(job, "success")
    lab.type("query_job", f"--job_id={second}", code=102)


def test_what_is_typed_wrong_is_refused_in_a_sentence(lab: Lab) -> None:
    for words, code, said in (
        (("db", "backup"), 1, "there are no records in"),
        (("db", "restore", "missing"), 2, "there is no backup"),
        (("db", "restore"), 2, "FILE is missing"),
        (("db", "migrate", "--to", "mysql://root:s3cret@host/x"), 2, "is no database"),
        (("db", "vacuum"), 2, "is not known"),
        (("db", "status", "--config", "missing.toml"), 1, "cannot read the config"),
    ):
        refused = lab.type(*words, code=code)
        assert said in refused.stderr, (words, refused.stderr)
        assert "s3cret" not in refused.stderr
        assert "Traceback" not in refused.stderr


def test_a_password_in_the_config_is_shown_nowhere(lab: Lab) -> None:
    use(lab, "postgresql://pc:s3cret@127.0.0.1:1/x")
    shown = lab.type("config", "--server").stdout
    assert 'database = "postgresql://pc:…@127.0.0.1:1/x"' in shown
    for words in (("serve",), ("up",), ("db", "status"), ("db", "backup")):
        refused = lab.type(*words, code=4)
        assert "postgresql://pc@127.0.0.1:1/x does not answer" in refused.stderr
        assert "s3cret" not in shown + refused.stdout + refused.stderr
    assert "s3cret" not in (lab.data / "server.log").read_text()
