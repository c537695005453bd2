"""Every verb on one page: its group, its line of help, and its module, which is imported when it is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.cli.parser import Parser, Setup


class Verb(NamedTuple):
    name: str
    group: str
    module: str
    line: str


_JOBS, _FILES, _ACCOUNTS, _SERVER, _SEED, _PADDLE, _CLUSTER, _HIDDEN = (
    "Jobs",
    "Files",
    "Accounts",
    "Server",
    "As in the PaddleCloud manual",
    "As in PaddlePaddle Cloud",
    "As in PaddlePaddle's cluster_train",
    "",
)

VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("run", _JOBS, "submit", "submit a folder, follow its log, bring its results back"),
        Verb("submit", _JOBS, "submit", "submit a folder and a command, or a job file"),
        Verb("ls", _JOBS, "jobs", "list jobs; with a path, files"),
        Verb("show", _JOBS, "jobs", "all about one job, and why it waits or failed"),
        Verb("logs", _JOBS, "logs", "print or follow the logs of a job"),
        Verb("wait", _JOBS, "jobs", "wait for the end of jobs; the exit code tells how they ended"),
        Verb("kill", _JOBS, "jobs", "stop jobs"),
        Verb("queue", _JOBS, "jobs", "waiting jobs: position, reason, by when they start"),
        Verb("events", _JOBS, "jobs", "changes of state, as they happened or happen"),
        Verb("cp", _FILES, "files", "copy files to and from the PFS (/pfs/…), or results of a job"),
        Verb("mkdir", _FILES, "pfs", "make folders in the PFS"),
        Verb("mv", _FILES, "pfs", "rename a file or folder of the PFS"),
        Verb("rm", _FILES, "pfs", "remove files of the PFS"),
        Verb(
            "share",
            _FILES,
            "shared",
            "folders for groups: list; add, grant, revoke, remove (for admins)",
        ),
        Verb("dataset", _FILES, "dataset", "make files of records (RecordIO) for trainers, and look into them"),
        Verb("login", _ACCOUNTS, "account", "log in to a server and remember it"),
        Verb("logout", _ACCOUNTS, "account", "forget what login remembered"),
        Verb("quota", _ACCOUNTS, "users", "what you may have, and what you use"),
        Verb("user", _ACCOUNTS, "users", "add, list, disable, enable, passwd, quota (for admins)"),
        Verb("group", _ACCOUNTS, "groups", "add, list, show, set, remove, join, leave: groups of users (for admins)"),
        Verb("token", _ACCOUNTS, "account", "create, list, revoke bearer tokens"),
        Verb("key", _ACCOUNTS, "account", "create, list, revoke access keys (ak, sk)"),
        Verb("webhdfs", _ACCOUNTS, "webhdfs", "the address by which clients of HDFS reach your files"),
        Verb("audit", _ACCOUNTS, "audit", "who did what, when, from where (for admins)"),
        Verb("config", _ACCOUNTS, "account", "which server, who am I, and where that was read"),
        Verb("clusters", _SERVER, "clusters", "clusters that a job may name"),
        Verb("queues", _SERVER, "clusters", "queues that a job of yours may name, and what they take"),
        Verb("df", _SERVER, "space", "what uses the space, and for how long it is kept"),
        Verb("up", _SERVER, "serve", "start the embedded server in the background"),
        Verb("down", _SERVER, "serve", "stop it; running jobs run on"),
        Verb("status", _SERVER, "serve", "which server commands go to, and whether it runs"),
        Verb("serve", _SERVER, "serve", "run a server in the foreground"),
        Verb("db", _SERVER, "db", "backup, restore, migrate, status of the records on this machine"),
        Verb("doctor", _SERVER, "doctor", "check a set-up, from here to the server, and say what to do"),
        Verb("completion", _SERVER, "completion", "completion for bash, zsh or fish"),
        Verb("version", _SERVER, "serve", "the version of this program"),
        Verb("install", _SEED, "install", "make the manual's folder, ~/bin/paddlecloud: --manual-layout"),
        Verb("gen_token", _SEED, "registration", "have an access key sent by mail: --email=you@example.com"),
        Verb("submit_job", _SEED, "aliases", 'submit a job: --files=job --start_cmd="sh run.sh"'),
        Verb("query_job", _SEED, "aliases", "a job's fields: --job_id=job-…"),
        Verb("kill_job", _SEED, "aliases", "stop a job: --job_id=job-…"),
        Verb("get_files", _SEED, "aliases", "list or download results: --job_id=job-… --download=1"),
        Verb("plsc", _SEED, "plsc", "train its example: faces of 10,000 people, the classes split over the trainers"),
        Verb("get", _PADDLE, "get", "get jobs, get workers JOB, get quota, get registry"),
        Verb("file", _PADDLE, "pfs", "file put src dest, file get src dest, file ls path"),
        Verb("registry", _PADDLE, "paddlepaddle", "keep your password of an image registry, for submit -registry"),
        Verb("delete", _PADDLE, "paddlepaddle", "forget something of yours: delete registry NAME"),
        Verb("publish", _PADDLE, "paddlepaddle", "let anybody read a file of yours, by an address"),
        Verb(
            "cluster_train",
            _CLUSTER,
            "cluster_train",
            "submit a config and its thirdparty; also `paddle cluster_train`",
        ),
        Verb("commands", _HIDDEN, "commands", "the names of all commands"),
        Verb("flags", _HIDDEN, "commands", "the flags of a command"),
        Verb("known_files", _HIDDEN, "known", "paths of the PFS that begin so, for completion"),
        Verb("known_groups", _HIDDEN, "known", "names of groups, for completion"),
        Verb("known_jobs", _HIDDEN, "known", "names and ids of jobs, for completion"),
        Verb("known_queues", _HIDDEN, "known", "names of queues, for completion"),
        Verb("get_fils", _HIDDEN, "aliases", "get_files, as the manual also spells it"),
    )
}


def parser(verb: Verb) -> Parser:
    """The verb's parser, with `run` among its defaults."""
    module = importlib.import_module(f"paddlecloud.cli.{verb.module}")
    made = Parser(prog=f"paddlecloud {verb.name}", description=verb.line)
    setups: Mapping[str, Setup] = module.VERBS
    setups[verb.name](made)
    return made


def overview() -> str:
    """The help of `paddlecloud` alone: every verb in its group."""
    lines = ["usage: paddlecloud VERB …        paddlecloud help VERB tells more", ""]
    for group in dict.fromkeys(verb.group for verb in VERBS.values() if verb.group):
        lines.append(f"{group}:")
        lines += [f"  {verb.name:<14}{verb.line}" for verb in VERBS.values() if verb.group == group]
        lines.append("")
    lines.append("A first job:  paddlecloud run FOLDER -- sh run.sh")
    return "\n".join(lines)
