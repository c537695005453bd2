"""`paddlecloud publish`: an address that anybody can read a file by, until it is taken back."""

from __future__ import annotations

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
    assert "is not published by ann" in command.type("publish", "--remove", PATH, code=2).stderr
    assert "needs a PATH" in command.type("publish", "--remove", code=2).stderr
