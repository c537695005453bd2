"""The calls of WebHDFS that a store is made of, by the `hdfs` package: whatever is asked fails in our words.

A file is read by its inode and not by its name, so that nobody reads the beginning of one version and the end of the
next. Nothing is read from the environment of this process.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from paddlecloud.model.errors import (
    ConfigError,
    ConflictError,
    ForbiddenError,
    FullError,
    NotFoundError,
    PaddleCloudError,
    UnreachableError,
)

T = TypeVar("T")

FOLDER, FILE = "DIRECTORY", "FILE"

_TIMEOUT = (8.0, 60.0)  # to connect, and between two pieces of an answer
_PAUSES_SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0)
_CONNECTIONS = 16

Status = dict[str, Any]  # a FileStatus, as WebHDFS writes it


class _LostError(UnreachableError):
    """A connection could not be made, or broke."""


class _BelowFileError(ConflictError):
    """A path goes through a file."""


_KINDS: dict[str, type[PaddleCloudError]] = {
    "FileNotFoundException": NotFoundError,
    "AccessControlException": ForbiddenError,
    "SecurityException": ForbiddenError,
    "ParentNotDirectoryException": _BelowFileError,
    "FileAlreadyExistsException": ConflictError,
    "PathIsNotEmptyDirectoryException": ConflictError,
    "PathComponentTooLongException": ConflictError,
    "InvalidPathException": ConflictError,
    "DSQuotaExceededException": FullError,
    "NSQuotaExceededException": FullError,
    "QuotaExceededException": FullError,
}
_THROUGH_FILE = "is not a directory"
_SECRET = re.compile(r"/t/[^/;]+")


class WebHdfs:
    """`url` is that of the NameNode's WebHDFS, or several of them joined by `;` where one stands in for another."""

    def __init__(self, url: str, user: str) -> None:
        self._url = _SECRET.sub("/t/…", url)  # as it is shown: one of ours may hold a secret
        self._user = user
        self._client = _client(url, user)

    def __repr__(self) -> str:
        return f"{self._url} as {self._user}"

    def status(self, path: str) -> Status | None:
        """None: nothing is there."""
        try:
            with self._in_our_words(path):
                found: Status = self._client.status(path)
                return found
        except (NotFoundError, _BelowFileError):
            return None

    def list(self, path: str) -> list[Status]:
        """All that is in a folder: a NameNode has no pages."""
        with self._in_our_words(path):
            return [status for _, status in self._client.list(path, status=True)]

    def make_folder(self, path: str) -> None:
        with self._in_our_words(path):
            self._client.makedirs(path)

    def rename(self, source: str, target: str) -> None:
        """In one step, in the place of a file that may be there; the folder of the target is."""
        with self._in_our_words(source):
            # The public one cannot replace a file.
            self._client._rename(source, destination=target, renameoptions="OVERWRITE")  # noqa: SLF001

    def delete(self, path: str) -> None:
        """With all that is in it."""
        with self._in_our_words(path):
            self._client.delete(path, recursive=True)

    def usage(self, path: str) -> tuple[int, int]:
        """Bytes and files."""
        with self._in_our_words(path):
            found = self._client.content(path)
            return found["length"], found["fileCount"]

    def read(self, inode: int, start: int, end: int) -> bytes:
        """A part of a file; ConflictError if it is there no more."""
        try:
            return self._patiently(lambda: self._read(inode, start, end), lambda: True)
        except NotFoundError:
            raise ConflictError("a file was replaced or removed while it was read; read it again") from None

    def _read(self, inode: int, start: int, end: int) -> bytes:
        with self._in_our_words(f"file {inode}"):
            with self._client.read(f"/.reserved/.inodes/{inode}", offset=start, length=end - start) as reader:
                content: bytes = reader.read()
        if len(content) != end - start:
            raise UnreachableError(f"{self._url} broke off after {len(content)} of {end - start} bytes")
        return content

    def create(self, path: str, pieces: Iterable[bytes]) -> Status:
        """A new file with these bytes, seen by its name while it is written. What fails leaves some of it, or none."""
        source = _Source(pieces)
        try:
            self._patiently(lambda: self._send(path, source), lambda: not source.begun)
        except PaddleCloudError:
            if source.failure is not None:
                raise source.failure from None
            raise
        found = self.status(path)
        if found is None or found["length"] != source.sent:
            raise UnreachableError(f"{self._url} has not all of the {source.sent} bytes that were sent to it")
        return found

    def _send(self, path: str, source: _Source) -> None:
        with self._in_our_words(path):
            self._client.write(path, data=iter(source))

    def _patiently(self, call: Callable[[], T], again: Callable[[], bool]) -> T:
        """Once more, some times, what is not answered: for minutes a NameNode sends its callers to a DataNode that has
        died, too, but each time to one of all that would do."""
        for pause in _PAUSES_SECONDS:
            try:
                return call()
            except _LostError:
                if not again():
                    raise
            time.sleep(pause)
        return call()

    @contextmanager
    def _in_our_words(self, path: str) -> Iterator[None]:
        from hdfs.util import HdfsError
        from requests import RequestException

        try:
            yield
        except HdfsError as error:
            raise self._translated(error, path) from None
        except RequestException as error:
            at = urlsplit(str(error.request.url)).netloc if error.request is not None else self._url
            raise _LostError(f"{at} does not answer, or not as it should ({type(error).__name__})") from None

    def _translated(self, error: Any, path: str) -> PaddleCloudError:
        said = str(error.message).partition("\n")[0][:300]
        if str(error.message).endswith("is not a directory."):
            return ConflictError(f"{path!r} is not a folder")
        kind = _KINDS.get(error.exception or "", UnreachableError)
        if kind is ForbiddenError and _THROUGH_FILE in said:
            kind = _BelowFileError  # as newer ones say to who is no administrator
        if kind is NotFoundError:
            return NotFoundError(f"there is no {path!r}")
        if kind is ForbiddenError:
            return ForbiddenError(f"HDFS does not let {self._user} do that: {said}")
        if kind is UnreachableError:
            return UnreachableError(f"{self._url} cannot do it now: {said}")
        return kind(f"{path!r}: {said}")


class _Source:
    """Pieces on their way out. What breaks them is kept: the library in between would tell of a lost connection."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.begun = False
        self.sent = 0
        self.failure: BaseException | None = None

    def __iter__(self) -> Iterator[bytes]:
        self.begun = True
        try:
            for piece in self._pieces:
                if piece:
                    yield piece
                    self.sent += len(piece)
        except GeneratorExit:
            raise
        except BaseException as error:
            self.failure = error
            raise


def _client(url: str, user: str) -> Any:
    try:
        from hdfs import InsecureClient
        from requests import Session
        from requests.adapters import HTTPAdapter
    except ImportError:
        raise ConfigError("HDFS needs a further package: pip install 'paddlecloud[hdfs]'") from None
    logging.getLogger("hdfs").setLevel(logging.WARNING)  # it tells of each call
    session = Session()
    session.trust_env = False  # no proxies, and no passwords of a .netrc
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=_CONNECTIONS))
    return InsecureClient(url, user=user, timeout=_TIMEOUT, session=session)
