"""Transfers files to and from the PFS in a separate process, as our command or the old client does."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from paddlecloud.sdk.client import Client  # noqa: E402
from paddlecloud.sdk.profile import Profile  # noqa: E402
from tests.flow.goclient import GoClient, RefusedError  # noqa: E402


def main() -> None:
    verb, profile, source, target = sys.argv[1:]
    known = json.loads(profile)
    password = known.pop("password")
    if verb.startswith("old-"):
        old = GoClient(known["server"], known["user"], password)
        (_old_up if verb == "old-up" else _old_down)(old, source, target)
        return
    with Client(Profile(**known)) as client:
        if verb == "up":
            client.pfs.put(source, target)
        else:
            client.pfs.get(source, target)


def _old_up(old: GoClient, source: str, target: str) -> None:
    """Upload file by file, as the old client's `cp` does; it cannot create folders, so create them first."""
    files = sorted(path for path in Path(source).rglob("*") if path.is_file())
    for folder in sorted({path.parent for path in files}):
        old.mkdir(f"{target}/{folder.relative_to(source)}")
    for path in files:
        remote = f"{target}/{path.relative_to(source)}"
        with suppress(RefusedError):
            old.stat(remote)
        old.upload(path.read_bytes(), remote)


def _old_down(old: GoClient, source: str, target: str) -> None:
    for entry in old.ls(source, recursive=True):
        local = Path(target, entry["Path"][len(source) + 1 :])
        if entry["IsDir"]:
            local.mkdir(parents=True, exist_ok=True)
        else:
            local.parent.mkdir(parents=True, exist_ok=True)
            local.write_bytes(old.download(entry["Path"]))


if __name__ == "__main__":
    main()
