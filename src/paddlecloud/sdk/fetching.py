"""Files as they come, compared with the digests that come with them: one after its beginning, or many in a pack."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from paddlecloud.model import tree, wire
from paddlecloud.model.errors import InvalidError, PaddleCloudError, UnreachableError
from paddlecloud.model.transfers import FileEntry, PackRequest
from paddlecloud.sdk.connections import BrokenError
from paddlecloud.sdk.exchange import Answer, Http, Shown

TRIES = 5
WRONG = "it arrived with a wrong digest: it changes all the time, or is damaged on the way"
_PIECE_BYTES = 256 * 1024
_WORTH_RESUMING = 1024 * 1024


def fetch_pack(http: Http, path: str, entries: Sequence[FileEntry]) -> list[bytes | None]:
    """The bytes of small files, in one answer to a call of `path`; None for each that the server left out of it."""
    body = wire.encode(PackRequest(paths=tuple(entry.path for entry in entries)))
    for _ in range(TRIES):
        answer = http.request("POST", path, body=body, repeatable=True)
        try:
            frames = tree.unpack(answer.data)
        except InvalidError:
            continue
        if len(frames) == len(entries) and all(map(_is_right, frames)):
            return [None if digest == tree.LEFT_OUT else content for digest, content in frames]
    raise unfetched(entries[0], WRONG)


def _is_right(frame: tuple[str, bytes]) -> bool:
    digest, content = frame
    return digest == tree.LEFT_OUT or hashlib.sha256(content).hexdigest() == digest


class Fetching:
    """One file on its way into its part, by as many requests as it takes; a part that is there is gone on with."""

    def __init__(self, http: Http, path: str, entry: FileEntry, part: Path, shown: Shown, told: int = 0) -> None:
        self._http = http
        self._path = path
        self._entry = entry
        self._part = part
        self._etag_file = part.with_suffix(".etag") if entry.size >= _WORTH_RESUMING else None
        self._shown = shown
        self._told = told

    def run(self) -> None:
        fruitless = 0
        while fruitless < TRIES:
            before = self._told
            try:
                whole = self._try()
            except BrokenError as error:
                broken = f"the connection broke ({error})"
            else:
                if whole:
                    if self._etag_file is not None:
                        self._etag_file.unlink(missing_ok=True)
                    self._shown.advance(self._entry.size - self._told)
                    return
                broken = WRONG
                self._part.unlink()
            fruitless = 0 if self._told > before else fruitless + 1
        raise unfetched(self._entry, broken)

    def _try(self) -> bool:
        """One request; whether the file is whole and right after it."""
        start, etag = self._resumable()
        headers = {"Want-Repr-Digest": "sha-256=10", "Accept-Encoding": "identity"}
        if start:
            headers |= {"Range": f"bytes={start}-", "If-Range": etag}
        answer = self._http.request("GET", self._path, headers=headers, stream=True)
        try:
            wanted = told_digest(answer, "repr-digest", self._entry)
            self._keep_etag(answer)
            found = self._receive(answer, start if answer.status == 206 else 0)
        finally:
            answer.close()
        return found == wanted

    def _resumable(self) -> tuple[int, str]:
        """How much of the file is here, and the tag of the version that it is of."""
        if self._etag_file is None:
            return 0, ""
        try:
            etag = self._etag_file.read_text()
            # One byte at least is asked for: no range of a file is empty.
            return min(self._part.stat().st_size, self._entry.size - 1), etag
        except (OSError, UnicodeDecodeError):
            return 0, ""

    def _keep_etag(self, answer: Answer) -> None:
        etag = answer.headers.get("etag", "")
        if self._etag_file is not None and etag:
            self._etag_file.write_text(etag)

    def _receive(self, answer: Answer, start: int) -> bytes:
        with open(self._part, "r+b" if start else "wb") as file:
            digest = hashlib.sha256()
            for piece in _first_bytes(file, start):
                digest.update(piece)
            file.truncate(start)
            self._tell(start)
            for piece in answer.stream(_PIECE_BYTES):
                file.write(piece)
                digest.update(piece)
                start += len(piece)
                self._tell(start)
        return digest.digest()

    def _tell(self, position: int) -> None:
        """Advance the progress, but never twice for the same bytes."""
        position = min(position, self._entry.size)
        if position > self._told:
            self._shown.advance(position - self._told)
            self._told = position


def _first_bytes(file: BinaryIO, count: int) -> Iterator[bytes]:
    while count and (piece := file.read(min(_PIECE_BYTES, count))):
        yield piece
        count -= len(piece)


def told_digest(answer: Answer, header: str, entry: FileEntry) -> bytes:
    """The SHA-256 that the server tells in a header (RFC 9530)."""
    for member in answer.headers.get(header, "").split(","):
        name, _, value = member.strip().partition("=")
        if name == "sha-256":
            with suppress(ValueError):
                return base64.b64decode(value.strip(":"), validate=True)
    raise PaddleCloudError(f"the server sent {entry.path} without a digest to check it by")


def unfetched(entry: FileEntry, why: str) -> UnreachableError:
    return UnreachableError(f"cannot fetch {entry.path}: {why}; resume the download later")
