"""Runs our client in a separate process, like rclone, so that measurements include its start."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from paddlecloud.sdk import bundle, transfer
from paddlecloud.sdk.client import Client
from paddlecloud.sdk.profile import Profile


def main() -> None:
    """`up PROFILE FOLDER`, or `down PROFILE JOB FOLDER`, which downloads new and changed files."""
    verb, profile, *rest = sys.argv[1:]
    with Client(Profile(**json.loads(profile))) as client:
        if verb == "up":
            transfer.upload(client.http, bundle.scan(rest[0]))
        else:
            job, folder = rest
            transfer.download(client.http, job, "rank-0", Path(folder), update=True)


if __name__ == "__main__":
    main()
