"""The checks of a server's machine: each trouble is named with its remedy, quickly, and nothing is changed."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from paddlecloud.model.errors import UnreachableError
from paddlecloud.model.finding import Finding, Verdict, ok
from paddlecloud.model.job import Resources
from paddlecloud.server import checkup, config
from paddlecloud.server.app import utc_now
from paddlecloud.server.checks import datacenters, folder, machine, parts
from paddlecloud.server.checks.site import Site
from paddlecloud.server.datadir import DataFolder
from paddlecloud.server.operator import ensure_operator
from paddlecloud.server.settings import DEFAULT_PORT
from paddlecloud.store.db import Database
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.certificates import Authority
from tests.fakes import FakeBackend
from tests.unit.server.running import Running

MOUNTS = """\
30 22 0:40 / /srv rw - nfs4 server:/srv rw
31 30 0:41 / /srv/local\\040disk rw - xfs /dev/sdb1 rw
32 22 0:42 / /tmp rw - tmpfs tmpfs rw
22 1 8:1 / / rw - ext4 /dev/sda1 rw
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir(mode=0o700)
    return made


def site(data: Path, text: str = "", *, embedded: bool = False) -> Site:
    settings = config.parse(tomllib.loads(text), data=data, embedded=embedded)
    return Site(settings=settings, now=utc_now())


def only(found: Iterator[Finding]) -> Finding:
    (one,) = found
    return one


def verdicts(found: list[Finding]) -> dict[str, Verdict]:
    return {one.subject: one.verdict for one in found}


def started(data: Path) -> None:
    """A data folder that a server has been in."""
    database = Database.open(f"sqlite:///{data / 'paddlecloud.db'}")
    ensure_operator(Users(database, Cipher(data / "key")), DataFolder(data), utc_now)
    database.close()


def all_in(root: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(file): (file.stat().st_mode, file.stat().st_mtime_ns, file.read_bytes())
        for file in root.rglob("*")
        if file.is_file()
    }


def test_a_set_up_that_is_well_is_said_to_be_quickly_and_is_left_as_it_was(data: Path) -> None:
    started(data)
    before = all_in(data)
    began = time.monotonic()
    found = checkup.examine(site(data, "[server]\nport = 0", embedded=True).settings, utc_now())
    assert time.monotonic() - began < 3.0
    assert [one for one in found if one.verdict is Verdict.FAILED] == []
    assert {"data folder", "room", "database", "key file", "certificate", "python of tasks"} <= set(verdicts(found))
    assert all_in(data) == before


def test_what_a_new_server_will_make_by_itself_is_no_trouble(tmp_path: Path) -> None:
    found = checkup.examine(site(tmp_path / "none", "[server]\nport = 0", embedded=True).settings, utc_now())
    assert [one for one in found if one.verdict is Verdict.FAILED] == []
    assert not (tmp_path / "none").exists()


def test_a_folder_that_others_can_open_or_own_is_named(data: Path) -> None:
    assert only(folder.data_folder(site(data))).verdict is Verdict.OK
    data.chmod(0o755)
    found = only(folder.data_folder(site(data)))
    assert (found.verdict, found.remedy) == (Verdict.WARNING, f"chmod 700 {data}")
    foreign = only(folder.data_folder(site(Path("/proc/1" if os.geteuid() else "/nonexistent"))))
    assert foreign.verdict is (Verdict.FAILED if os.geteuid() else Verdict.OK)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/x", "ext4"),
        ("/srv/data", "nfs4"),
        ("/srv/local disk/data", "xfs"),
        ("/tmp/x", "tmpfs"),
        ("/srvx", "ext4"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_the_nearest_mount(path: str, kind: str) -> None:
    assert folder.file_system_of(Path(path), MOUNTS) == kind


def test_a_database_that_is_broken_is_named(data: Path) -> None:
    started(data)
    assert only(folder.database(site(data))).verdict is Verdict.OK
    (data / "paddlecloud.db").write_bytes(b"nonsense" * 1000)
    found = checkup.run(site(data), [folder.database], 10.0)
    assert found[0].verdict is Verdict.FAILED
    assert str(data / "paddlecloud.db") in found[0].text


def test_a_key_that_is_open_damaged_or_gone_is_named(data: Path) -> None:
    started(data)
    key = data / "key"
    assert only(folder.key(site(data))) == ok("key file", f"{key}, for its owner alone; every backup has a copy of it")
    key.chmod(0o644)
    assert "chmod 600" in only(folder.key(site(data))).text
    key.chmod(0o600)
    key.write_text("nonsense")
    assert only(folder.key(site(data))).verdict is Verdict.FAILED
    key.unlink()
    found = only(folder.key(site(data)))
    assert (found.verdict, "backup" in found.remedy) == (Verdict.WARNING, True)
    assert not key.exists()


def test_a_shared_server_without_a_backup_of_this_week_is_told(data: Path) -> None:
    assert only(folder.backup(site(data))).verdict is Verdict.WARNING
    assert only(folder.backup(site(data, embedded=True))).verdict is Verdict.OK
    (data / "backups").mkdir()
    (data / "backups" / "paddlecloud-1.backup").touch()
    assert only(folder.backup(site(data))).verdict is Verdict.OK
    later = replace(site(data), now=utc_now() + timedelta(days=8))
    assert "paddlecloud db backup" in only(folder.backup(later)).remedy


def test_a_certificate_is_judged_by_its_days(data: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    files = authority.issue(lasts=timedelta(days=40))
    text = f"[server]\n{files.config}"
    found = only(parts.encryption(site(data, text)))
    assert (found.verdict, "38 more days" in found.text) == (Verdict.OK, True)
    soon = replace(site(data, text), now=utc_now() + timedelta(days=30))
    assert only(parts.encryption(soon)).verdict is Verdict.WARNING
    late = replace(site(data, text), now=utc_now() + timedelta(days=50))
    assert only(parts.encryption(late)).verdict is Verdict.FAILED
    files.key.chmod(0o644)
    assert "is open to others" in only(parts.encryption(site(data, text))).text
    bare = only(parts.encryption(site(data, '[server]\nhost = "0.0.0.0"\ninsecure = true')))
    assert (bare.verdict, "certificate_key" in bare.remedy) == (Verdict.WARNING, True)


def test_a_port_that_another_program_has_is_named(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        text = f"[server]\nport = {taken.getsockname()[1]}"
        for embedded in (False, True):
            assert only(machine.port(site(data, text, embedded=embedded))).verdict is Verdict.FAILED
    assert only(machine.port(site(data, text))).verdict is Verdict.OK


def test_where_an_embedded_server_takes_another_port_nothing_is_to_be_done(data: Path) -> None:
    with ExitStack() as stack:
        with suppress(OSError):  # then it is taken all the same
            stack.enter_context(socket.create_server(("127.0.0.1", DEFAULT_PORT)))
        found = only(machine.port(site(data, embedded=True)))
    assert found == ok("port", f"127.0.0.1 port {DEFAULT_PORT} is taken: an embedded server takes a free one by itself")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away, and be another user")
def test_the_account_is_that_of_the_server_whoever_looks(data: Path, tmp_path: Path) -> None:
    assert site(data).account == 0
    os.chown(data, 12345, 12345)
    assert site(data).account == 12345
    assert replace(site(data), backends={}).account == 0
    words = ["/bin/sh", "-c", "read line", "paddlecloud"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, user=23456, cwd="/") as serving:
        (data / "lock").write_text(str(serving.pid))
        assert site(data).account == 23456


def test_an_interpreter_that_does_not_run_is_named(data: Path, tmp_path: Path) -> None:
    assert only(machine.python(site(data))).verdict is Verdict.OK
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho its library is gone >&2\nexit 3\n")
    broken.chmod(0o755)
    found = only(machine.python(site(data, f'[jobs]\npython = "{broken}"')))
    assert (found.verdict, "its library is gone" in found.text) == (Verdict.FAILED, True)


def test_what_tasks_do_without_is_said_in_words(data: Path) -> None:
    found = list(machine.judged("isolation", "no namespaces; limits by rlimits, memory per process only"))
    assert [one.verdict for one in found] == [Verdict.WARNING] * 2
    assert "tasks see all processes" in found[0].text
    assert "Delegate=yes" in found[1].remedy
    assert only(machine.judged("isolation", "PID namespaces; limits by cgroups v2 (memory)")).verdict is Verdict.OK
    without_memory = "PID namespaces; limits by cgroups v2 (cpu, pids), memory per process only, cgroup.kill"
    found = [only(machine.judged("isolation", without_memory))]
    assert (found[0].verdict, "Delegate=yes" in found[0].remedy) == (Verdict.WARNING, True)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away, and be another user")
def test_an_account_that_may_write_no_cgroup_is_told_from_outside(data: Path) -> None:
    os.chown(data, 12345, 12345)
    assert "memory per process only" in only(machine.isolation(site(data))).text
    words = ["/bin/sh", "-c", "read line", "paddlecloud"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, user=23456, cwd="/") as serving:
        (data / "lock").write_text(str(serving.pid))
        found = only(machine.isolation(site(data)))
        assert (found.verdict, "started from here" in found.text) == (Verdict.WARNING, False)


def test_a_mail_server_is_greeted_and_sent_nothing(data: Path) -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)
        port = listening.getsockname()[1]
        thread = threading.Thread(target=_mail_server, args=(listening, heard))
        thread.start()
        found = only(parts.letters(site(data, f'[mail]\nsmtp = "smtp://127.0.0.1:{port}"')))
        thread.join()
    assert found.verdict is Verdict.OK
    assert not any(line.upper().startswith((b"MAIL", b"RCPT", b"DATA")) for line in heard)
    found = only(parts.letters(site(data, f'[mail]\nsmtp = "smtp://127.0.0.1:{port}"')))
    assert (found.verdict, "mail.smtp" in found.remedy) == (Verdict.FAILED, True)


def _mail_server(listening: socket.socket, heard: list[bytes]) -> None:
    connection, _ = listening.accept()
    with connection, connection.makefile("rwb") as stream:
        stream.write(b"220 here\r\n")
        stream.flush()
        for line in stream:
            heard.append(line)
            stream.write(b"221 bye\r\n" if line.upper().startswith(b"QUIT") else b"250 well\r\n")
            stream.flush()


def test_a_cluster_that_does_not_answer_is_named_and_the_policy_is_told(data: Path) -> None:
    class Away(FakeBackend):
        def capacity(self) -> Resources:
            raise UnreachableError("its controller is down")

    here = Resources(cpus=4.0, memory_bytes=2**30, gpus=2)
    backends = {"bcc": FakeBackend(here, clock=utc_now), "cce": Away(here, clock=utc_now)}
    asked = replace(site(data, "[clusters.bcc]\npolicy = 'free'\n[clusters.cce]\n"), backends=backends)
    found = {one.subject: one for one in parts.clusters(asked)}
    assert found["cluster bcc"].verdict is Verdict.OK
    assert "4 CPUs, 1.0 GiB, 2 GPUs; 2 running jobs" in found["cluster bcc"].text
    assert "open policy: no limits" in found["policy"].text
    assert (found["cluster cce"].verdict, "controller is down" in found["cluster cce"].text) == (Verdict.FAILED, True)


def test_a_check_that_hangs_or_breaks_does_not_hide_the_others(data: Path) -> None:
    release = threading.Event()

    def hanging(_: Site) -> Iterator[Finding]:
        release.wait()
        yield ok("hanging", "")

    def broken(_: Site) -> Iterator[Finding]:
        yield ok("broken", "as far as it went")
        raise RuntimeError("the fault")

    began = time.monotonic()
    try:
        found = checkup.run(site(data), [hanging, broken, folder.room], 0.5)
    finally:
        release.set()
    assert time.monotonic() - began < 30.0
    assert [one.subject for one in found] == ["hanging", "broken", "broken", "room"]
    assert "not done within 0.5 s" in found[0].text
    assert "RuntimeError: the fault" in found[2].text


def test_an_admin_is_told_by_the_server_and_a_user_is_not(server: Running) -> None:
    assert server.ask("GET", "/v1/doctor").status == 403
    found = server.get("/v1/doctor", server.root)
    assert {"server", "data folder", "cluster local"} <= {one["subject"] for one in found}
    assert {one["verdict"] for one in found} <= {"ok", "warning"}


def test_no_finding_shows_a_secret(data: Path, tmp_path: Path) -> None:
    started(data)
    (tmp_path / "password").write_text("hunter2")
    text = (
        f'[mail]\nsmtp = "starttls://127.0.0.1:1"\nuser = "pc"\npassword_file = "{tmp_path}/password"\n'
        '[server]\nport = 0\ndatabase = "postgresql://pc:hunter3@127.0.0.1:1/pc"\n'
    )
    said = str(checkup.examine(site(data, text).settings, utc_now()))
    assert "127.0.0.1 port 1" in said
    for secret in ("hunter2", "hunter3", (data / "key").read_text().strip(), (data / "embedded.json").read_text()):
        assert secret not in said


def test_a_datacenter_that_cannot_be_written_or_is_open_to_all_is_named(data: Path, tmp_path: Path) -> None:
    pfs = tmp_path / "srv"
    here = site(data, f"[datacenters.dc1]\npath = '{pfs}'")
    assert "not there yet" in only(datacenters.datacenters(here)).text
    (pfs / "home").mkdir(parents=True, mode=0o700)
    assert only(datacenters.datacenters(here)).verdict is Verdict.OK
    (pfs / "home").chmod(0o755)
    for folder_above in (pfs, *pfs.parents):
        if any(part.startswith("pytest-of-") for part in folder_above.parts):
            folder_above.chmod(0o755)
    found = only(datacenters.datacenters(here))
    assert found.verdict is Verdict.WARNING
    assert f"chmod 700 {pfs}/home" in found.remedy


def test_a_bucket_that_does_not_answer_is_told_with_its_reason(data: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    text = (
        "[datacenters.cold]\nstore = 's3'\nbucket = 'b'\nregion = 'r'\nendpoint = 'http://127.0.0.1:1'\nkey_id = 'k'\n"
    )
    here = site(data, f"{text}secret_file = '{tmp_path}/secret'")
    (found,) = checkup.run(here, [datacenters.datacenters], 10.0)
    assert found.verdict is Verdict.FAILED
    assert "s3cret" not in str(found)
