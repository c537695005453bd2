"""Ways out of a task that were found by attacking live servers: links in the place of names that the server trusts."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.model.job import JobSpec, RoleSpec, Shell
from tests.hostile.isolation.boxes import PLAIN, ROOT, Account, Box, Person, box, python

SECRET = "alices-secret-0815"
KERNEL_SETTING = Path("/proc/sys/kernel/domainname")


def begin_restarting(person: Person, script: str, *, shell: Shell = Shell.SH, folder: Path | None = None) -> str:
    """A job whose one task is started again once, in what it has left."""
    role = RoleSpec(name="trainer", count=1, command=script, restarts=1, shell=shell)
    return person.client.submit(folder, spec=JobSpec(roles=(role,), name="restarting")).id


def run_restarting(person: Person, script: str, *, shell: Shell = Shell.SH) -> str:
    job = begin_restarting(person, script, shell=shell)
    person.client.wait(job, timeout=90)
    return person.said(job)


@pytest.mark.parametrize("name", ["tmp", "mount", "home", "work"])
def test_a_link_that_a_task_leaves_in_its_folder_shows_it_nothing_after_a_restart(
    server: Box, alice: Person, mallory: Person, name: str
) -> None:
    """ln -s / own/tmp; exit 1: the restarted task had the machine's root at /tmp, and the server's key."""
    alice.run(f"echo {SECRET} > /pfs/local/home/alice/secret")
    data = server.data
    said = run_restarting(
        mallory,
        f"""own=$(dirname $HOME)
if [ -L $own/{name} ]; then
    for top in /tmp /var/tmp $own/{name} $own/mount $own/../mount .; do
        ls $top/etc/shadow && [ ! $top/etc -ef /etc ] && echo MACHINE at $top
        head -c 8 $top{data}/key && echo KEY at $top
        cat $top{data}/pfs/local/home/alice/secret
    done
    exit 0
fi
rm -rf $own/{name}; ln -s / $own/{name}; exit 1""",
    )
    assert "restart 1 of 1" in said
    assert "MACHINE" not in said
    assert "KEY" not in said
    assert SECRET not in said


def test_a_command_is_not_written_through_a_link_by_a_privileged_process(server: Box, mallory: Person) -> None:
    """The script of a restarted task was written by root: through a link to a setting of the kernel, for one."""
    before = KERNEL_SETTING.read_text()
    try:
        said = run_restarting(
            mallory,
            f"own=$(dirname $HOME); rm -f $own/command; ln -s {KERNEL_SETTING} $own/command; exit 1",
            shell=Shell.BASH,
        )
        assert "restart 1 of 1" in said
        assert KERNEL_SETTING.read_text() == before
    finally:
        if server.kind == ROOT:
            KERNEL_SETTING.write_text(before)


SEND_OWN = """
import array, os, socket, sys
own = os.path.dirname(os.environ["HOME"])
os.chmod(own, 0o777)
listening = socket.socket(socket.AF_UNIX)
listening.bind("\\0" + sys.argv[1])
listening.listen()
print("listening", flush=True)
connection, _ = listening.accept()
fds = array.array("i", [os.open(own, os.O_RDONLY | os.O_DIRECTORY)])
connection.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
connection.recv(1)
sys.exit(int(sys.argv[2]))
"""
PUT_LINK = """
import array, os, socket, sys, time
line = socket.socket(socket.AF_UNIX)
line.connect("\\0" + sys.argv[1])
fds = array.array("i")
_, ancillary, _, _ = line.recvmsg(1, socket.CMSG_SPACE(fds.itemsize))
fds.frombytes(ancillary[0][2][: fds.itemsize])
if sys.argv[3] == "later":
    line.close()
    time.sleep(3)  # the task ends, and its folder is kept for the next one
try:
    os.rename("work", "aside", src_dir_fd=fds[0], dst_dir_fd=fds[0])
    os.symlink(sys.argv[2], "work", dir_fd=fds[0])
    print("put a link")
except OSError as error:
    print("refused", error)
"""


def test_a_folder_that_is_used_again_changes_no_mode_through_a_link(
    server: Box, mallory: Person, local_attacker: Account, tmp_path: Path
) -> None:
    """A local shell was handed a descriptor of own/, and put a link to a file of the server's there between two jobs:
    the next one made that file readable for all."""
    victim = server.data / "victim"
    victim.write_text("closed")
    victim.chmod(0o600)
    os.chown(victim, server.data.stat().st_uid, server.data.stat().st_gid)
    meeting = f"paddlecloud-spare-{os.getpid()}-{server.data.parent.name}"
    job = mallory.begin(python(SEND_OWN, meeting, "0"))
    mallory.hears(job, "listening")
    told = local_attacker.run("/usr/bin/env", "python3", "-c", PUT_LINK, meeting, str(victim), "later")
    assert "put a link" in told or "refused" in told, told
    for _ in range(2):
        mallory.run("true")
    assert stat.S_IMODE(victim.stat().st_mode) == 0o600


def test_a_working_directory_is_not_mounted_through_a_link(
    server: Box, mallory: Person, local_attacker: Account, tmp_path: Path
) -> None:
    """A local shell put a link in the place of the working directory, in which the restarted task got its overlay:
    over /proc, by which all other mounts were made, or over any folder of the machine."""
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "marker").write_text("of mallory\n")
    meeting = f"paddlecloud-work-{os.getpid()}-{server.data.parent.name}"
    again = "[ -e /usr/share/marker ] && echo MOUNTED && exit 0; [ -e $HOME/second ] && exit 0; touch $HOME/second; "
    job = begin_restarting(mallory, again + python(SEND_OWN, meeting, "1"), folder=folder)
    mallory.hears(job, "listening")
    told = local_attacker.run("/usr/bin/env", "python3", "-c", PUT_LINK, meeting, "/usr/share", "now")
    assert "put a link" in told, told
    mallory.client.wait(job, timeout=90)
    said = mallory.said(job)
    assert "restart 1 of 1" in said
    assert "MOUNTED" not in said


KEEP_KEY = """
import ctypes, os, time
libc = ctypes.CDLL(None)
number = 248 if os.uname().machine == "x86_64" else 217
libc.syscall(number, b"user", b"key-of-alice", b"alices-secret-0815", 18, -4)
print("kept", flush=True)
time.sleep(60)
"""
TAKE_KEY = """
import ctypes, os
libc = ctypes.CDLL(None)
keyctl = 250 if os.uname().machine == "x86_64" else 219
found = [line.split() for line in open("/proc/keys")]
for words in found:
    libc.syscall(keyctl, 8, int(words[0], 16), -2)  # link it to a keyring of this process, and so possess what is in it
for words in found:
    text = ctypes.create_string_buffer(100)
    libc.syscall(keyctl, 11, int(words[0], 16), text, 100)
    print(words, text.raw)
print("tried-all")
"""


def test_no_key_of_another_task_is_read_by_the_keyring_of_their_account(
    server: Box, alice: Person, mallory: Person
) -> None:
    """All tasks of a plain account's server have one uid: /proc/keys named the keyrings of the others, and keyctl
    linked and read them."""
    job = alice.begin(python(KEEP_KEY))
    alice.hears(job, "kept")
    said = mallory.run(python(TAKE_KEY))
    assert "tried-all" in said
    assert SECRET not in said
    alice.client.kill(job)


def test_a_file_of_another_member_stays_theirs_when_a_link_to_it_is_moved_into_a_home(
    server: Box, alice: Person, mallory: Person
) -> None:
    """A second name of a file of the shared folder, moved into mallory's home, made the file hers at her next job."""
    server.lab.type("group", "add", "lab", "--members", "alice,mallory", code=None)
    server.lab.type("share", "add", "common", "--write", "lab", code=None)
    here, home = "/pfs/local/shared/common", "/pfs/local/home/mallory"
    alice.run(f"echo hers > {here}/hers; echo hers > {here}/moved; ln -s nowhere {here}/link")
    mallory.run(f"ln {here}/hers {here}/second")
    for name in ("second", "moved", "link"):
        mallory.client.pfs.move(f"{here}/{name}", f"{home}/{name}")
    mallory.run(f"chmod 600 {home}/second")
    disk = server.data / "pfs/local"
    assert alice.run(f"chmod 640 {here}/hers && echo changed") == "changed\n"
    assert alice.run(f"cat {here}/hers") == "hers\n"
    # What has moved there whole is hers.
    uid = (disk / "home/mallory").stat().st_uid
    assert {(disk / "home/mallory" / name).lstat().st_uid for name in ("moved", "link")} == {uid}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder in /var/tmp that any account may write to."""
    made = Path(tempfile.mkdtemp(prefix="paddlecloud-found-", dir="/var/tmp"))
    made.chmod(0o777)
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("kind", [PLAIN, ROOT] if os.geteuid() == 0 else [PLAIN])
def test_nothing_beside_a_data_folder_in_tmp_is_seen(kind: str, tmp_path: Path, open_folder: Path) -> None:
    """To hide a data folder in /var/tmp, the folder that it is in was shown to tasks, for them to write."""
    beside = open_folder / "beside"
    beside.write_text(SECRET)
    beside.chmod(0o666)
    with box(kind, tmp_path / "box", data=open_folder / "data") as made:
        job = made.person("mallory").client.submit(command=f"cat {beside}; echo evil > {beside}; echo tried-all")
        made.person("mallory").client.wait(job.id, timeout=60)
        said = made.person("mallory").said(job.id)
    assert "tried-all" in said
    assert SECRET not in said
    assert beside.read_text() == SECRET


def test_a_folder_that_tasks_see_in_one_that_they_write_to_is_refused(tmp_path: Path, open_folder: Path) -> None:
    """A task that put a link at the path of the inner one kept every other task from starting; one that swapped a link
    to / and a folder there quickly enough could have the machine's root mounted."""
    config = f'[clusters.local]\nvisible = ["{open_folder}:rw", "{open_folder}/inner:rw"]\n'
    with pytest.raises(AssertionError, match="put a link to any folder in its place"):
        _kept_from_starting(tmp_path / "box", config, f"{open_folder}/inner")


def _kept_from_starting(folder: Path, config: str, inner: str) -> None:
    with box(PLAIN, folder, config) as made:
        made.person("mallory").run(f"ln -s / {inner}")
        assert made.person("alice").run("echo fine") == "fine\n"
