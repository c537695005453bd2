"""The real clients of HDFS, from PyPI and npm, unmodified, against the real server; and seed 004's script in a task."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from hdfs import HdfsError, InsecureClient

from tests.flow.lab import Lab
from tests.flow.nodehdfs import NodeHdfs, RefusedError
from tests.waiting import wait_until

PASSWORD = "correct horse"
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("webhdfs"))
    lab.configure(
        "[clusters.local]\ncpus = 16\nmemory = '32Gi'\npolicy = 'open'\n"
        f"[jobs]\ngrace = '1s'\npython = '{Path(sys.prefix) / 'bin' / 'python'}'\n"
    )
    lab.type("up")
    yield lab
    lab.close()


@pytest.fixture(scope="module")
def alice(server: Lab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return joined(server, tmp_path_factory.mktemp("alice"), "alice")


@pytest.fixture(scope="module")
def bob(server: Lab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return joined(server, tmp_path_factory.mktemp("bob"), "bob")


def joined(server: Lab, folder: Path, name: str) -> Lab:
    """The desk of a new user, who has logged in."""
    server.type("user", "add", name, "--password", stdin=f"{PASSWORD}\n")
    desk = Lab(folder)
    desk.data = server.data
    del desk.env["PADDLECLOUD_DATA"]
    desk.type("login", "--server", server.server["url"], "--user", name, stdin=f"{PASSWORD}\n")
    return desk


def addresses(desk: Lab) -> dict[str, str]:
    found: dict[str, str] = json.loads(desk.out("webhdfs", "--json"))
    return found


@pytest.fixture(scope="module")
def client(alice: Lab) -> InsecureClient:
    return InsecureClient(addresses(alice)["url"], user="alice")


@pytest.fixture(scope="module")
def node(alice: Lab) -> Iterator[NodeHdfs]:
    made = NodeHdfs(addresses(alice)["url"], "alice")
    yield made
    made.close()


def test_the_command_shows_the_addresses_and_what_they_give_away(server: Lab, alice: Lab) -> None:
    shown = alice.type("webhdfs")
    found = addresses(alice)
    assert found["url"].startswith(f"{server.server['url']}/t/pcw_")
    assert found["webhdfs_uri"] == found["url"].removeprefix("http://") + "/webhdfs/v1"
    assert all(found[name] in shown.stdout for name in ("url", "webhdfs_uri", "user", "vscode"))
    assert json.loads(f"{{{found['vscode']}}}") == {"webhdfs_uri": found["webhdfs_uri"]}
    assert "whoever has this address reads and changes every file of alice" in shown.stderr


def test_everything_that_the_python_client_does(client: InsecureClient, alice: Lab) -> None:
    assert client.resolve("x") == "/user/alice/x"
    assert client.status("/")["type"] == "DIRECTORY"
    assert client.status("nothing", strict=False) is None
    client.makedirs("a/b", permission=700)
    client.write("a/f", b"hello")
    client.write("a/f", iter([b"hello", b" world"]), overwrite=True)
    with pytest.raises(HdfsError, match="already exists"):
        client.write("a/f", b"")
    client.write("a/f", b"!", append=True)
    with client.read("a/f", offset=6, length=5) as reader:
        assert reader.read() == b"world"
    with client.write("a/text", encoding="utf-8") as writer:
        writer.write("数据\n")
    with client.read("a/text", encoding="utf-8", delimiter="\n") as lines:
        assert list(lines) == ["数据", ""]
    assert sorted(client.list("a")) == ["b", "f", "text"]
    assert [status["permission"] for name, status in client.list("a", status=True) if name == "b"] == ["700"]
    assert client.list("a/b") == []
    with pytest.raises(HdfsError, match="is not a directory"):
        client.list("a/f")
    assert client.content("a") == {
        **client.content("a"),
        "directoryCount": 2,
        "fileCount": 2,
        "length": len("hello world!") + len("数据\n".encode()),
    }
    assert client.checksum("a/f")["algorithm"] == "MD5-of-0MD5-of-512CRC32"
    client.set_permission("a/f", 777)
    client.set_owner("a/f", owner="x", group="y")
    client.set_times("a/f", access_time=1000, modification_time=2000)
    client.set_replication("a/f", 3)
    client.set_acl("a/f", "user:bob:r-x", clear=False)
    assert client.acl_status("a/f")["entries"] == ["user:bob:r-x", "group::rwx"]
    client.remove_acl("a/f")
    told = client.status("a/f")
    assert (told["permission"], told["owner"], told["group"], told["modificationTime"], told["replication"]) == (
        "777",
        "x",
        "y",
        2000,
        3,
    )
    client.rename("a/f", "a/g")
    client.rename("a/g", "a/b")
    assert client.status("a/b/g")["owner"] == "x"
    with pytest.raises(HdfsError, match="Unable to rename"):
        client.rename("a/nothing", "a/x")
    with pytest.raises(HdfsError, match="non empty"):
        client.delete("a")
    assert [client.delete("a/nothing"), client.delete("a/text"), client.delete("a", recursive=True)] == [
        False,
        True,
        True,
    ]
    with pytest.raises(HdfsError, match="java.lang.IllegalArgumentException: No enum constant"):
        client.create_snapshot("a")


def test_folders_go_up_and_come_down_whole(client: InsecureClient, alice: Lab, tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    contents = {"fo&o/a%a": b"1", "fo&oa ?a=1": b"2", "foo bar%.txt": b"3", "deep/er/large": os.urandom(5 * MIB)}
    for name, content in contents.items():
        (sent / name).parent.mkdir(parents=True, exist_ok=True)
        (sent / name).write_bytes(content)
    for _ in range(2):  # the second takes the place of the first
        client.upload("up", str(sent), overwrite=True, n_threads=4)
    assert sorted(client.list("up" if client.status("up/sent", strict=False) is None else "up/sent")) == [
        "deep",
        "fo&o",
        "fo&oa ?a=1",
        "foo bar%.txt",
    ]
    client.download("up", str(tmp_path / "back"), n_threads=4)
    found = {path.relative_to(tmp_path / "back").as_posix(): path.read_bytes() for path in files(tmp_path / "back")}
    assert {name.removeprefix("sent/"): content for name, content in found.items()} == contents
    # The same files for our own command.
    assert "deep" in alice.out("ls", "/pfs/local/home/alice/up")
    alice.type("cp", "-r", "/pfs/local/home/alice/up", str(tmp_path / "ours"))
    assert {path.read_bytes() for path in files(tmp_path / "ours")} == set(contents.values())


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_our_command_puts_there_is_there_for_the_client(client: InsecureClient, alice: Lab) -> None:
    (alice.work / "ours").write_bytes(b"from our command")
    alice.type("cp", "ours", "/pfs/local/home/alice/ours")
    with client.read("/alice/ours") as reader:
        assert reader.read() == b"from our command"


def test_a_file_is_streamed_in_both_directions(client: InsecureClient, server: Lab) -> None:
    """Memory does not grow with it: the server holds a piece of it at a time."""
    piece = os.urandom(MIB)
    before = memory(server)
    client.write("large", (piece for _ in range(256)), overwrite=True)
    with client.read("large", chunk_size=MIB) as pieces:
        assert sum(len(one) for one in pieces) == 256 * MIB
    assert memory(server) - before < 100 * MIB
    client.delete("large")


def memory(server: Lab) -> int:
    """The most that the server's process has had, in bytes."""
    lines = Path(f"/proc/{server.server['pid']}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def test_everything_that_the_node_client_does(node: NodeHdfs) -> None:
    assert node.call("exists", "/alice/node") is False
    node.call("mkdir", "/alice/node", "0755")
    node.write("/alice/node/f #?&.txt", b"hello", overwrite=True, permission="0755")
    node.write("/alice/node/f #?&.txt", b" world", append=True)
    assert node.read("/alice/node/f #?&.txt") == b"hello world"
    assert node.read("/alice/node/f #?&.txt", offset=6, length=2) == b"wo"
    [entry] = node.call("readdir", "/alice/node")
    assert (entry["pathSuffix"], entry["type"], entry["length"]) == ("f #?&.txt", "FILE", 11)
    node.call("chmod", "/alice/node/f #?&.txt", "0600")
    node.call("chown", "/alice/node/f #?&.txt", "x", "y")
    assert node.call("stat", "/alice/node/f #?&.txt")["permission"] == "600"
    node.call("rename", "/alice/node/f #?&.txt", "/alice/node/g")
    with pytest.raises(RefusedError, match="File does not exist: /alice/node/nothing"):
        node.call("stat", "/alice/node/nothing")
    with pytest.raises(RefusedError, match="not found"):
        node.read("/alice/node/nothing")
    with pytest.raises(RefusedError, match="is non empty"):
        node.call("unlink", "/alice/node")
    with pytest.raises(RefusedError, match="Permission denied: user=alice"):
        node.call("mkdir", "/elsewhere")
    with pytest.raises(RefusedError, match="No enum constant"):
        node.call("symlink", "/alice/node/g", "/alice/node/l")
    node.call("unlink", "/alice/node", True)
    assert node.call("exists", "/alice/node") is False


def test_the_upload_of_the_vs_code_client(node: NodeHdfs) -> None:
    """From the leaf up until a folder is there, then down; each file is looked for before it is sent."""
    for path in ("/alice/train_c7869957/pkg", "/alice/train_c7869957"):
        with pytest.raises(RefusedError):
            node.call("stat", path)
    assert node.call("stat", "/alice")["type"] == "DIRECTORY"
    for path in ("/alice/train_c7869957", "/alice/train_c7869957/pkg"):
        node.call("mkdir", path, "0755")
    node.write("/alice/train_c7869957/pkg/m.py", b"print(1)\n", overwrite=True, permission="0755")
    assert node.call("stat", "/alice/train_c7869957/pkg/m.py")["permission"] == "755"
    assert node.call("stat", "/")["type"] == "DIRECTORY"


def test_a_stranger_is_told_what_to_do_by_both(server: Lab, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(HdfsError, match="Authentication failure"):
        InsecureClient(server.server["url"], user="alice").list("/")
    assert "paddlecloud webhdfs" in caplog.text
    stranger = NodeHdfs(server.server["url"], "alice", "/webhdfs/api/v1")
    with pytest.raises(RefusedError, match="`paddlecloud webhdfs` prints the address"):
        stranger.call("readdir", "/")
    stranger.close()


def test_the_secret_is_in_no_log_of_the_server(server: Lab, client: InsecureClient, alice: Lab) -> None:
    client.list("/")
    secret = addresses(alice)["url"].rpartition("/")[2]
    log = (server.data / "server.log").read_text()
    assert "/t/…/webhdfs/v1/" in log
    assert secret not in log
    assert secret not in server.out("audit", "--json")


LISTING = """
import os, sys
from hdfs import HdfsError, InsecureClient
url, me, other = sys.argv[1:]
print("home", InsecureClient(url, user=me).status("/user/" + me)["type"])
try:
    print("other", InsecureClient(url, user=other).list("/user/" + other))
except HdfsError as error:
    print("refused", str(error).partition(".")[0])
"""


def test_a_task_is_believed_its_users_name_and_no_other(server: Lab, alice: Lab, bob: Lab) -> None:
    url = server.server["url"]
    (alice.folder("waiting") / "wait.py").write_text("import time\ntime.sleep(300)\n")
    other = alice.out("submit", "waiting", "--", "python", "wait.py").split()[-1]
    client = alice_client(alice)
    wait_until(lambda: client(other) == "running", f"{other} runs")
    (bob.folder("asking") / "ask.py").write_text(LISTING)
    done = bob.type("run", "asking", "--", "python", "ask.py", url, "bob", "alice")
    assert "home DIRECTORY" in done.stdout
    assert "refused Authentication failure" in done.stdout
    alice.type("kill", other)


def alice_client(desk: Lab) -> Any:
    def state(job: str) -> str:
        found: str = json.loads(desk.out("show", job, "--json"))["job"]["state"]
        return found

    return state


RUN_SAMPLES = Path(__file__).parents[2] / "examples" / "openpai-couplet" / "run_samples.py"


def test_seed_004s_script_brings_data_trains_and_leaves_its_results_in_a_shared_folder(
    server: Lab, alice: Lab, bob: Lab
) -> None:
    server.type("group", "add", "couplets")
    server.type("group", "join", "couplets", "alice")
    server.type("share", "add", "demo")
    server.type("share", "grant", "demo", "couplets", "--write")
    mine = InsecureClient(addresses(alice)["url"], user="alice")
    assert "demo" in mine.list("/")
    mine.write("/demo/data/train.txt", b"up\ndown\n")
    script = RUN_SAMPLES.read_text()
    for name, value in (
        ("YOUR_HDFS_URL", server.server["url"]),
        ("YOUR_HDFS_USERNAME", "alice"),
        ("YOUR_PROJECT_ROOT_DIR", "/demo"),
    ):
        script = script.replace(name, value)
    folder = alice.folder("couplet")
    (folder / "run_samples.py").write_text(script)
    (folder / "train.sh").write_text("#!/bin/sh\nmkdir -p output\nwc -l < data/train.txt > output/model\n")
    (folder / "train.sh").chmod(0o755)
    done = alice.type("run", "couplet", "--", "python", "run_samples.py")
    assert "Uploading from ./output/ to /demo/output/" in done.stdout
    [job] = mine.list("/demo/output")
    with mine.read(f"/demo/output/{job}/model") as reader:
        assert reader.read().split() == [b"2"]
    assert mine.status("/demo")["permission"] == "777"
    assert "model" in alice.out("ls", f"/pfs/local/shared/demo/output/{job}")
    others = InsecureClient(addresses(bob)["url"], user="bob")
    assert "demo" not in others.list("/")
    assert others.status("/demo", strict=False) is None


def test_a_login_lets_its_own_machine_in_but_no_task_of_another(tmp_path: Path) -> None:
    for name in ("server", "alice", "bob"):
        (tmp_path / name).mkdir()
    server = Lab(tmp_path / "server")
    python = Path(sys.prefix) / "bin" / "python"
    server.configure(f"[clusters.local]\npolicy = 'open'\n[jobs]\npython = '{python}'\n")  # embedded: plain is logins
    server.type("up")
    try:
        joined(server, tmp_path / "alice", "alice")
        bob = joined(server, tmp_path / "bob", "bob")
        url = server.server["url"]
        sent = {"username": "alice", "password": PASSWORD}
        assert urllib3.request("POST", f"{url}/rest-server/api/v1/token", json=sent).status == 200
        assert InsecureClient(url, user="alice").list("/user") == ["alice"]
        vs_code = NodeHdfs(url, "alice", "/webhdfs/api/v1")  # by the address that it configures itself
        vs_code.write("/alice/job_12345678/train.sh", b"echo 1\n", overwrite=True, permission="0755")
        assert vs_code.read("/alice/job_12345678/train.sh") == b"echo 1\n"
        vs_code.close()
        (bob.folder("asking") / "ask.py").write_text(LISTING)
        done = bob.type("run", "asking", "--", "python", "ask.py", url, "bob", "alice")
        assert "home DIRECTORY" in done.stdout
        assert "refused Authentication failure" in done.stdout
    finally:
        server.close()
