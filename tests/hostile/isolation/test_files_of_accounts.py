"""Files of users whose tasks run as accounts of their own: shared folders, an operator's copies, older data folders."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.hostile.isolation.boxes import PLAIN, ROOT, Box, box

FIRST_UID = 1_900_000_000
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other accounts")


def test_all_members_of_a_group_change_what_any_of_them_made_in_a_shared_folder(server: Box) -> None:
    alice, mallory = server.person("alice"), server.person("mallory")
    server.lab.type("group", "add", "lab", "--members", "alice,mallory", code=None)
    server.lab.type("share", "add", "common", "--write", "lab", code=None)
    here = "/pfs/local/shared/common"
    made = alice.run(
        f"cd {here} && echo one > plain && mkdir -p deep/er && echo one > deep/er/file "
        "&& (umask 077; echo one > closed) && install -m 600 /dev/null private && echo made"
    )
    assert made == "made\n"
    (server.lab.work / "sent").write_text("from a laptop\n")
    alice.client.pfs.put(server.lab.work / "sent", f"{here}/sent")
    changed = mallory.run(
        f"cd {here} && for f in plain deep/er/file closed private sent; do echo two >> $f || echo NOT $f; done; "
        "touch deep/er/new && rm deep/er/file && mv plain renamed && echo changed"
    )
    assert changed == "changed\n"
    assert alice.run(f"cd {here} && echo three >> renamed && cat renamed && rm -r deep && echo done") == (
        "one\ntwo\nthree\ndone\n"
    )


@as_root
def test_tasks_read_what_an_operator_copied_into_the_pfs(server: Box) -> None:
    alice = server.person("alice")
    alice.run("true")
    pfs = server.data / "pfs/local"
    for folder in (pfs / "home/alice/copied/inner", pfs / "public/copied"):
        folder.mkdir(parents=True, mode=0o700)
        (folder / "data").write_text("by scp\n")
        (folder / "data").chmod(0o600)
    owner = server.data.stat()
    for path in (pfs / "home/alice/copied", pfs / "public/copied"):
        subprocess.run(["chown", "-R", f"{owner.st_uid}:{owner.st_gid}", str(path)], check=True)
    home = "/pfs/local/home/alice/copied"
    said = alice.run(
        f"cat {home}/inner/data /pfs/public/copied/data && echo more >> {home}/inner/data && rm -r {home} && echo done"
    )
    assert said == "by scp\nby scp\ndone\n"
    assert alice.run("echo evil > /pfs/public/copied/data || echo refused").endswith("refused\n")


def test_what_the_server_writes_for_a_user_is_that_users_in_tasks_too(server: Box) -> None:
    alice = server.person("alice")
    (server.lab.work / "config").write_text("a: 1\n")
    alice.client.pfs.put(server.lab.work / "config", "/pfs/local/home/alice/sent/deep/config")
    home = "/pfs/local/home/alice/sent"
    assert alice.run(
        f"cd {home}/deep && chmod 600 config && echo b: 2 >> config && cat config && rm -r {home} && echo done"
    ) == ("a: 1\nb: 2\ndone\n")


def test_a_job_changes_its_own_files_and_not_what_was_uploaded(server: Box, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    (folder / "deep").mkdir(parents=True)
    (folder / "run.sh").write_text("echo ran\n")
    (folder / "deep/data").write_bytes(b"x" * 2_000_000)
    alice = server.person("alice")
    command = (
        "chmod +x run.sh && ./run.sh && echo y >> run.sh && echo y >> deep/data && touch deep/new && rm deep/data && "
        "cmp run.sh $LOCAL_MOUNT_PATH/run.sh || (echo z > $LOCAL_MOUNT_PATH/run.sh || ls $LOCAL_MOUNT_PATH/deep)"
    )
    for _ in range(2):
        job = alice.client.submit(folder, command=command)
        assert alice.client.wait(job.id, timeout=60).state.label == "success"
        said = alice.said(job.id)
        assert said.startswith("ran\n"), said
        assert "Read-only file system" in said
        assert said.endswith("data\n")


def test_a_log_can_be_opened_once_more_as_stdout_and_stderr(server: Box) -> None:
    said = server.person("alice").run(
        "echo one >> /dev/stdout; echo two >> /dev/stderr; echo three | tee -a /dev/stderr"
    )
    assert said == "one\ntwo\nthree\nthree\n"


@as_root
def test_an_older_data_folder_is_handed_over_at_the_first_start_also_after_an_interruption(tmp_path: Path) -> None:
    with box(PLAIN if os.geteuid() else ROOT, tmp_path / "first") as first:
        first.person("ann").run("echo mine > /pfs/local/home/ann/file; mkdir -p /pfs/local/home/ann/deep/er")
        home = first.data / "pfs/local/home/ann"
        uid = home.stat().st_uid
        data = first.data
    assert uid >= FIRST_UID
    # As a version before this one left it, and as a conversion leaves it that was killed half-way.
    subprocess.run(["chown", "-hR", "0:0", str(home)], check=True)
    (home / "link").symlink_to("/etc/passwd")
    os.chown(home / "deep/er", uid, uid)
    passwd = Path("/etc/passwd").stat()
    with box(ROOT, tmp_path / "first", data=data) as again:
        assert {path.lstat().st_uid for path in (home, *home.rglob("*"))} == {uid}
        assert Path("/etc/passwd").stat() == passwd
        ann = again.person("ann", new=False)
        assert ann.run("cat /pfs/local/home/ann/file && echo more >> /pfs/local/home/ann/file") == "mine\n"
