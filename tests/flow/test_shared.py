"""A shared folder as an operator and a group live with it: the real command, the real server, and tasks that see it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paddlecloud.model.errors import InvalidError, NotFoundError
from paddlecloud.model.job import Input
from paddlecloud.sdk.client import Client
from paddlecloud.sdk.profile import Profile
from tests.flow.lab import Lab

PASSWORD = "correct horse"


class Person:
    def __init__(self, lab: Lab, name: str) -> None:
        lab.type("user", "add", name, "--password", stdin=f"{PASSWORD}\n")
        self.name = name
        self.client = Client(Profile(server=lab.server["url"], user=name, password=PASSWORD))
        self.env = {
            "PADDLECLOUD_SERVER": lab.server["url"],
            "PADDLECLOUD_TOKEN": self.client.accounts.login(name, PASSWORD).secret,
        }

    def run(self, script: str) -> tuple[str, str]:
        """A job of one task: its state, and what it said."""
        job = self.client.submit(command=script)
        ended = self.client.wait(job.id, timeout=60)
        return ended.state.label, "".join(piece.text for piece in self.client.logs(job.id))


@pytest.fixture
def people(lab: Lab) -> Iterator[tuple[Lab, Person, Person]]:
    lab.configure("[jobs]\ngrace = '1s'\n")
    lab.type("up")
    ann, bob = Person(lab, "ann"), Person(lab, "bob")
    yield lab, ann, bob
    ann.client.close()
    bob.client.close()


def test_a_folder_is_shared_with_a_group_and_its_tasks_see_what_its_members_may(
    people: tuple[Lab, Person, Person],
) -> None:
    lab, ann, bob = people
    lab.type("group", "add", "lab", "--members", "ann")
    lab.type("group", "add", "guests", "--members", "bob")
    assert lab.out("share", "add", "demo", "--write", "lab") == "/pfs/local/shared/demo\n"
    (lab.work / "data").write_text("from the laptop\n")
    lab.type("cp", "data", "/pfs/local/shared/demo/data", **ann.env)
    seen = "cd /pfs/local/shared && ls && cat demo/data && echo from a task > demo/made"
    assert ann.run(seen) == ("success", "demo\nfrom the laptop\n")
    assert lab.type("ls", "/pfs/local/shared/demo", **ann.env).stdout.split()[-1].endswith("made")

    refused = lab.type("cp", "/pfs/local/shared/demo/made", "taken", code=102, **bob.env)
    assert "no folder 'demo' that is shared with bob" in refused.stderr
    assert bob.run("ls -d /pfs/local/shared/demo; ls /pfs/local")[1].splitlines()[1:] == ["home", "public"]
    source = f"{lab.data}/pfs/local/shared/demo/data"
    assert bob.run(f"cat {source}")[0] == "failed"  # nor where it is on the disk
    bob.client.pfs.make_folder("/pfs/local/home/bob/x")
    state, said = bob.run(
        "cd /pfs/local/home/bob; ln -s /pfs/local/shared/demo/data link; cat link; ln ../../shared/demo/data hard"
    )
    assert state == "failed"
    with pytest.raises(NotFoundError):
        bob.client.pfs.get("/pfs/local/home/bob/link/data", lab.work / "taken")
    with pytest.raises(InvalidError, match="no folder 'demo'"):
        bob.client.submit(command="true", inputs=[Input(source="/pfs/local/shared/demo/data", target="data")])

    lab.type("share", "grant", "demo", "guests")
    state, said = bob.run("cat /pfs/local/shared/demo/made; echo x > /pfs/local/shared/demo/made")
    assert (state, said.splitlines()[0]) == ("failed", "from a task")
    assert "Read-only file system" in said
    job = bob.client.submit(
        command="cat data/data", inputs=[Input(source="/pfs/local/shared/demo/data", target="data/data")]
    )
    assert bob.client.wait(job.id, timeout=60).state.label == "success"

    lab.type("group", "leave", "guests", "bob")
    assert lab.type("ls", "/pfs/local/shared/demo", code=102, **bob.env).stdout == ""
    assert bob.run("cat /pfs/local/shared/demo/made")[0] == "failed"
    listed = lab.out("share", "list").splitlines()
    assert listed[0].split()[:2] == ["PATH", "USED"]
    assert listed[1].split()[0] == "/pfs/local/shared/demo"
    assert "guests" in listed[1]
    assert "is not empty" in lab.type("share", "remove", "demo", code=None).stderr
    lab.type("share", "remove", "demo", "-r")
    assert ann.run("ls /pfs/local/shared/demo")[0] == "failed"
