"""The commands about files as a user of a terminal expects them: several sources, patterns, and what they say."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from paddlecloud.model.errors import ConflictError, NotFoundError, QuotaError
from paddlecloud.model.tree import CHUNK_BYTES
from paddlecloud.sdk.client import Client
from paddlecloud.sdk.profile import Profile
from tests.flow.goclient import GoClient
from tests.flow.lab import Lab
from tests.waiting import wait_until

PASSWORD = "correct horse"
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("commands")
    made = Lab(folder)
    made.configure(f"[datacenters.local]\n[datacenters.far]\npath = '{folder}/far'\n")
    made.type("up")
    yield made
    made.close()


@pytest.fixture
def home(lab: Lab) -> str:
    """The caller's home, with nothing but what jobs left."""
    found = lab.client().pfs.datacenters()[0].home
    for entry in lab.client().pfs.list(found):
        if entry.path != f"{found}/output":
            lab.type("rm", "-r", entry.path)
    return found


def sent(lab: Lab, home: str, *names: str) -> None:
    """Files with their own names in them."""
    for name in names:
        lab.client().http.request("PUT", f"/v1/files{home}/{name}", body=name.encode())


def tree(lab: Lab, folder: str) -> list[str]:
    entries = lab.client().pfs.list(folder, recursive=True)
    return [entry.path.removeprefix(f"{folder}/") for entry in entries if "/output" not in entry.path]


def content(lab: Lab, path: str) -> bytes:
    return lab.client().http.request("GET", f"/v1/files{path}").data


def test_mv_takes_several_and_patterns_into_a_folder(lab: Lab, home: str) -> None:
    sent(lab, home, "a.txt", "b.txt", "c.bin", "d.bin", "old/a.bin", "keep")
    lab.type("mv", f"{home}/*.txt", f"{home}/c.bin", f"{home}/old/")
    assert tree(lab, home) == ["d.bin", "keep", "old", "old/a.bin", "old/a.txt", "old/b.txt", "old/c.bin"]
    lab.type("mv", f"{home}/d.bin", f"{home}/old")
    lab.type("mv", f"{home}/old", f"{home}/new")
    lab.type("mkdir", f"{home}/above")
    assert lab.out("mv", f"{home}/new/", f"{home}/above") == f"{home}/above/new\n"
    assert content(lab, f"{home}/above/new/d.bin") == b"d.bin"


def test_mv_and_cp_refuse_before_anything_what_cannot_be_meant(lab: Lab, home: str) -> None:
    sent(lab, home, "a", "b", "x/a", "file")
    before = tree(lab, home)
    for verb in ("mv", "cp"):
        onto_file = lab.type(verb, f"{home}/a", f"{home}/b", f"{home}/file", code=2)
        assert f"{home}/file is a file, and 2 are to go there: name a folder" in onto_file.stderr
        twice = lab.type(verb, f"{home}/a", f"{home}/x/a", f"{home}/new", code=2)
        assert f"{home}/a and {home}/x/a would both become {home}/new/a" in twice.stderr
        lab.type(verb, f"{home}/a", f"{home}/nothing*", f"{home}/new", code=None)
    assert "cannot be copied into itself" in lab.type("cp", f"{home}/x", f"{home}/x/y", code=2).stderr
    assert tree(lab, home) == before


def test_rm_goes_on_over_what_it_may_not_remove(lab: Lab, home: str) -> None:
    sent(lab, home, "a", "b/c", "z1", "z2")
    lab.type("rm", f"{home}/z?", f"{home}/a", f"{home}/a")
    assert tree(lab, home) == ["b", "b/c"]
    sent(lab, home, "z")
    refused = lab.type("rm", "-r", f"{home}/*", code=None)
    assert refused.returncode != 0
    assert f"{home}/output itself cannot be removed" in refused.stderr
    assert tree(lab, home) == []


def test_cp_copies_within_the_pfs(lab: Lab, home: str) -> None:
    large = os.urandom(9 * MIB)
    lab.client().pfs.make_folder(f"{home}/set/empty")
    sent(lab, home, "set/a", "set/b/c", "one.txt", "two.txt")
    (lab.work / "large").write_bytes(large)
    lab.type("cp", "large", f"{home}/set/large")
    whole = ["a", "b", "b/c", "empty", "large"]
    said = lab.type("cp", "-r", f"{home}/set", f"{home}/copy").stderr
    assert f"3 files, 9.0 MiB, in {home}/copy" in said
    assert tree(lab, f"{home}/copy") == whole
    assert content(lab, f"{home}/copy/large") == large
    lab.type("cp", f"{home}/set", f"{home}/copy")
    assert tree(lab, f"{home}/copy/set") == whole
    lab.type("cp", f"{home}/*.txt", "large", f"{home}/copy")
    assert content(lab, f"{home}/copy/two.txt") == b"two.txt"
    far = home.replace("/local/", "/far/")
    lab.type("cp", f"{home}/set/", f"{far}/set")
    lab.type("cp", f"{far}/set", f"{home}/back")
    assert tree(lab, f"{home}/back") == whole
    assert content(lab, f"{home}/back/large") == large
    lab.type("cp", f"{home}/one.txt", "/pfs/public/one.txt")
    lab.type("cp", "/pfs/public/one.txt", f"{home}/set/a")
    assert content(lab, f"{home}/set/a") == b"one.txt"
    lab.client().pfs.get("/pfs/public/one.txt", lab.work / "one.txt")
    assert (lab.work / "one.txt").read_text() == "one.txt"


def test_many_small_files_are_copied_in_a_few_calls(lab: Lab, home: str) -> None:
    for number in range(2500):
        (lab.folder("many") / f"{number:04}").write_text(str(number))
    lab.type("cp", "many", f"{home}/many")
    assert "2500 files, " in lab.type("cp", f"{home}/many", f"{home}/more").stderr
    assert len(tree(lab, f"{home}/more")) == 2500
    assert content(lab, f"{home}/more/2499") == b"2499"


def test_ls_of_files_lists_no_more_than_asked(lab: Lab, home: str) -> None:
    sent(lab, home, "a", "b", "c/d", "e")
    listed = lab.type("ls", home, "-n", "3", "-o", "name")
    assert listed.stdout.split() == [f"{home}/a", f"{home}/b", f"{home}/c"]
    assert listed.stderr == "the first 3; -n 0 lists all\n"
    assert len(lab.out("ls", "-r", home, "-n", "2", "-o", "name").split()) == 2
    assert len(lab.out("ls", f"{home}/a", f"{home}/b", f"{home}/c", "-n", "2", "-o", "name").split()) == 2
    assert len(json.loads(lab.out("ls", home, "-n", "0", "-o", "json"))) == 5


def test_an_upload_that_goes_on_says_what_was_there(lab: Lab, home: str) -> None:
    whole = os.urandom(3 * CHUNK_BYTES)
    (lab.work / "model").write_bytes(whole)
    said = lab.type("cp", "model", f"{home}/model").stderr
    assert said.endswith(f"1 file, 24.0 MiB, in {home}/model\n")
    (lab.work / "model").write_bytes(os.urandom(CHUNK_BYTES) + whole[CHUNK_BYTES:])
    said = lab.type("cp", "model", f"{home}/model").stderr
    assert said.endswith(f"1 file, 24.0 MiB, in {home}/model; 16.0 MiB of it was there already\n")
    assert lab.type("cp", f"{home}/model", "back").stderr.endswith("1 file, 24.0 MiB, in back\n")


def test_results_of_an_ended_job_are_removed_by_their_owner(lab: Lab, home: str) -> None:
    live = lab.submit("sleep 600")
    job = lab.submit("echo weights > $OUTPUT_PATH/model")
    lab.ends(job, "success")
    folder = f"{home}/output/{job}"
    assert "(-r)" in lab.type("rm", folder, code=None).stderr
    wait_until(lambda: lab.type("rm", "-r", folder, code=None).returncode == 0, "its backend has let go of it")
    assert folder not in lab.out("ls", f"{home}/output", "-o", "name")
    me = home.rpartition("/")[2]
    assert f"by its owner {me}" in lab.out("show", job)
    told = lab.type("get_files", f"--job_id={job}", code=None)
    assert f"the results of {job} were removed on" in told.stderr
    assert f"by its owner {me}" in told.stderr
    with pytest.raises(NotFoundError, match="by its owner"):
        lab.client().pfs.remove(folder, recursive=True)
    with pytest.raises(ConflictError, match=f"{live} has not ended"):
        lab.client().pfs.remove(f"{home}/output/{live}", recursive=True)
    lab.type("kill", live)


class Limited:
    """A user who may keep so much."""

    def __init__(self, lab: Lab, name: str, space: str) -> None:
        lab.type("user", "add", name, "--password", stdin=f"{PASSWORD}\n")
        lab.type("user", "quota", name, "--space", space)
        self.client = Client(Profile(server=lab.server["url"], user=name, password=PASSWORD))
        self.old = GoClient(lab.server["url"], name, PASSWORD)
        self.home = f"/pfs/local/home/{name}"


def test_a_folder_that_cannot_fit_is_refused_before_its_first_byte(lab: Lab) -> None:
    ann = Limited(lab, "ann", "6Mi")
    data = lab.folder("heavy")
    for number in range(10):
        (data / str(number)).write_bytes(os.urandom(900_000))
    with pytest.raises(QuotaError, match=r"keeps 0 B of 6\.0 MiB in the PFS, and this takes 8\.6 MiB more"):
        ann.client.pfs.put(data, f"{ann.home}/large")
    assert [entry.path for entry in ann.client.pfs.list(ann.home, recursive=True)] == [f"{ann.home}/output"]
    lab.type("cp", "heavy", "/pfs/public/heavy")
    with pytest.raises(QuotaError, match=r"this takes 8\.6 MiB more"):
        ann.client.pfs.copy("/pfs/public/heavy", f"{ann.home}/large")
    assert [entry.path for entry in ann.client.pfs.list(ann.home, recursive=True)] == [f"{ann.home}/output"]
    lab.type("user", "quota", "ann", "--space", "9Mi")
    ann.client.pfs.put(data, f"{ann.home}/large")
    assert ann.client.pfs.put(data, f"{ann.home}/large").files == 10, "what it replaces makes room"
    assert ann.client.pfs.copy("/pfs/public/heavy", f"{ann.home}/large").files == 10
    ann.client.close()


def test_what_ends_in_the_middle_says_how_far_it_came(lab: Lab) -> None:
    bob = Limited(lab, "bob", "30Mi")
    bob.old.touch(f"{bob.home}/begun", 20 * MIB)  # counts for what is large alone
    data = lab.folder("mixed", a_txt="1", b_txt="2")
    (data / "large").write_bytes(os.urandom(12 * MIB))
    with pytest.raises(QuotaError, match="; 2 of 3 files were copied, and the same again goes on with the rest$"):
        bob.client.pfs.put(data, f"{bob.home}/mixed")
    lab.type("user", "quota", "bob", "--space", "40Mi")
    assert bob.client.pfs.put(data, f"{bob.home}/mixed").files == 3
    bob.client.close()


def test_an_admin_fills_public_folders_and_sees_nobodys_home(lab: Lab) -> None:
    cat = Limited(lab, "cat", "1Mi")
    cat.old.put_file(b"cat's", "x", f"{cat.home}/secret")
    sent(lab, "/pfs/public", "set")
    for words in (("ls", cat.home), ("cp", f"{cat.home}/secret", "/pfs/public/"), ("rm", f"{cat.home}/secret")):
        assert f"{cat.home}" in (said := lab.type(*words, code=None).stderr)
        assert "is not yours" in said
    assert cat.old.get_file(f"{cat.home}/secret") == b"cat's"
    cat.client.close()
