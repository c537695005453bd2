"""Wraps the WebHDFS calls that a store needs, using the `hdfs` package, and translates their errors.

Files are read by inode instead of by name, so that a reader never mixes two versions of a file. Nothing is read from
this process's environment.
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

_TIMEOUT = (8.0, 60.0)  # to connect, and between two pieces of a response
_RETRY_PAUSES_SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0)
_CONNECTIONS = 16

Status = dict[str, Any]  # a FileStatus of WebHDFS


class _LostError(UnreachableError):
    """A connection failed or broke."""


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
    """`url` is the NameNode's WebHDFS URL, or several joined by `;` if they can replace each other."""

    def __init__(self, url: str, user: str) -> None:
        self._url = _SECRET.sub("/t/…", url)  # for display: PaddleCloud's own URLs may contain a secret
        self._user = user
        self._client = _client(url, user)

    def __repr__(self) -> str:
        return f"{self._url} as {self._user}"

    def status(self, path: str) -> Status | None:
        """Return None if the path does not exist."""
        try:
            with self._translated_errors(path):
                found: Status = self._client.status(path)
                return found
        except (NotFoundError, _BelowFileError):
            return None

    def list(self, path: str) -> list[Status]:
        """List a whole folder: WebHDFS listings are not paged."""
        with self._translated_errors(path):
            return [status for _, status in self._client.list(path, status=True)]

    def make_folder(self, path: str) -> None:
        with self._translated_errors(path):
            self._client.makedirs(path)

    def rename(self, source: str, target: str) -> None:
        """Rename atomically, replacing an existing file; the target's folder must exist."""
        with self._translated_errors(source):
            # The public method cannot replace a file.
            self._client._rename(source, destination=target, renameoptions="OVERWRITE")  # noqa: SLF001

    def delete(self, path: str) -> None:
        """Delete a path recursively."""
        with self._translated_errors(path):
            self._client.delete(path, recursive=True)

    def usage(self, path: str) -> tuple[int, int]:
        """Return the numbers of bytes and files."""
        with self._translated_errors(path):
            found = self._client.content(path)
            return found["length"], found["fileCount"]

    def read(self, inode: int, start: int, end: int) -> bytes:
        """Read part of a file; ConflictError if the file no longer exists."""
        try:
            return self._with_retries(lambda: self._read(inode, start, end), lambda: True)
        except NotFoundError:
            raise ConflictError("a file was replaced or removed while it was read; read it again") from None

    def _read(self, inode: int, start: int, end: int) -> bytes:
        with self._translated_errors(f"file {inode}"):
            with self._client.read(f"/.reserved/.inodes/{inode}", offset=start, length=end - start) as reader:
                content: bytes = reader.read()
        if len(content) != end - start:
            raise UnreachableError(
                f"{self._url} sent only {len(content)} of {end - start} bytes of file {inode}: try again"
            )
        return content

    def create(self, path: str, pieces: Iterable[bytes]) -> Status:
        """Create a file, visible under its name while it is written. A failure may leave a partial file."""
        source = _Source(pieces)
        try:
            self._with_retries(lambda: self._send(path, source), lambda: not source.begun)
        except PaddleCloudError:
            if source.failure is not None:
                raise source.failure from None
            raise
        found = self.status(path)
        if found is None or found["length"] != source.sent:
            raise UnreachableError(f"{self._url} did not store all {source.sent} bytes of {path!r}: try again")
        return found

    def _send(self, path: str, source: _Source) -> None:
        with self._translated_errors(path):
            self._client.write(path, data=iter(source))

    def _with_retries(self, call: Callable[[], T], may_retry: Callable[[], bool]) -> T:
        """Retry lost connections: for minutes a NameNode may redirect to a dead DataNode, but it chooses a new one
        each time."""
        for pause in _RETRY_PAUSES_SECONDS:
            try:
                return call()
            except _LostError:
                if not may_retry():
                    raise
            time.sleep(pause)
        return call()

    @contextmanager
    def _translated_errors(self, path: str) -> Iterator[None]:
        from hdfs.util import HdfsError
        from requests import RequestException

        try:
            yield
        except HdfsError as error:
            raise self._translated(error, path) from None
        except RequestException as error:
            at = urlsplit(str(error.request.url)).netloc if error.request is not None else self._url
            raise _LostError(f"{at} does not answer ({type(error).__name__}): try again later") from None

    def _translated(self, error: Any, path: str) -> PaddleCloudError:
        said = str(error.message).partition("\n")[0][:300]
        if str(error.message).endswith("is not a directory."):
            return ConflictError(f"{path!r} is not a folder")
        kind = _KINDS.get(error.exception or "", UnreachableError)
        if kind is ForbiddenError and _THROUGH_FILE in said:
            kind = _BelowFileError  # newer versions say this to users who are not administrators
        if kind is NotFoundError:
            return NotFoundError(f"there is no file or folder {path!r}")
        if kind is ForbiddenError:
            return ForbiddenError(f"HDFS denies this to user {self._user}: {said}")
        if kind is UnreachableError:
            return UnreachableError(f"{self._url} failed: {said}")
        return kind(f"{path!r}: {said}")


class _Source:
    """Pieces to upload. Records why the source failed: the library would report only a lost connection."""

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
        raise ConfigError("HDFS needs the `hdfs` package: pip install 'paddlecloud[hdfs]'") from None
    logging.getLogger("hdfs").setLevel(logging.WARNING)  # it logs every call
    session = Session()
    session.trust_env = False  # ignore proxies and .netrc passwords
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=_CONNECTIONS))
    return InsecureClient(url, user=user, timeout=_TIMEOUT, session=session)
