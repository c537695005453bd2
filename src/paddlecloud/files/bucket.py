"""Accesses one S3 bucket through obstore and translates its errors, without revealing the secret.

Nothing is read from this process's environment, since its keys could be anybody's.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from queue import Full, Queue
from typing import TYPE_CHECKING, TypeVar

from paddlecloud.files.keys import path_of
from paddlecloud.model.errors import (
    ConfigError,
    ConflictError,
    ForbiddenError,
    FullError,
    NotFoundError,
    PaddleCloudError,
    TooLargeError,
    UnreachableError,
)
from paddlecloud.model.units import format_size

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import S3Config, S3Credential
    from obstore.store import S3Store as Client

T = TypeVar("T")

PAGE = 1000  # keys in one S3 response
PART_BYTES = 8 * 1024 * 1024
PARTS = 10_000  # S3's limit of parts per object
COPY_BYTES = 5 * 1024**3  # S3's limit for a copy inside the service
_CONCURRENT_PARTS = 2  # of one object
_WORKERS = 8
_SHORT_TIMEOUT = timedelta(seconds=8)
_FULL = ("QuotaExceeded", "InsufficientStorage", "StorageFull", "status code: 507")
_UNLISTED = "object with invalid path"
_REFUSED = ("status code: 401", "status code: 403")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: (\d+ [\w ]+)")


class Bucket:
    def __init__(
        self,
        name: str,
        *,
        key_id: str,
        secret: str,
        region: str,
        endpoint: str | None,
        patient: bool = True,  # False: give up soon, since somebody is waiting
    ) -> None:
        self._name = f"{name} at {endpoint}" if endpoint else name
        self._client = _client(name, key_id, secret, region, endpoint, patient=patient)

    def head(self, key: str) -> ObjectMeta | None:
        with self._translated_errors(key):
            try:
                return self._client.head(key)
            except FileNotFoundError:
                return None

    def chunks(self, folder: str, offset: str | None = None) -> Iterator[Sequence[ObjectMeta]]:
        """Yield pages of all keys below a folder, after the key `offset`."""
        with self._translated_errors(folder):
            yield from self._client.list(folder or None, offset=offset, chunk_size=PAGE)

    def read(self, key: str, etag: str | None, start: int, end: int) -> bytes:
        """Raise ConflictError if the object no longer has this etag; pass None if the store has no etags."""
        with self._translated_errors(key):
            same: GetOptions = {"if_match": etag} if etag is not None else {}
            found = self._client.get(key, options={"range": (start, end), **same})
            return found.bytes().to_bytes()

    def put(self, key: str, whole: bytes) -> None:
        with self._translated_errors(key):
            self._client.put(key, whole, use_multipart=False)

    def put_file(self, key: str, whole: Path) -> None:
        part = max(PART_BYTES, -(-whole.stat().st_size // PARTS))
        with self._translated_errors(key):
            self._client.put(key, whole, chunk_size=part, max_concurrency=_CONCURRENT_PARTS)

    def put_pieces(self, key: str, pieces: Iterable[bytes]) -> None:
        """Upload in parts as they arrive; the object appears only when complete."""
        parts = _parts(pieces)
        begin = list(itertools.islice(parts, 2))
        if len(begin) < 2:
            self.put(key, b"".join(begin))
            return
        queue = _PartQueue()
        with ThreadPoolExecutor(1) as pool, self._translated_errors(key):
            # Upload in another thread: obstore requests the next part from inside its call, where it cannot be called
            # again, but the pieces may come from another object.
            sending = pool.submit(
                self._client.put,
                key,
                queue,
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=_CONCURRENT_PARTS,
            )
            sending.add_done_callback(lambda _: queue.stop())
            queue.fill(itertools.chain(begin, parts))
            sending.result()

    def copy(self, source: str, target: str, size: int, *, most: int = COPY_BYTES) -> None:
        """Copy inside the store, or through this server if the object is too large for that."""
        if size > most:
            found = self.head(source)
            etag = found["e_tag"] if found is not None else None
            self.put_pieces(
                target,
                (self.read(source, etag, at, min(at + PART_BYTES, size)) for at in range(0, size, PART_BYTES)),
            )
            return
        with self._translated_errors(source):
            self._client.copy(source, target)

    def delete(self, keys: Sequence[str]) -> None:
        with self._translated_errors(keys[0]):
            self._client.delete(keys)

    @contextmanager
    def _translated_errors(self, key: str) -> Iterator[None]:
        from obstore import exceptions as theirs

        try:
            yield
        except FileNotFoundError:
            raise NotFoundError(f"there is no file {path_of(key)!r}") from None
        except (theirs.PermissionDeniedError, theirs.UnauthenticatedError):
            raise self._refusal() from None
        except theirs.PreconditionError:
            raise ConflictError(f"{path_of(key)!r} was replaced while it was read; read it again") from None
        except (theirs.BaseError, ValueError) as error:
            raise self._failure(str(error), key) from None

    def _failure(self, said: str, key: str) -> PaddleCloudError:
        if any(word in said for word in _FULL):
            return FullError(f"no space left in the store {self._name} for {path_of(key)!r}")
        if any(word in said for word in _REFUSED):
            return self._refusal()
        if _UNLISTED in said:
            why = said.partition("\n")[0]
            return ConflictError(
                f"the store {self._name} has a key that cannot be listed: ask its operator to rename it ({why})"
            )
        code = _CODE.search(said) or _STATUS.search(said)
        why = code[1] if code else "no answer" if "HTTP error" in said else said.partition("\n")[0]
        return UnreachableError(f"the store {self._name} failed ({why}): try again later")

    def _refusal(self) -> ForbiddenError:
        return ForbiddenError(
            f"the store {self._name} rejects this server's access key or the operation: ask its operator to check both"
        )


class _PartQueue:
    """Hands parts from one thread to another, one at a time, and tells the consumer if the source failed."""

    def __init__(self) -> None:
        self._parts: Queue[bytes | None] = Queue(maxsize=1)
        self._stopped = False
        self._failed = False

    def fill(self, parts: Iterable[bytes]) -> None:
        try:
            for part in parts:
                self._put(part)
        except BaseException:
            self._failed = True
            raise
        finally:
            self._put(None)

    def stop(self) -> None:
        """The consumer takes no more parts: keep the producer from waiting."""
        self._stopped = True

    def _put(self, part: bytes | None) -> None:
        while not self._stopped:
            with suppress(Full):
                self._parts.put(part, timeout=0.1)
                return

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        part = self._parts.get()
        if part is not None:
            return part
        if self._failed:
            raise EOFError("the source of the upload failed")  # makes obstore abort the upload
        raise StopIteration


def _parts(pieces: Iterable[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = parts = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        while size >= PART_BYTES:
            whole = b"".join(held)
            held, size, parts = [whole[PART_BYTES:]], size - PART_BYTES, parts + 1
            if parts >= PARTS:
                most = format_size(PARTS * PART_BYTES)
                raise TooLargeError(f"the store accepts at most {most} for a file of unknown size: split the file")
            yield whole[:PART_BYTES]
    if size:
        yield b"".join(held)


def in_parallel(call: Callable[[T], None], arguments: Iterable[T]) -> None:
    """Call in a few threads; after the first failure no further call starts."""
    pool = ThreadPoolExecutor(_WORKERS)
    try:
        for done in [pool.submit(call, argument) for argument in arguments]:
            done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _client(name: str, key_id: str, secret: str, region: str, endpoint: str | None, *, patient: bool) -> Client:
    try:
        from obstore.store import S3Store
    except ImportError:
        raise ConfigError("S3 stores need the `obstore` package: pip install 'paddlecloud[s3]'") from None

    def credential() -> S3Credential:
        # A credential provider keeps out any token in the environment, and no repr shows the secret.
        return {"access_key_id": key_id, "secret_access_key": secret, "token": None, "expires_at": None}

    # obstore reads every setting that is not given here from the environment.
    url = endpoint or f"https://s3.{region}.amazonaws.com"
    config: S3Config = {
        "region": region,
        "endpoint": url,
        "aws_endpoint_url_s3": url,
        "virtual_hosted_style_request": False,
        "skip_signature": False,
        "s3_express": False,
        "request_payer": False,
    }
    return S3Store(
        name,
        config=config,
        credential_provider=credential,
        client_options={
            "allow_http": url.startswith("http://"),
            "connect_timeout": timedelta(seconds=5),
            "timeout": timedelta(minutes=5) if patient else _SHORT_TIMEOUT,
        },
        retry_config={"max_retries": 4, "retry_timeout": timedelta(minutes=1)}
        if patient
        else {"max_retries": 1, "retry_timeout": _SHORT_TIMEOUT},
    )
