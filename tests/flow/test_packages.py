"""Packages of PaddlePaddle Cloud: their pservers, what they ask for, by our command and by the Go client."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from tests.flow.goclient import GoClient, RefusedError
from tests.flow.lab import Lab
from tests.flow.test_compat import PREPARE
from tests.waiting import wait_until
from tests.wheels import wheel

PASSWORD = "correct horse"
NUMBERS = itertools.count()
IDLES = "this environment has no paddle pserver, so this task idles until the job ends"
ROLES = 'echo "$TRAINING_ROLE $PADDLE_INIT_TRAINER_ID" >> seen; sleep 1\n'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("packages"))
    lab.configure(
        "[clusters.local]\ncpus = 16\nmemory = '32Gi'\npolicy = 'open'\n[jobs]\ngrace = '1s'\npserver_wait = '9s'\n"
    )
    lab.type("up")
    yield lab
    lab.close()


@pytest.fixture
def home(server: Lab) -> str:
    return f"/pfs/local/home/{server.client().profile.user}"


@pytest.fixture
def ann(server: Lab) -> GoClient:
    user = f"ann{next(NUMBERS)}@lab.example"
    server.type("user", "add", user, "--password", stdin=f"{PASSWORD}\n")
    return GoClient(server.server["url"], user, PASSWORD)


def submitted(server: Lab, name: str, *flags: str, package: str = "package", entry: str = "sh run.sh") -> str:
    return server.out("submit", "-jobname", name, *flags, "-entry", entry, "-o", "name", package).strip()


def is_over(ann: GoClient, name: str) -> dict[str, object]:
    return wait_until(
        lambda: row if (row := ann.jobs().get(name, {})).get("active") is None and row.get("start") else None, name
    )


def test_a_pserver_without_a_program_idles_and_the_entry_runs_once_for_each_trainer(server: Lab, ann: GoClient) -> None:
    package = server.folder(f"package-{next(NUMBERS)}", run_sh=ROLES)
    began = time.monotonic()
    ann.submit(str(package), name="idle", parallelism=2, pservers=2, entry="sh run.sh")
    row = is_over(ann, "idle")
    assert (row["succeeded"], row["ps_total"]) == (2, 2)
    assert time.monotonic() - began < 20
    assert sorted(ann.get_file(f"{ann.home}/jobs/idle/seen").split(b"\n")) == [b"", b"TRAINER 0", b"TRAINER 1"]
    log = ann.logs("idle", worker="idle-pserver-0")
    assert IDLES in log
    assert "PADDLECLOUD_PSENTRY='sh run.sh'" in log


def test_trainers_wait_two_seconds_at_most_for_one_that_idles(server: Lab) -> None:
    server.folder("package", run_sh="true\n")
    job = submitted(server, "quick", "-pservers", "1")
    server.ends(job, "success")
    tasks = {task.name: task for task in server.client().get(job).tasks}
    trainer = tasks["trainer-0"]
    assert trainer.started_at is not None
    assert trainer.ended_at is not None
    assert (trainer.ended_at - trainer.started_at).total_seconds() < 4, "2 s at the gate, and its own start"
    (role,) = [role for role in server.client().get(job).job.spec.roles if role.name == "pserver"]
    assert role.awaited_seconds == 2


def test_an_idle_pserver_closes_what_connects_to_it(server: Lab) -> None:
    server.folder(
        "package",
        train_py="import os, socket\n"
        "there = os.environ['PADDLE_INIT_PSERVERS'], int(os.environ['PADDLE_INIT_PORT'])\n"
        "print('got', socket.create_connection(there, timeout=10).recv(1), flush=True)\n",
    )
    job = submitted(server, "knocks", "-pservers", "1", entry="python train.py")
    server.ends(job, "success")
    assert server.out("logs", job, "-w", "trainer-0").endswith("got b''\n")
    assert "closed a connection from" in server.out("logs", job, "-w", "pserver-0")


def test_a_pserver_runs_paddle_where_there_is_one(server: Lab) -> None:
    server.folder("package", run_sh="sleep 1\n")
    paddle = server.data / "pfs" / "local" / "public" / "tools" / "paddle"
    paddle.parent.mkdir(parents=True)
    paddle.write_text('#!/bin/sh\n[ "$1" = pserver ] || { echo "  pserver  start one"; exit; }\necho "$@"\nsleep 100\n')
    paddle.chmod(0o755)
    job = submitted(server, "real", "-pservers", "1", "--env", "PATH=/pfs/public/tools:/usr/bin:/bin")
    server.ends(job, "success")
    assert server.out("logs", job, "-w", "pserver-0") == (
        "pserver --use_gpu=0 --port=7164 --ports_num=1 --ports_num_for_sparse=1 --nics= "
        "--comment=paddle_process_k8s --num_gradient_servers=1\n"
    )


@pytest.mark.parametrize("by_flag", [True, False])
def test_a_program_that_is_named_is_run_and_may_be_the_entry_itself(server: Lab, home: str, by_flag: bool) -> None:
    name = f"named-{next(NUMBERS)}"
    server.folder("package", run_sh=ROLES)
    flags = ("-psentry", "sh run.sh") if by_flag else ()
    job = submitted(server, name, "-pservers", "1", *flags, entry="sh run.sh" if by_flag else entry("sh run.sh"))
    server.ends(job, "success")
    server.type("file", "get", f"{home}/jobs/{name}/seen", f"{name}.txt")
    assert sorted((server.work / f"{name}.txt").read_text().splitlines()) == ["PSERVER 0", "TRAINER 0"]


def entry(command: str) -> str:
    return f"PADDLECLOUD_PSENTRY='{command}' {command}"


def test_the_go_client_names_a_program_and_asks_for_v2_by_variables_of_the_entry(server: Lab, ann: GoClient) -> None:
    package = server.folder(f"package-{next(NUMBERS)}", prepare_py=PREPARE, serve_sh="echo serving; sleep 100\n")
    asked = "PADDLECLOUD_COMPAT=v2 PADDLECLOUD_PSENTRY='sh serve.sh' GREETING=hi"
    ann.submit(str(package), name="asks", entry=f"{asked} sh -c 'python prepare.py; ls parts | wc -l; echo $GREETING'")
    assert is_over(ann, "asks")["succeeded"] == 1
    assert ann.logs("asks").endswith("\n5\nhi\n")
    assert ann.logs("asks", worker="asks-pserver-0") == "serving\n"
    for wrong, said in (
        ("PADDLECLOUD_COMPAT=v1", "is not known: it is v2"),
        ("PADDLECLOUD_COMPT=v2", "unknown variable PADDLECLOUD_COMPT"),
    ):
        with pytest.raises(RefusedError, match=said):
            ann.submit(str(package), name="wrong", entry=f"{wrong} python prepare.py")


@pytest.mark.parametrize("compat", [False, True])
def test_a_package_of_the_public_folder_is_run_where_it_is(server: Lab, ann: GoClient, compat: bool) -> None:
    name = f"public-{next(NUMBERS)}"
    program = "import recordio, paddle.v2.dataset; print('imported')" if compat else "print('plain')"
    server.folder(name, train_py=f"import os, lib; print(os.getcwd(), lib.SAID); {program}\n", lib_py="SAID = 'lib'\n")
    server.type("cp", name, f"/pfs/public/{name}")
    flags = ("--compat", "v2") if compat else ()
    job = submitted(server, name, "-pservers", "0", *flags, package=f"/pfs/public/{name}", entry="python train.py")
    server.ends(job, "success")
    said = f"/pfs/local/public/{name} lib\n{'imported' if compat else 'plain'}\n"
    assert server.out("logs", job) == said
    ann.submit(
        f"/pfs/public/{name}", name=name, pservers=1, entry=f"{'PADDLECLOUD_COMPAT=v2 ' * compat}python train.py"
    )
    assert is_over(ann, name)["succeeded"] == 1
    assert ann.logs(name).endswith(said)


def test_a_task_finds_its_files_by_the_name_that_its_user_has_for_the_datacenter(server: Lab, ann: GoClient) -> None:
    there = GoClient(server.server["url"], ann.user, PASSWORD, datacenter="dlnel")
    there.put_file(b"data", "part-0", f"{there.home}/space/part-0")
    program = (
        f"cat {there.home}/space/part-0 /pfs/local/home/{ann.user}/space/part-0; ls /pfs; echo x > {there.home}/made"
    )
    there.submit(str(server.folder(f"package-{next(NUMBERS)}", run_sh=program)), name="called", entry="sh run.sh")
    assert is_over(there, "called")["succeeded"] == 1
    assert there.logs("called").endswith("\ndatadatadlnel\nlocal\npublic\n")
    assert ann.get_file(f"{ann.home}/made") == b"x\n"
    server.folder("package", run_sh="ls /pfs\n")
    job = submitted(server, "called-too", "-pservers", "0", "-datacenter", "beijing")
    server.ends(job, "success")
    assert server.out("logs", job) == "beijing\nlocal\npublic\n"
    for odd in ("../etc", "a/b", "public", "."):
        job = submitted(server, f"odd-{next(NUMBERS)}", "-pservers", "0", "-datacenter", odd)
        server.ends(job, "success")
        assert server.out("logs", job) == "local\npublic\n"


@pytest.mark.parametrize("named", [False, True])
def test_requirements_of_a_package_are_installed(server: Lab, ann: GoClient, named: bool) -> None:
    file = "needs.txt" if named else "requirements.txt"
    package = server.folder(f"package-{next(NUMBERS)}", run_sh="python -c 'import greeting; print(greeting.WORDS)'\n")
    wheel(package / "wheels", "greeting", "WORDS = 'hello from a package'\n")
    (package / file).write_text("--no-index\n--find-links ./wheels\ngreeting\n")
    flags = ("--requirements", file) if named else ()
    job = submitted(server, f"needs-{next(NUMBERS)}", "-pservers", "0", *flags, package=str(package))
    server.ends(job, "success")
    assert server.out("logs", job).endswith("hello from a package\n")
    if not named:
        ann.submit(str(package), name="needs", pservers=1, entry="sh run.sh")
        assert is_over(ann, "needs")["succeeded"] == 1
        assert ann.logs("needs").endswith("hello from a package\n")


def test_a_link_in_a_package_names_no_packages_of_elsewhere(server: Lab) -> None:
    package = server.folder(f"package-{next(NUMBERS)}", run_sh="ln -sf /etc/passwd requirements.txt; echo ran\n")
    name = f"linked-{next(NUMBERS)}"
    for _ in range(2):
        job = submitted(server, name, "-pservers", "0", package=str(package))
        server.ends(job, "success")
        assert server.out("logs", job) == "ran\n"
