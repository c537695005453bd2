"""What users may have, typed: quota for everybody, user quota and user list for admins."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from paddlecloud.cli import explain
from paddlecloud.cli.aliases import query_lines
from paddlecloud.cli.describe import describe
from paddlecloud.model.job import Placement
from paddlecloud.model.pfs import Who
from paddlecloud.model.state import JobState
from paddlecloud.model.user import ALL_CLUSTERS, Quota
from paddlecloud.model.views import JobDetail
from tests.unit.cli.command import Command
from tests.unit.cli.records import CREATED, a_job
from tests.unit.server.running import Running


@pytest.fixture
def admin(server: Running, command: Command) -> Command:
    command.variables["PADDLECLOUD_TOKEN"] = server.root
    return command


def lines(text: str) -> list[list[str]]:
    """The cells of a table."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


def limits(command: Command, name: str, cluster: str | None = None) -> dict[str, Any]:
    """What counts of a user's limits there."""
    use = json.loads(command.out("quota", "--user", name, "-o", "json"))
    place = use["overall"] if cluster is None else use["clusters"][cluster]
    return {limit: value for limit, value in place["quota"].items() if value is not None}


def test_quota_has_a_line_for_each_cluster_and_one_for_all(server: Running, command: Command) -> None:
    server.users.change("ann", quotas={"local": Quota(running_jobs=2, minutes_a_day=100, wall_time_seconds=1800)})
    server.run(name="counted")
    head, local, overall = lines(command.out("quota"))
    assert head == ["CLUSTER", "RUNNING", "WAITING", "MINUTES TODAY", "WALL TIME", "INSTANCES", "SPACE", "LIMITS OF"]
    assert local[:3] == ["local", "1 of 2", "0"]
    assert local[3].startswith("0 of 100 (resets at 20")
    assert local[4:] == ["00:30:00", "no limit", "own"]
    assert overall == ["all clusters", "1", "0", "0", "no limit", "no limit", "0 B"]
    server.users.change("ann", quotas={"local": None})


def test_quota_of_another_user_is_for_admins(command: Command) -> None:
    assert "it takes an admin" in command.type("quota", "--user", "bob", code=3).stderr


def test_limits_are_set_one_by_one_on_all_clusters_or_on_one_and_the_others_stay(
    server: Running, admin: Command
) -> None:
    server.add_user("limited")
    admin.type("user", "quota", "limited", "--running-jobs", "2", "--wall-time", "00:30:00")
    admin.type("user", "quota", "limited", "--minutes-a-day", "100", "--running-jobs", "none")
    assert limits(admin, "limited") == {"minutes_a_day": 100, "wall_time_seconds": 1800}
    table = admin.out("user", "quota", "limited", "--cluster", "local", "--instances", "3", "--waiting-jobs", "9")
    assert lines(table)[1] == ["local", "0", "0 of 9", "0", "no limit", "3", "own"]
    assert limits(admin, "limited", "local") == {"instances": 3, "waiting_jobs": 9}
    listed = lines(admin.out("user", "list"))
    assert listed[0][3:9] == ["RUNNING JOBS", "MINUTES A DAY", "INSTANCES", "WALL TIME", "SPACE", "OWN LIMITS ON"]
    assert next(row for row in listed if row[0] == "limited")[2:8] == [
        "no limit",
        "100",
        "no limit",
        "00:30:00",
        "no limit",
        "local",
    ]
    admin.type("user", "quota", "limited", "--cluster", "local", "--reset")
    admin.type("user", "quota", "limited", "--reset")
    assert (limits(admin, "limited"), limits(admin, "limited", "local")) == ({}, {})
    assert server.users.quotas(["limited"]) == {}


@pytest.mark.parametrize(
    ("typed", "code", "says"),
    [
        (
            ["--cluster", "ccee", "--running-jobs", "1"],
            2,
            "cluster 'ccee' is not configured on this server; it has local",
        ),
        (
            ["--running-jobs", "some"],
            2,
            "--running-jobs 'some' is not a limit: write a whole number, 0 or more, or none",
        ),
        (["--running-jobs=-1"], 2, "--running-jobs '-1' is not a limit: write a whole number, 0 or more, or none"),
        (["--minutes-a-day", "-1"], 2, "--minutes-a-day"),
        (["--wall-time", "100000:00:00"], 2, "--wall-time 100000:00:00 is too long"),
        (["--instances", "99999999999"], 2, ": use 0 or more, or none"),
        (["--reset", "--running-jobs", "1"], 2, "set some or reset all, not both"),
        (["--reset", "--space", "1Gi"], 2, "set some or reset all, not both"),
        (["--space", "much"], 2, "--space 'much' is not a size: write 512Mi, 1Gi or 10GB"),
        (["--space", "9999999P"], 2, ": use 0 or more, or none"),
        (["--cluster", "local", "--space", "1Gi"], 2, "files belong to no cluster; set it for all clusters"),
    ],
)
def test_a_limit_that_is_none_is_refused(admin: Command, typed: list[str], code: int, says: str) -> None:
    assert says in admin.type("user", "quota", "ann", *typed, code=code).stderr


def test_space_is_typed_and_shown_as_a_size_with_what_is_kept_of_it(server: Running, admin: Command) -> None:
    server.add_user("keeper")
    size = 3 * 2**19
    server.services.pfs.write(Who(user="keeper"), "/pfs/local/home/keeper/model", [bytes(size)], size=size)
    table = lines(admin.out("user", "quota", "keeper", "--space", "10Gi"))
    assert [row[-2:] for row in table] == [
        ["SPACE", "LIMITS OF"],
        ["no limit", "no limit"],
        ["1.5 MiB of 10.0 GiB", "own"],
    ]
    assert limits(admin, "keeper") == {"space_bytes": 10 * 2**30}
    admin.type("user", "quota", "keeper", "--space", "none")
    assert lines(admin.out("quota", "--user", "keeper"))[2][-1] == "1.5 MiB"


def test_the_limits_of_nobody_are_not_found(admin: Command) -> None:
    assert "no user 'nobody'" in admin.type("user", "quota", "nobody", "--reset", code=102).stderr


def test_a_job_that_ran_out_of_the_days_minutes_says_so_everywhere(server: Running) -> None:
    short = Placement(cluster="local", tasks=(), wall_time_seconds=720)
    job = a_job(state=JobState.TIMEOUT, placement=short, error="ran out of the day's minutes")
    detail = JobDetail(job=job)
    assert "wall_time: 00:12:00" in query_lines(detail, CREATED)
    assert "limit      00:12:00 (all that was left of the day's minutes; 00:30:00 was asked for)" in describe(
        detail, CREATED
    )
    told = "\n".join(explain.ending(detail))
    assert "paddlecloud quota" in told
    assert "--time-limit" not in told
    whole = replace(job, placement=replace(short, wall_time_seconds=None))
    assert "--time-limit" in "\n".join(explain.ending(JobDetail(job=whole)))


def test_quotas_of_all_clusters_are_listed_with_the_users(server: Running, admin: Command) -> None:
    server.add_user("listed")
    server.users.change("listed", quotas={ALL_CLUSTERS: Quota(instances=7)})
    found = json.loads(admin.out("user", "list", "-o", "json"))
    assert next(one for one in found if one["name"] == "listed")["quota"]["instances"] == 7
