"""The cached /etc folders of tasks are shared by content and kept while a task uses them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from paddlecloud.runtime.etc import EtcFolders
from paddlecloud.runtime.machine import Entry

FILES = {"passwd": b"root:x:0:0::/:/bin/sh\n", "ssl/openssl.cnf": b"x"}
ENTRIES = [Entry("/etc/ssl/certs", stat.S_IFDIR), Entry("/etc/java", 0, "/usr/lib/java")]


def test_a_folder_has_files_links_and_mount_points(tmp_path: Path) -> None:
    made = Path(EtcFolders(str(tmp_path)).folder(FILES, ENTRIES))
    assert (made / "passwd").read_bytes() == FILES["passwd"]
    assert (made / "ssl/certs").is_dir()
    assert os.readlink(made / "java") == "/usr/lib/java"


def test_the_same_content_is_one_folder_and_another_is_another(tmp_path: Path) -> None:
    folders = EtcFolders(str(tmp_path))
    made = folders.folder(FILES, ENTRIES)
    assert folders.folder(dict(FILES), list(ENTRIES)) == made
    assert folders.folder({**FILES, "passwd": b""}, ENTRIES) != made


def test_the_next_process_removes_only_what_no_fork_of_the_first_holds(tmp_path: Path) -> None:
    parted_reader, parted_writer = os.pipe()
    made_reader, made_writer = os.pipe()
    if (helper := os.fork()) == 0:  # it makes one, forks a supervisor, and dies
        os.write(made_writer, EtcFolders(str(tmp_path)).folder(FILES, ENTRIES).encode())
        if os.fork() == 0:
            os.close(parted_writer)
            os.read(parted_reader, 1)
        os._exit(0)
    made = os.read(made_reader, 4096).decode()
    os.waitpid(helper, 0)
    EtcFolders(str(tmp_path))
    assert Path(made, "passwd").exists()
    os.close(parted_writer)  # ends the supervisor
    for fd in (parted_reader, made_reader, made_writer):
        os.close(fd)
    while os.path.exists(made):
        EtcFolders(str(tmp_path))


def test_many_users_do_not_use_up_descriptors(tmp_path: Path) -> None:
    folders = EtcFolders(str(tmp_path))
    before = len(os.listdir("/proc/self/fd"))
    for number in range(200):
        folders.folder({"passwd": str(number).encode()}, [])
    assert len(os.listdir("/proc/self/fd")) <= before + 64
