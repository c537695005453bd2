"""A large file, fetched in ranges side by side: each comes with its digest and is written at its place.

Beside the part lies a list of the ranges in it, with the tag of the version that they are of. Whoever goes on later
compares them with their digests first: a machine that lost its power may have kept the list and not the bytes.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import partial
from threading import Lock

from paddlecloud.model.errors import ConflictError, InvalidError
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import RANGE_BYTES
from paddlecloud.sdk.connections import BrokenError
from paddlecloud.sdk.exchange import Answer, Http, Shown, in_parallel
from paddlecloud.sdk.fetching import TRIES, WRONG, told_digest, unfetched
from paddlecloud.sdk.positioned import read_at, write_at

_PIECE_BYTES = 256 * 1024


class Ranges:
    """`told` is how much of the file the progress has been told of."""

    def __init__(self, http: Http, path: str, entry: FileEntry, part: str, shown: Shown) -> None:
        self.told = 0
        self._http = http
        self._path = path
        self._entry = entry
        self._part = part
        self._list = f"{part}.ranges"
        self._shown = shown
        self._numbers = range(-(-entry.size // RANGE_BYTES))
        self._lock = Lock()
        self._etag = ""
        self._changed = False

    def run(self) -> bool:
        """Bring the file into its part; False: it changed meanwhile, and nothing of it is left here."""
        descriptor = os.open(self._part, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        try:
            os.ftruncate(descriptor, self._entry.size)
            here = self._here(descriptor)
            self._tell(sum(map(self._size, here)))
            lacking = [number for number in self._numbers if number not in here]
            # The first tells the version that all the others must be of.
            first = lacking[:1] if not self._etag else []
            for numbers in (first, lacking[len(first) :]):
                in_parallel([partial(self._fetch, descriptor, number) for number in numbers], self._shown)
        finally:
            os.close(descriptor)
        for file in (self._list, self._part) if self._changed else (self._list,):
            with suppress(FileNotFoundError):
                os.unlink(file)
        return not self._changed

    def _here(self, descriptor: int) -> set[int]:
        """The ranges that an earlier run brought, as far as they are what came."""
        try:
            with open(self._list, encoding="latin-1") as listed:
                etag, *lines = listed.read().split("\n")
            found = {int(number): digest for number, digest in (line.split() for line in lines if line)}
        except (OSError, ValueError):
            return set()
        self._etag = etag
        return {
            number for number in self._numbers if number in found and self._digest(descriptor, number) == found[number]
        }

    def _digest(self, descriptor: int, number: int) -> str:
        return hashlib.sha256(read_at(descriptor, self._size(number), number * RANGE_BYTES)).hexdigest()

    def _size(self, number: int) -> int:
        return min(RANGE_BYTES, self._entry.size - number * RANGE_BYTES)

    def _fetch(self, descriptor: int, number: int) -> None:
        broken = ""
        for _ in range(TRIES):
            if self._changed:
                return
            try:
                if self._try(descriptor, number):
                    return
                broken = WRONG
            except BrokenError as error:
                broken = f"the connection broke ({error})"
            except (ConflictError, InvalidError):
                self._changed = True
        if not self._changed:
            raise unfetched(self._entry, broken)

    def _try(self, descriptor: int, number: int) -> bool:
        """One request for a range; whether it came as it is. ConflictError: it is of another version by now."""
        start, end = number * RANGE_BYTES, number * RANGE_BYTES + self._size(number)
        headers = {
            "Range": f"bytes={start}-{end - 1}",
            "Want-Content-Digest": "sha-256=10",
            "Accept-Encoding": "identity",
        }
        if self._etag:
            headers["If-Match"] = self._etag
        answer = self._http.request("GET", self._path, headers=headers, stream=True)
        try:
            if answer.headers.get("content-range") != f"bytes {start}-{end - 1}/{self._entry.size}":
                raise ConflictError(f"{self._entry.path} has another length by now")
            wanted = told_digest(answer, "content-digest", self._entry)
            digest = hashlib.sha256()
            for piece in answer.stream(_PIECE_BYTES):
                _write(descriptor, piece[: end - start], start)
                digest.update(piece)
                start += len(piece)
        finally:
            answer.close()
        if start != end or digest.digest() != wanted:
            return False
        self._note(answer, f"{number} {digest.hexdigest()}\n")
        self._tell(self._size(number))
        return True

    def _note(self, answer: Answer, line: str) -> None:
        with self._lock, open(self._list, "a", encoding="latin-1") as listed:
            if not self._etag:
                self._etag = answer.headers.get("etag", "")
                listed.write(f"{self._etag}\n")
            listed.write(line)

    def _tell(self, size: int) -> None:
        self._shown.advance(size)
        with self._lock:
            self.told += size


def _write(descriptor: int, content: bytes, offset: int) -> None:
    rest = memoryview(content)
    while rest:
        count = write_at(descriptor, rest, offset)
        rest, offset = rest[count:], offset + count
