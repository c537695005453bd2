"""A shared server with a certificate of the lab's own CA: whoever has the CA's file works as ever, nobody else gets in;
and its log, of a whole day of logins, keys and jobs, holds none of the secrets that were used."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.certificates import Authority
from tests.flow.lab import COMMAND, Lab
from tests.waiting import wait_until

CONFIG = """[server]
port = 0
log_format = "json"
log_level = "debug"
{certificate}
[accounts]
gen_token = "open"
[mail]
smtp = "smtp://127.0.0.1:1"
user = "postmaster"
password_file = "{password}"
[clusters.local]
policy = "open"
"""
PASSWORD, WRONG, MAIL = "correct horse battery", "wrong horse battery", "the password of mail"


class EncryptedLab(Lab):
    """The server in the foreground, as an operator runs it; who types is somebody else, with a HOME of their own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.authority = Authority(folder / "ca")
        (folder / "mail-password").write_text(MAIL)
        certificate = self.authority.issue().config
        self.configure(CONFIG.format(certificate=certificate, password=folder / "mail-password"))
        self.log = folder / "log"
        with self.log.open("w") as stream:
            self.serving = subprocess.Popen([*COMMAND, "serve"], stderr=stream, env=self.env, cwd=self.work)
        wait_until(lambda: (self.data / "server.json").exists() or self.serving.poll() is not None, "it has started")
        assert self.serving.poll() is None, self.log.read_text()
        self.url: str = self.server["url"]
        self.operators_env = dict(self.env)
        self.home = folder / "somebody"
        self.home.mkdir()
        self.env |= {"HOME": str(self.home), "PADDLECLOUD_DATA": str(folder / "nothing")}

    def as_operator(self, *words: str, stdin: str = "") -> str:
        own, self.env = self.env, self.operators_env
        try:
            return self.type(*words, stdin=stdin).stdout
        finally:
            self.env = own

    def close(self) -> None:
        self.serving.terminate()
        self.serving.wait(30)


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[EncryptedLab]:
    lab = EncryptedLab(tmp_path)
    yield lab
    lab.close()


def test_work_goes_on_as_ever_behind_tls_for_whoever_has_the_cas_file(shared: EncryptedLab) -> None:
    assert shared.url.startswith("https://")
    shared.as_operator("user", "add", "zhang", "--password", stdin=f"{PASSWORD}\n")

    login = ("login", "--user", "zhang", "--server")
    said = shared.type(*login, shared.url, stdin=f"{PASSWORD}\n", code=4).stderr
    assert "nobody that this machine knows" in said
    assert f"paddlecloud login --server {shared.url} --ca FILE" in said
    plain = shared.url.replace("https:", "http:")
    assert f"it speaks TLS: write {shared.url}" in shared.type(*login, plain, stdin=f"{PASSWORD}\n", code=4).stderr
    wrong = Authority(shared.work / "other", "another CA").file
    said = shared.type(*login, shared.url, "--ca", str(wrong), stdin=f"{PASSWORD}\n", code=4).stderr
    assert f"nobody that {wrong} (--ca) knows" in said

    shared.type(*login, shared.url, "--ca", str(shared.authority.file), stdin=f"{PASSWORD}\n")
    assert str(shared.authority.file) in shared.out("config")
    shared.folder(run_sh="for i in 1 2 3; do echo line $i; sleep 0.3; done; echo done > $OUTPUT_PATH/result\n")
    job = shared.submit("sh run.sh")
    assert shared.out("logs", "-f", job).splitlines()[-3:] == ["line 1", "line 2", "line 3"]
    assert shared.field(job, "job_status") == "success"
    shared.type("cp", f"{job}:", "results")
    assert (shared.work / "results" / job / "rank-0" / "result").read_text() == "done\n"

    found = json.loads(shared.out("doctor", "-o", "json"))
    assert "28 more days" in next(one["text"] for one in found if one["subject"] == "certificate")
    key = json.loads(shared.as_operator("key", "create", "--user", "zhang", "-o", "json"))
    shared.type("login", "--server", shared.url, "--ak", key["key"]["ak"], "--sk", key["sk"])
    assert job in shared.out("ls", "-o", "name")


def test_every_answer_over_tls_tells_browsers_to_stay_with_it_and_none_without(
    shared: EncryptedLab, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    plain = Lab(tmp_path / "plain")
    plain.type("up")
    asked = {
        "200 OK": b"GET /readyz HTTP/1.1",
        "401 Unauthorized": b"GET /v1/jobs HTTP/1.1",
        "404 Not Found": b"GET /nothing HTTP/1.1",
        "405 Method Not Allowed": b"DELETE /readyz HTTP/1.1",
        "400 Bad Request": b"GET",  # which reaches no route
    }
    try:
        for status, line in asked.items():
            for url, expected in ((shared.url, ["max-age=31536000"]), (plain.server["url"], [])):
                first, headers = head(url, shared.authority.file, line)
                assert first == f"HTTP/1.1 {status}"
                found = [value for name, value in headers if name == "strict-transport-security"]
                assert found == expected, (url, status)
    finally:
        plain.close()


def head(url: str, ca: Path, line: bytes) -> tuple[str, list[tuple[str, str]]]:
    """The status line of an answer, and its headers as pairs."""
    where = urlsplit(url)
    assert where.hostname is not None
    with socket.create_connection((where.hostname, where.port or 0), timeout=20) as connection, ExitStack() as stack:
        if where.scheme == "https":
            context = ssl.create_default_context(cafile=ca)
            connection = stack.enter_context(context.wrap_socket(connection, server_hostname=where.hostname))
        connection.sendall(line + b"\r\nHost: x\r\nConnection: close\r\n\r\n")
        whole = b"".join(iter(lambda: connection.recv(65536), b""))
    first, *lines = whole.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    return first, [(name.lower(), value.strip()) for name, _, value in (text.partition(":") for text in lines)]


def test_a_whole_days_log_has_requests_users_and_jobs_in_it_and_no_secret(shared: EncryptedLab) -> None:
    shared.env |= {"PADDLECLOUD_CA": str(shared.authority.file), "PADDLECLOUD_SERVER": shared.url}
    shared.as_operator("user", "add", "zhang", "--password", stdin=f"{PASSWORD}\n")
    shared.type("login", "--server", shared.url, "--user", "zhang", stdin=f"{WRONG}\n", code=3)
    shared.type("login", "--server", shared.url, "--user", "zhang", stdin=f"{PASSWORD}\n")
    config = (shared.home / ".config" / "paddlecloud" / "config.toml").read_text()
    token = config.partition('token = "')[2].partition('"')[0]
    made = json.loads(shared.type("token", "create", "for a script", "-o", "json").stdout)["secret"]
    key = json.loads(shared.type("key", "create", "-o", "json").stdout)["sk"]
    shared.folder(run_sh="echo $SECRET_OF_JOB; exit 3\n")
    words = ("submit", "job", "--env", "SECRET_OF_JOB=what-the-job-keeps", "-o", "name", "--", "sh", "run.sh")
    job = shared.out(*words).split()[-1]
    shared.type("wait", job, code=100)
    shared.type("ls", code=3, PADDLECLOUD_TOKEN="pct_guessed-by-somebody")
    shared.type("gen_token", "--email=li@example.com", code=None)
    wait_until(lambda: "in the outbox is tried again" in shared.log.read_text(), "the mail is on its way")
    outbox = "".join(file.read_text() for file in (shared.data / "outbox").iterdir())
    embedded = json.loads((shared.data / "embedded.json").read_text())["sk"]

    text = shared.log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    submits = [line for line in lines if line.get("route") == "/v1/jobs" and line["method"] == "POST"]
    assert [(line["user"], line["status"]) for line in submits] == [("zhang", 201)]
    assert {"request_id", "path", "ms", "received", "sent", "address", "ts", "level"} <= set(submits[0])
    assert any(line.get("job") == job for line in lines)
    mailed = [word for word in outbox.split() if len(word) == 64]
    assert mailed, "the letter has the sk in it"
    secrets = [PASSWORD, WRONG, MAIL, token, made, key, embedded, "guessed-by-somebody", "what-the-job-keeps", *mailed]
    secrets.append((shared.data / "key").read_text().strip())
    assert all(secrets)
    assert [secret for secret in secrets if secret in text] == []
