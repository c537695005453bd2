"""Every command, with names that hold escape sequences: none of them reaches the terminal as it is."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import yaml

from paddlecloud.cli.verbs import VERBS, parser
from tests.flow.lab import COMMAND, Lab

NAME = "a\x1b]0;x\x07\nb\u202e"
SHOWN = r"a\x1b]0;x\x07\nb\u202e"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

N, FILE, FOLDER, JOB = "<name>", "<file>", "<folder>", "<job>"

# What is typed of each command; a NAME in it is one that is not there, so that the error quotes it. A line that begins
# with "+" has to show the name, escaped.
TYPED: dict[str, tuple[str, ...]] = {
    "run": ("run <name>", "run job --name=<name> -- true", "run --no-files -- sh -c 'exit 3' <name>"),
    "submit": (
        "+submit <name> -- true",
        "+submit -f <name>",
        "submit --name=<name> --no-files -- true",
        "submit job -- true",
    ),
    "ls": ("ls", "ls -o wide", "+ls <folder>", "+ls -r <folder>", "+ls -o name <folder>", "+ls <job>", "+ls <name>"),
    "show": ("show <job>", "+show <name>"),
    "logs": ("+logs <name>", "+logs -w <name> <job>"),
    "wait": ("wait <job>", "+wait <name>"),
    "kill": ("kill <job>", "+kill <name>"),
    "queue": ("queue", "queue -A"),
    "events": ("events <job>", "+events <name>"),
    "cp": (
        "cp <job> got",
        "cp <file> got-<name>",
        "cp got-<name> <folder>/more/",
        "+cp <name> <folder>/",
        "cp <folder> all",
    ),
    "mkdir": ("+mkdir <folder>/d<name>", "+mkdir <name>"),
    "mv": ("+mv <file> <folder>/moved<name>", "+mv <folder>/no<name> <folder>/x"),
    "rm": ("+rm <file>", "+rm <folder>/no<name>", "+rm <name>"),
    "share add": ("+share add <name>",),
    "share list": ("share list",),
    "share grant": ("+share grant <name> <name>",),
    "share revoke": ("+share revoke <name> <name>",),
    "share remove": ("+share remove <name>",),
    "dataset convert": ("+dataset convert --to out <name>",),
    "dataset split": ("+dataset split --to out --lines 2 <name>",),
    "dataset info": ("+dataset info <name>",),
    "dataset head": ("+dataset head <name>", "dataset head -n 2 records"),
    "login": ("+login --server <name> --user x",),
    "logout": ("+logout <name>",),
    "quota": ("+quota <name>",),
    "user add": ("+user add <name>",),
    "user list": ("user list",),
    "user disable": ("+user disable <name>",),
    "user enable": ("+user enable <name>",),
    "user passwd": ("user passwd <name>",),
    "user quota": ("+user quota <name>",),
    "group add": ("+group add <name>", "group add lab --description=<name>"),
    "group list": ("+group list -o wide",),
    "group show": ("+group show <name>", "group show lab"),
    "group set": ("group set lab --description=<name>",),
    "group join": ("+group join lab <name>",),
    "group leave": ("+group leave lab <name>",),
    "group remove": ("+group remove <name>",),
    "token create": ("token create <name>", "token create x --scope <name>"),
    "token list": ("token list", "+token list <name>"),
    "token revoke": ("+token revoke <name>",),
    "key create": ("+key create --user <name>",),
    "key list": ("+key list <name>",),
    "key revoke": ("+key revoke <name>",),
    "webhdfs": ("webhdfs", "+webhdfs <name>"),
    "audit": (
        "audit -n 0",
        "+audit --user <name>x <name>",
    ),
    "config": ("config", "+config --server --config <name>"),
    "clusters": ("+clusters <name>",),
    "queues": ("+queues <name>",),
    "df": ("df", "+df <name>"),
    "up": ("+up <name>",),
    "down": ("+down <name>",),
    "status": ("+status <name>",),
    "serve": ("+serve --config <name>",),
    "db backup": ("+db backup nowhere/<name>/x",),
    "db restore": ("+db restore <name>",),
    "db migrate": ("+db migrate <name>",),
    "db status": ("+db status --config <name>",),
    "doctor": ("doctor", "+doctor --config <name>"),
    "completion": ("completion <name>",),
    "version": ("version",),
    "install": ("+install --manual-layout <name>",),
    "gen_token": ("+gen_token --email=<name>",),
    "submit_job": ("+submit_job --files=<name> --start_cmd=true", "submit_job --files=job --start_cmd='true # <name>'"),
    "query_job": ("+query_job --job_id=<job>", "+query_job --job_id=<name>"),
    "kill_job": ("kill_job --job_id=<job>", "+kill_job --job_id=<name>"),
    "get_files": ("+get_files --job_id=<job>", "+get_files --job_id=<name>", "get_files --job_id=<job> --download=1"),
    "get_fils": ("+get_fils --job_id=<job>",),
    "plsc": ("+plsc <name>",),
    "get jobs": ("get jobs",),
    "get workers": ("+get workers <name>",),
    "get quota": ("get quota",),
    "get registry": ("get registry",),
    "file put": ("+file put <name> <folder>/",),
    "file get": ("file get <file> fetched", "+file get <folder>/no<name> fetched2"),
    "file ls": ("+file ls <folder>", "+file ls <folder>/no<name>"),
    "registry": ("+registry -name <name> -username u -server <name> -password p",),
    "delete registry": ("+delete registry <name>",),
    "publish": ("publish <file>", "publish", "+publish <folder>/no<name>"),
    "cluster_train": ("+cluster_train --config <name>",),
    "commands": ("+commands <name>",),
    "flags": ("+flags <name>",),
    "known_files": ("known_files <folder>/",),
    "known_groups": ("known_groups",),
    "known_jobs": ("known_jobs",),
    "known_queues": ("known_queues",),
}


@dataclass(frozen=True)
class Desk:
    lab: Lab
    job: str
    home: str

    @property
    def file(self) -> str:
        return f"{self.home}/{NAME}"

    def keep_file(self) -> None:
        self.lab.client().http.request("PUT", f"/v1/files{self.file}", body=b"x")

    def typed(self, words: str) -> str:
        """What the command writes to stdout and stderr, with every carriage return that it has."""
        meant = {N: NAME, FILE: self.file, FOLDER: self.home, JOB: self.job}
        return written(self.lab, *(_filled(word, meant) for word in shlex.split(words)))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A server with a job that left a file of that name, wrote it into its log, and failed."""
    lab = Lab(tmp_path_factory.mktemp("printable"))
    lab.type("up")
    folder = lab.folder(run_sh="")
    (folder / "run.py").write_text(
        f"import os, sys\nopen(os.environ['OUTPUT_PATH'] + '/' + {NAME!r}, 'w').close()\n"
        f"print({NAME!r}); print('\\x1b[31mred\\x1b[0m'); print('10%\\r20%'); sys.exit(3)\n"
    )
    job = lab.submit(f"python3 run.py '{NAME}'")
    lab.ends(job, "failed")
    yield Desk(lab, job, lab.client().pfs.datacenters()[0].home)
    lab.close()


@pytest.mark.parametrize("command", TYPED)
def test_no_command_sends_somebody_elses_control_characters_to_the_terminal(desk: Desk, command: str) -> None:
    for words in TYPED[command]:
        desk.keep_file()
        said = desk.typed(words.removeprefix("+"))
        assert not RAW.search(said), (words, said)
        assert not any(line.startswith("b\\u202e") for line in said.split("\n")), (words, said)
        assert "Traceback" not in said, (words, said)
        assert "This is a fault" not in said, (words, said)
        if words.startswith("+"):
            assert SHOWN in said, (words, said)


def test_the_table_has_every_command() -> None:
    known = set()
    for name, verb in VERBS.items():
        below = parser(verb).branches()
        known |= {f"{name} {action}" for action in below} if below else {name}
    assert known == set(TYPED), "add the new command to TYPED, with what it prints of names"


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_programs_get_the_exact_name_without_a_raw_character(desk: Desk, output: str) -> None:
    named = f"{NAME}\x7f\x85\u2066é"
    desk.lab.client().http.request("PUT", f"/v1/files{desk.home}/{named}", body=b"x")
    said = written(desk.lab, "ls", "-o", output, desk.home)
    assert not RAW.search(said)
    found = json.loads(said) if output == "json" else yaml.safe_load(said)
    assert f"{desk.home}/{named}" in [entry["path"] for entry in found]


def test_a_log_is_printed_as_it_was_written(desk: Desk) -> None:
    assert NAME in desk.lab.out("logs", desk.job)


def test_the_last_lines_of_a_failed_task_are_shown_without_colours(desk: Desk) -> None:
    lines = desk.lab.out("show", desk.job).splitlines()
    assert [line.rpartition(" | ")[2] for line in lines if " | " in line][-3:] == ["red", "10%", "20%"]


def written(lab: Lab, *words: str) -> str:
    done = subprocess.run(
        [*COMMAND, *words], stdin=subprocess.DEVNULL, capture_output=True, cwd=lab.work, env=lab.env, timeout=120
    )
    return (done.stdout + done.stderr).decode()


def _filled(word: str, meant: dict[str, str]) -> str:
    for placeholder, value in meant.items():
        word = word.replace(placeholder, value)
    return word
