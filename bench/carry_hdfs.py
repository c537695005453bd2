"""Transfers files by WebHDFS in a separate process, with PyPI's hdfs as its users call it."""

from __future__ import annotations

import sys

from hdfs import InsecureClient


def main() -> None:
    verb, url, user, source, target = sys.argv[1:]
    client = InsecureClient(url, user=user)
    if verb == "up":
        client.upload(target, source)
    else:
        client.download(source, target)


if __name__ == "__main__":
    main()
