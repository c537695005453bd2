"""Seeds 000 and 002 from their first line: a key by mail, pasted at a terminal, and then a job."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from email import message_from_bytes
from email.policy import SMTPUTF8
from pathlib import Path

import pytest

from tests.flow.lab import COMMAND, Lab
from tests.mailbox import Mailbox, a_free_port, key_in, served
from tests.waiting import wait_until


class Box:
    """A lab's shared server, and somebody else's laptop."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.home = folder / "laptop"
        self.home.mkdir()
        self.env = lab.env | {"HOME": str(self.home), "PADDLECLOUD_DATA": str(self.home / "data")}
        self._port = a_free_port()
        self._servers: list[subprocess.Popen[bytes]] = []

    def serve(self, port: int) -> str:
        """Start the server, which sends mail by this port; its URL."""
        self.lab.configure(
            f'[server]\nport = {self._port}\n[accounts]\ngen_token = "domains"\nmail_domains = ["163.com"]\n'
            f'[mail]\nsmtp = "smtp://127.0.0.1:{port}"\nsender = "paddlecloud@lab.example"\n'
        )
        with (self.lab.home / "server.log").open("ab") as log:
            self._servers.append(subprocess.Popen([*COMMAND, "serve"], stdout=log, stderr=log, env=self.lab.env))
        wait_until((self.lab.data / "server.json").exists, "the server is there")
        return str(self.lab.server["url"])

    def type(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *words], capture_output=True, text=True, cwd=self.lab.work, env=self.env, timeout=60
        )

    def close(self) -> None:
        for server in self._servers:
            server.terminate()
            server.wait()


@pytest.fixture
def box(lab: Lab, tmp_path: Path) -> Iterator[Box]:
    made = Box(lab, tmp_path)
    yield made
    made.close()


class Terminal:
    """A command at a terminal of its own."""

    def __init__(self, words: list[str], cwd: Path, env: dict[str, str]) -> None:
        self._screen, theirs = pty.openpty()
        self.process = subprocess.Popen(
            words, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=env, start_new_session=True
        )
        os.close(theirs)
        self.shown = ""

    def until(self, text: str) -> None:
        deadline = time.monotonic() + 30
        while text not in self.shown:
            ready, _, _ = select.select([self._screen], [], [], deadline - time.monotonic())
            assert ready, f"{text!r} does not come: {self.shown!r}"
            self.shown += os.read(self._screen, 65536).decode()

    def type(self, text: str) -> None:
        os.write(self._screen, f"{text}\n".encode())

    def end(self) -> int:
        code = self.process.wait(timeout=30)
        os.close(self._screen)
        return code


def newest_key(mailbox: Mailbox) -> tuple[str, str]:
    wait_until(lambda: mailbox.texts, "a letter comes", seconds=40.0)
    return key_in(mailbox.texts[-1])


def test_the_manual_from_gen_token_to_a_jobs_end(box: Box) -> None:
    with served(Mailbox()) as mailbox:
        url = box.serve(mailbox.port)
        words = [sys.executable, "-m", "paddlecloud", "gen_token", "--email=张三@163.com", "--server", url]
        terminal = Terminal(words, box.lab.work, box.env)
        terminal.until("create_token...")
        terminal.until("Paste your ak here:")
        ak, sk = newest_key(mailbox)
        terminal.type(ak)
        terminal.until("Paste your sk here:")
        terminal.type(sk)
        terminal.until("create_token done")
        assert terminal.end() == 0
        assert sk not in terminal.shown
    assert mailbox.envelopes[0].rcpt_tos == ["张三@163.com"]

    box.lab.folder(run_sh="echo hello\n")
    submitted = box.type("submit_job", "--files=job", "--start_cmd=sh run.sh")
    assert submitted.returncode == 0, submitted.stderr
    job = submitted.stdout.split()[-1]
    waited = box.type("wait", job, "--timeout", "30s")
    assert waited.returncode == 0, waited.stderr
    assert "job_status: success" in box.type("query_job", f"--job_id={job}").stdout

    acts = box.lab.type("audit", "--since", "1h").stdout
    for act in (f"job.submit +{job}", "mail.sent +张三@163.com", f"key.create +{ak}", "gen_token +张三@163.com"):
        assert re.search(act, acts), acts
    assert sk not in acts
    assert sk not in (box.lab.home / "server.log").read_text()


def test_a_letter_that_was_promised_survives_kill_9_and_a_mail_server_that_is_down(box: Box) -> None:
    mailbox = Mailbox(port=a_free_port())
    url = box.serve(mailbox.port)
    asked = box.type("gen_token", "--email=li.si@163.com", "--server", url)
    assert "is on its way to li.si@163.com" in asked.stderr
    box.lab.kill_server()
    (box.lab.data / "server.json").unlink()
    # What it was writing when it was killed is no letter yet.
    kept = [file for file in (box.lab.data / "outbox").iterdir() if not file.name.startswith(".")]
    assert len({file.stem for file in kept}) == 1
    with served(mailbox):
        assert box.serve(mailbox.port) == url
        ak, sk = newest_key(mailbox)
        wait_until(lambda: list((box.lab.data / "outbox").iterdir()) == [], "the outbox is empty")
    assert len(mailbox.letters) == 1
    logged_in = box.type("login", "--server", url, "--ak", ak, "--sk", sk)
    assert logged_in.returncode == 0, logged_in.stderr
    assert "li.si@163.com" in logged_in.stderr


def test_a_letter_that_the_mail_server_cannot_address_stays_and_the_operator_is_told(box: Box) -> None:
    with served(Mailbox(), utf8=False) as mailbox:
        url = box.serve(mailbox.port)
        box.type("gen_token", "--email=张三@163.com", "--server", url)
        log = box.lab.home / "server.log"
        wait_until(
            lambda: "takes no address such as 张三@163.com (it has no SMTPUTF8)" in log.read_text(), "it is told"
        )
        [letter] = (box.lab.data / "outbox").glob("*.eml")
        assert key_in(message_from_bytes(letter.read_bytes(), policy=SMTPUTF8).get_content())
        os.utime(letter, (0, 0))
        told = box.lab.type("doctor", code=None).stdout
        assert f"warning  mail: in {letter.parent} is mail that could not be sent: {letter.name}" in told


def test_an_address_of_another_domain_is_told_which_get_keys(box: Box) -> None:
    url = box.serve(a_free_port())
    refused = box.type("gen_token", "--email=eve@evil.example", "--server", url)
    assert refused.returncode == 3
    assert "only to addresses at 163.com" in refused.stderr
