"""`paddlecloud publish`: an address that anybody can read a file by, until it is taken back."""

from __future__ import annotations

import pytest

from paddlecloud.model.pfs import Who
from tests.unit.cli.command import Command
from tests.unit.server.running import Running

PATH = "/pfs/local/home/ann/model"


def test_a_file_is_published_listed_and_taken_back(server: Running, command: Command) -> None:
    server.services.pfs.write(Who(user="ann"), PATH, [b"weights"], size=7)
    url = command.out("publish", PATH).strip()
    assert server.pool.request("GET", url).data == b"weights"
    assert command.out("publish") == f"{url}\t{PATH}\n"
    assert command.out("publish", "--remove", PATH) == f"{PATH} is not published any more\n"
    assert server.pool.request("GET", url).status == 404
    assert command.out("publish") == ""
    assert "is not published by ann" in command.type("publish", "--remove", PATH, code=102).stderr
    assert "needs a PATH" in command.type("publish", "--remove", code=2).stderr


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("/pfs/local/home/ann/none", 102, "no such file"),
        ("/pfs/local/home/ann", 2, "is not a file"),
        ("/pfs/local/home/bob/model", 3, "is not yours"),
        ("model", 2, "must begin with /pfs/"),
    ],
)
def test_the_exit_code_tells_why_nothing_was_published(command: Command, path: str, code: int, said: str) -> None:
    refused = command.type("publish", path, code=code)
    assert said in refused.stderr
    assert refused.stdout == ""
    assert path not in command.out("publish").split()
