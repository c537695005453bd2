"""A server gives back the memory of what is uploaded, by whichever way it comes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import urllib3
from hdfs import InsecureClient

from paddlecloud.model.state import JobState
from paddlecloud.server.datadir import DataFolder
from paddlecloud.server.shipping import token_of
from paddlecloud.store.secrets import Cipher
from tests.flow.goclient import GoClient
from tests.flow.lab import Lab
from tests.flow.test_webhdfs import addresses, joined
from tests.waiting import wait_until

MIB = 1024 * 1024
SENT = 1024 * MIB  # by each way: twenty times what may be left of it
LEFT = 50 * MIB
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("memory"))
    lab.type("up")
    yield lab
    lab.close()


@pytest.fixture(scope="module")
def ann(server: Lab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return joined(server, tmp_path_factory.mktemp("ann"), "ann")


def in_files(ann: Lab, total: int, each: int) -> Path:
    """A folder of this many bytes, of which no server has any yet."""
    folder = ann.work / f"data-{next(NUMBERS)}"
    folder.mkdir()
    for number in range(max(1, total // each)):
        (folder / f"part-{number}").write_bytes(os.urandom(min(total, each)))
    return folder


def by_file_put(server: Lab, ann: Lab, total: int) -> None:
    client = GoClient(server.server["url"], "ann", "correct horse")
    content = bytes(min(total, 64 * MIB))
    for number in range(max(1, total // len(content))):
        assert client.put_file(content, "x", f"{client.home}/put-{number}") == ""


def by_cp(generation: int) -> Callable[[Lab, Lab, int], None]:
    def send(server: Lab, ann: Lab, total: int) -> None:
        client = GoClient(server.server["url"], "ann", "correct horse")
        client.mkdir(client.home)
        client.upload(bytes([generation]) * total, f"{client.home}/cp-{generation}-{total}", generation=generation)

    return send


def by_our_cp(each: int) -> Callable[[Lab, Lab, int], None]:
    def send(server: Lab, ann: Lab, total: int) -> None:
        ann.type("cp", str(in_files(ann, total, each)), f"/pfs/local/home/ann/ours-{next(NUMBERS)}")

    return send


def by_submit(each: int) -> Callable[[Lab, Lab, int], None]:
    def send(server: Lab, ann: Lab, total: int) -> None:
        ann.type("submit", str(in_files(ann, total, each)), "--", "true")

    return send


def by_webhdfs(server: Lab, ann: Lab, total: int) -> None:
    client = InsecureClient(addresses(ann)["url"], user="ann")
    half = bytes(total // 2)
    client.write("sent", half, overwrite=True)
    client.write("sent", half, append=True)


def by_task(server: Lab, ann: Lab, total: int) -> None:
    """As a task on a machine that shares no disk with the server sends what it leaves."""
    job = ann.out("submit", "--no-files", "--", "sleep 1000").strip()
    client = server.client()
    wait_until(lambda: client.get(job).job.state is JobState.RUNNING, "it runs")
    token = token_of(Cipher(DataFolder(server.data).key), client.get(job).job.handle)
    url = f"{server.server['url']}/v1/jobs/{job}/tasks/trainer-0/output?path=rank-0/model&offset="
    pool = urllib3.PoolManager(headers={"Authorization": f"Bearer {token}"})
    for offset in range(0, total, 8 * MIB):
        assert pool.request("PUT", f"{url}{offset}", body=bytes(8 * MIB)).status == 200
    ann.type("kill", job)


WAYS = {
    "file put of the Go client": by_file_put,
    "cp of the Go client, first generation": by_cp(1),
    "cp of the Go client, second generation": by_cp(2),
    "our cp, packed": by_our_cp(MIB // 2),
    "our cp, whole": by_our_cp(4 * MIB),
    "our cp, in pieces": by_our_cp(128 * MIB),
    "submit, packed": by_submit(MIB // 2),
    "submit, in chunks": by_submit(128 * MIB),
    "WebHDFS": by_webhdfs,
    "a task's results": by_task,
}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_uploaded_leaves_the_servers_memory(server: Lab, ann: Lab, way: str) -> None:
    send = WAYS[way]
    send(server, ann, 8 * MIB)
    before = resident(server)
    send(server, ann, SENT)
    most = before + LEFT
    wait_until(lambda: resident(server) < most, f"{way}: {(resident(server) - before) // MIB} MiB more", seconds=10)


def resident(server: Lab) -> int:
    line = next(
        line for line in Path(f"/proc/{server.server['pid']}/status").read_text().splitlines() if "VmRSS" in line
    )
    return int(line.split()[1]) * 1024
