"""Seed 001 by our own command, typed as its users would."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.lab import Lab
from tests.waiting import wait_until

ME = os.environ.get("USER") or "root"
GEN_TRAIN_LIST = """
import glob, os, sys
TRAIN_FILE_PATTERN = "/pfs/local/home/%s/space/part-*.gz" % os.environ["PADDLE_CLOUD_USERNAME"]

def gen_train_list(data_dir):
    # write "/train.list" and "/test.list" for each node
    trainer_id = -1
    trainer_count = -1
    with open("/trainer_id", "r") as f:
        trainer_id = int(f.readline()[:-1])
    with open("/trainer_count", "r") as f:
        trainer_count = int(f.readline()[:-1])

    train_file_list = glob.glob(TRAIN_FILE_PATTERN)
    train_file_list.sort()
    my_train_list = []
    for idx, f in enumerate(train_file_list):
        if idx % trainer_count == trainer_id:
            my_train_list.append(f)
    with open("/train.list", "w") as f:
        f.write('\\n'.join(my_train_list))

gen_train_list("")
print(trainer := os.environ["PADDLE_INIT_TRAINER_ID"], open("/train.list").read().replace("\\n", " "), flush=True)
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("seed"))
    made.configure("[clusters.local]\ncpus = 16\nmemory = '32Gi'\n[jobs]\ngrace = '1s'\npserver_wait = '1s'\n")
    yield made
    made.close()


@pytest.fixture(scope="module")
def home(lab: Lab) -> str:
    lab.type("up")
    return f"/pfs/local/home/{lab.client().profile.user}"


def row(lab: Lab, name: str) -> dict[str, str]:
    """A line of `get jobs`, by its heads."""
    head, *lines = [line.split() for line in lab.out("get", "jobs").splitlines()] or [[]]
    return next((dict(zip(head, line, strict=True)) for line in lines if line[1] == name), {})


def succeeded(lab: Lab, name: str) -> dict[str, str]:
    return wait_until(lambda: found if (found := row(lab, name)).get("COMP", "<nil>") != "<nil>" else None, name)


def test_a_package_is_submitted_with_the_seeds_flags_and_seen_by_its_verbs(lab: Lab, home: str) -> None:
    lab.folder("space", **{f"part-{number}_gz": "x" for number in range(5)})
    lab.type("file", "put", "space", home)
    lab.folder("ctr_package", train_py=GEN_TRAIN_LIST)
    flags = "-cpu 1 -gpu 0 -memory 1Gi -parallelism 3 -pscpu 1 -pservers 2 -psmemory 1Gi -passes 1".split()
    said = lab.out("submit", "-jobname", "my-job", *flags, "-entry", "python train.py", "ctr_package")
    assert said == "my-job submited.\n"
    found = succeeded(lab, "my-job")
    assert list(found)[:7] == ["NUM", "NAME", "SUCC", "FAIL", "START", "COMP", "ACTIVE"]
    assert (found["SUCC"], found["FAIL"], found["ACTIVE"], found["PS_TOTAL"]) == ("3", "<nil>", "<nil>", "2")
    workers = [line.split() for line in lab.out("get", "workers", "my-job").splitlines()]
    assert workers[0][:3] == ["NAME", "STATUS", "START"]
    assert len(workers) == 4
    assert all(re.fullmatch(r"my-job-trainer-[a-z0-9]{5}", line[0]) and line[1] == "Succeeded" for line in workers[1:])
    logs = lab.out("logs", "my-job")
    for trainer, parts in ((0, "0 3"), (1, "1 4"), (2, "2")):
        files = " ".join(f"{home}/space/part-{part}.gz" for part in parts.split())
        assert f"trainer-{trainer} | {trainer} {files}\n" in logs
    assert lab.out("logs", "-n", "1", "-w", workers[1][0], "my-job").startswith("0 ")
    assert f"{home}/output/" in lab.out("ls", "-r", home)
    assert not Path("/train.list").exists()


def test_a_package_of_the_pfs_is_run_where_it_is(lab: Lab, home: str) -> None:
    lab.folder("package", train_py="import os; print(os.environ['TRAINER_PACKAGE'], os.getcwd())")
    lab.type("cp", "package", f"{home}/ctr_demo_package")
    lab.type("submit", "-jobname", "of-pfs", "-pservers", "0", "-topology", "train.py", f"{home}/ctr_demo_package")
    succeeded(lab, "of-pfs")
    assert lab.out("logs", "of-pfs") == f"{home}/ctr_demo_package {home}/ctr_demo_package\n"


def test_a_failed_trainer_of_a_fault_tolerant_job_is_started_again(lab: Lab, home: str) -> None:
    lab.folder(
        "flaky", run_sh='[ "$PADDLE_INIT_TRAINER_ID" = 1 ] && [ ! -e seen ] && { touch seen; exit 7; }; echo ok\n'
    )
    flags = ("-parallelism", "2", "-pservers", "0", "-faulttolerant")
    lab.type("submit", "-jobname", "flaky", *flags, "-entry", "sh run.sh", "flaky")
    assert succeeded(lab, "flaky")["SUCC"] == "2"
    assert "restart 1 of" in lab.out("logs", "flaky")
    lab.type("submit", "-jobname", "strict", "-pservers", "0", "-entry", "exit 7", "flaky")
    assert wait_until(lambda: row(lab, "strict").get("FAIL") == "1", "it fails")


def test_a_name_is_free_after_kill_and_rm_takes_a_job_out_of_history(lab: Lab, home: str) -> None:
    lab.folder("package", run_sh="sleep 100\n")
    submit = ("submit", "-jobname", "twice", "-pservers", "0", "-entry", "sh run.sh", "package")
    lab.type(*submit)
    lab.folder("package", run_sh="echo changed\n")
    assert "already exists" in lab.type(*submit, code=1).stderr
    lab.type("file", "get", f"{home}/jobs/twice/run.sh", "of-the-first.sh")
    assert (lab.work / "of-the-first.sh").read_text() == "sleep 100\n", "what runs is left as it is"
    lab.folder("package", run_sh="sleep 100\n")
    lab.type("kill", "-rm", "twice")
    wait_until(lambda: not row(lab, "twice"), "it is gone")
    lab.type(*submit)
    lab.type("kill", "twice")
    assert "twice" not in lab.out("ls", "--state", "live")


def test_files_go_to_the_pfs_and_back(lab: Lab, home: str) -> None:
    folder = lab.folder("data", a_txt="one", b_txt="two")
    (folder / "sub").mkdir()
    (folder / "sub" / "c").write_bytes(os.urandom(20_000_000))
    lab.type("cp", "data", f"{home}/up")
    lab.type("cp", f"{home}/up", "down")
    assert (lab.work / "down" / "sub" / "c").read_bytes() == (folder / "sub" / "c").read_bytes()
    assert sorted(path.name for path in (lab.work / "down").rglob("*")) == ["a.txt", "b.txt", "c", "sub"]
    (lab.work / "picked").mkdir()
    lab.type("cp", f"{home}/up/*.txt", "picked")
    assert sorted(path.name for path in (lab.work / "picked").iterdir()) == ["a.txt", "b.txt"]
    lab.type("file", "put", "data/", f"{home}/flat")
    assert lab.out("file", "ls", f"{home}/flat").split() == ["a.txt", "b.txt", "sub"]
    lab.type("file", "get", f"{home}/flat/a.txt", "got.txt")
    assert (lab.work / "got.txt").read_text() == "one"
    assert "already exist" in lab.type("file", "get", f"{home}/flat/a.txt", "got.txt", code=2).stderr
    assert "inside" in lab.type("file", "put", "../x", home, code=2).stderr
    lab.type("mv", f"{home}/flat", f"{home}/flatter")
    lab.type("mkdir", f"{home}/new/deep")
    assert "is a folder" in lab.type("rm", f"{home}/flatter", code=1).stderr
    lab.type("rm", "-r", f"{home}/flatter", f"{home}/new")
    assert "no such file" in lab.type("ls", f"{home}/flatter", code=102).stderr


def test_public_data_is_filled_by_operators_and_read_by_all(lab: Lab, home: str) -> None:
    folder = lab.folder("dataset", train_txt="data")
    lab.type("cp", str(folder), "/pfs/public/dataset")
    lab.folder(
        "reader", run_sh="cat /pfs/local/public/dataset/train.txt /pfs/public/dataset/train.txt; touch /pfs/public/x\n"
    )
    lab.type("submit", "-jobname", "reader", "-pservers", "0", "-entry", "sh run.sh", "reader")
    wait_until(lambda: row(lab, "reader").get("FAIL") == "1", "it fails at writing")
    assert lab.out("logs", "reader").startswith("datadata")
    assert "Read-only" in lab.out("logs", "reader")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-jobname", "a_b", "-entry", "x", "package"), "must be letters, digits"),
        (("-jobname", "a", "package"), "no topology or entry"),
        (("-jobname", "a", "-entry", "x", "-parallelism", "0", "package"), "a whole number, 1 or more, not 0"),
        (("-jobname", "a", "-entry", "x", "-pservers", "-1", "package"), "a whole number, 0 or more, not -1"),
        (("-jobname", "a", "-entry", "x"), "name the package"),
        (("-jobname", "a", "-entry", "x", "nowhere"), "is not a folder"),
        (("-jobname", "a", "-entry", "x", "/pfs/local/home/somebody/x"), "not yours"),
        (("-jobname", "a", "-entry", "x", "-memory", "lots", "package"), "lots"),
        (("--name", "a", "-entry", "x", "package"), "write -jobname"),
        (("-name", "a", "--nodes", "2", "-entry", "x", "package"), "write -parallelism"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_is_sent(
    lab: Lab, home: str, words: tuple[str, ...], said: str
) -> None:
    lab.folder("package", run_sh="true\n")
    refused = lab.type("submit", *words, code=None)
    assert refused.returncode in (2, 3)
    assert said in refused.stderr
    assert row(lab, "a") == {}


def test_what_only_the_modern_flags_can_say_goes_with_the_seeds(lab: Lab, home: str) -> None:
    lab.folder("package", run_sh="echo A=$A\n")
    flags = ("--env", "A=1", "--time-limit", "2m", "--priority", "3", "-o", "name")
    job = lab.out("submit", "-name", "newer", "-pservers", "0", "-entry", "sh run.sh", *flags, "package").strip()
    lab.ends(job, "success")
    assert lab.out("logs", job) == "A=1\n"
    assert lab.field(job, "wall_time") == "00:02:00"


def test_a_datacenter_of_another_name_is_taken_for_the_only_one(lab: Lab, home: str) -> None:
    lab.type("user", "add", "wang", "--password", stdin="correct horse\n")
    config = lab.home / ".paddle" / "config"
    config.parent.mkdir()
    url = lab.server["url"]
    config.write_text(
        "datacenters:\n- name: datacenter1\n  username: wang\n  password: correct horse\n"
        f"  endpoint: {url}\ncurrent-datacenter: datacenter1\n"
    )
    try:
        lab.folder("package", run_sh="true\n")
        said = lab.type("submit", "-jobname", "named", "-pservers", "0", "-entry", "sh run.sh", "package")
        assert said.stderr.count("this server has one datacenter, local: 'datacenter1' is taken for it") == 1
        assert "corr" not in lab.out("config")
    finally:
        config.unlink()


def test_any_name_of_the_only_datacenter_will_do_on_every_path(lab: Lab, home: str) -> None:
    there = home.replace("/pfs/local/", "/pfs/dlnel/")
    lab.folder("named", run_sh="pwd\n")
    for words, shown in (
        (("file", "put", "named", f"{there}/by-name"), ""),
        (("file", "ls", f"{there}/by-name"), "named\n"),
        (("file", "get", f"{there}/by-name/named/run.sh", "named.sh"), ""),
        (("mkdir", f"{there}/by-name/made"), f"{home}/by-name/made\n"),
        (("cp", "named", f"{there}/by-name/sent"), ""),
        (("cp", f"{there}/by-name/sent", "fetched"), ""),
        (("cp", f"{there}/by-name/sent", f"{there}/by-name/copied"), ""),
        (("ls", "-o", "name", f"{there}/by-name/copied"), f"{home}/by-name/copied/run.sh\n"),
        (("mv", f"{there}/by-name/copied", f"{there}/by-name/moved"), f"{home}/by-name/moved\n"),
        (("publish", f"{there}/by-name/moved/run.sh"), None),
        (("rm", "-r", f"{there}/by-name/moved"), f"{home}/by-name/moved\n"),
        (("submit", "-jobname", "by-name", "-pservers", "0", "-entry", "sh run.sh", f"{there}/by-name/sent"), None),
    ):
        said = lab.type(*words)
        assert shown is None or said.stdout == shown
        assert said.stderr.count("'dlnel' is taken for it, and /pfs/dlnel for /pfs/local") == 1, words
    assert (lab.work / "named.sh").read_text() == (lab.work / "fetched" / "run.sh").read_text() == "pwd\n"
    succeeded(lab, "by-name")
    assert lab.out("logs", "by-name") == f"{home}/by-name/sent\n"
    lab.folder("package", run_sh="true\n")
    flags = ("-jobname", "beijing", "-pservers", "0", "-datacenter", "beijing", "-entry", "sh run.sh")
    assert "'beijing' is taken for it" in lab.type("submit", *flags, "package").stderr


@pytest.mark.parametrize("words", [("cp", "{home}/zart-*", "."), ("ls", "{home}/zart-*"), ("rm", "{home}/zart-*")])
def test_a_pattern_that_matches_nothing_is_said_to(lab: Lab, home: str, words: tuple[str, ...]) -> None:
    refused = lab.type(*(word.format(home=home) for word in words), code=102)
    assert f"nothing matches {home}/zart-*" in refused.stderr
    assert "no job 'never'" in lab.type("get", "workers", "never", code=102).stderr


def test_registry_secrets_are_kept_by_name(lab: Lab, home: str) -> None:
    flags = ("-username", "u", "-password", "s3cret", "-server", "registry.example", "-name", "mine")
    assert lab.out("registry", *flags) == "registry: [mine] is added\n"
    assert lab.out("get", "registry").split()[:5] == ["ID", "NAME", "DATA", "0", "mine"]
    assert "s3cret" not in lab.out("get", "registry", "-o", "json")
    lab.folder("package", run_sh="true\n")
    said = lab.type(
        "submit",
        "-jobname",
        "image",
        "-pservers",
        "0",
        "-image",
        "x:1",
        "-registry",
        "mine",
        "-entry",
        "true",
        "package",
    )
    assert "runs no images" in said.stderr
    succeeded(lab, "image")
    assert lab.out("logs", "image").startswith("paddlecloud: no images are run here, so x:1 is not used: ")
    assert lab.out("delete", "registry", "mine") == "registry: [mine] is deleted\n"
    assert "mine" in lab.type("delete", "registry", "mine", code=102).stderr
    again = ("submit", "-jobname", "none", "-image", "x:1", "-registry", "mine", "-entry", "true", "package")
    assert "you have no registry 'mine'" in lab.type(*again, code=102).stderr
