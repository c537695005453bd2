"""Finds in a failed task's last lines a folder that tasks of a shared server do not see."""

from __future__ import annotations

import re

# Error lines of Python, shells, interpreters and TensorFlow.
_NOT_FOUND = re.compile(r"No such file|NotFoundError\b|: not found\s*$|can't cd to ")
_PATH = re.compile(r"(?<![\w./:~@$}-])/[^\s'\"`‘’“”:;,()\[\]{}<>|*?$\\]+")
# Folders that every task has, and system folders that no operator would list.
_SEEN = frozenset(
    "bin boot dev etc gnu lib lib32 lib64 libx32 nix pfs proc run sbin sys tmp trainer_count trainer_id usr".split()
)
_SEEN_BELOW = ("/var/tmp/",)
# These hold folders of different owners: the remedy names the folder below them.
_OF_SEVERAL = frozenset("export home media mnt net opt srv var".split())
_OF_THE_SERVER = re.compile(r"/job-[0-9a-f]{32}|/environments/")


def path_in(tail: str) -> str:
    """Returns the last path that was not found and that tasks of a shared server may not see; "" if there is none."""
    for line in reversed(tail.splitlines()):
        if _NOT_FOUND.search(line):
            paths: list[str] = [path.rstrip("./") for path in _PATH.findall(line)]
            if unseen := [path for path in paths if _may_be_unseen(path)]:
                return unseen[-1]
    return ""


def remedy(path: str, cluster: str) -> str:
    """Names the setting that shows the folder of `path` to tasks."""
    return (
        f"if {path} exists on the server's machine: tasks of a shared server do not see it; ask the operator to add "
        f'visible = ["{_folder(path)}"] to [clusters.{cluster or "NAME"}]'
    )


def _may_be_unseen(path: str) -> bool:
    seen = path.split("/")[1] in _SEEN or f"{path}/".startswith(_SEEN_BELOW)
    return len(path) > 1 and not seen and not _OF_THE_SERVER.search(path)


def _folder(path: str) -> str:
    names = path.split("/")
    return "/".join(names[: 3 if names[1] in _OF_SEVERAL else 2])
