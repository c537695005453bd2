"""A lab with groups: what members may have by their group, which queues they may use, and what those hold at a time."""

from __future__ import annotations

from paddlecloud.sdk.client import Client
from paddlecloud.sdk.profile import Profile
from tests.flow.lab import Lab
from tests.waiting import wait_until

SETTINGS = """
[clusters.local]
cpus = 4
policy = "open"
running_jobs = 1

[queues.course]
cluster = "local"
groups = ["students"]
cpus = 2

[queues.all]
cluster = "local"
"""


def test_a_group_gives_its_members_queues_and_limits_until_they_leave(lab: Lab) -> None:
    lab.configure(SETTINGS)
    lab.type("up")
    lab.type("user", "add", "ann", "--password", stdin="correct horse\n")
    with Client(Profile(server=lab.server["url"], user="ann", password="correct horse")) as client:
        token = client.accounts.login("ann", "correct horse").secret
    ann = {"PADDLECLOUD_SERVER": lab.server["url"], "PADDLECLOUD_TOKEN": token}
    assert [line.split()[0] for line in lab.type("queues", **ann).stdout.splitlines()] == ["NAME", "all"]
    lab.type("group", "add", "students", "--members", "ann")
    lab.type("group", "set", "students", "--cluster", "local", "--running-jobs", "3")
    head, local, _ = lab.type("quota", **ann).stdout.splitlines()
    assert head.rstrip().endswith("LIMITS OF")
    assert local.rstrip().endswith("group students")
    assert "0 of 3" in local
    listed = lab.type("queues", **ann).stdout
    assert "0 of 2 CPUs" in listed
    assert "group students" in listed

    lab.folder()
    asked = ("submit", "--queue", "course", "job", "--cpus", "2", "--", "sleep", "600")
    first = lab.type(*asked, **ann).stdout.split()[-1]
    wait_until(lambda: "running" in lab.type("show", first, **ann).stdout, "the first runs")
    second = lab.type(*asked, **ann).stdout.split()[-1]
    reason = "queue course: its jobs use 2 of 2 CPUs that they may at a time, and this one needs 2 CPUs"
    wait_until(
        lambda: reason in lab.type("queue", **ann).stdout or reason in lab.type("show", second, **ann).stdout, "why"
    )
    other = lab.type("submit", "--queue", "all", "job", "--", "true", **ann).stdout.split()[-1]
    lab.type("wait", other, **ann)  # which the one that waits does not hold up
    too_large = ("submit", "--queue", "course", "job", "--cpus", "3", "--", "true")
    refused = lab.type(*too_large, code=None, **ann)
    assert refused.returncode != 0
    assert "its jobs may use 2 CPUs at a time, and this one alone needs 3 CPUs" in refused.stderr
    lab.type("kill", first, **ann)
    wait_until(lambda: "running" in lab.type("show", second, **ann).stdout, "the second runs")

    lab.type("group", "leave", "students", "ann")
    refused = lab.type("submit", "--queue", "course", "job", "--", "true", code=None, **ann)
    assert "queue course is not open to ann; you may use all" in refused.stderr
    assert "1 of 1" in lab.type("quota", **ann).stdout
    lab.type("kill", second, **ann)
