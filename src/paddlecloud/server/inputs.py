"""Inputs of jobs: whether they can be had, what of them is to be fetched, and where they are on this machine.

What lies in a folder of this machine is used where it is; all else is fetched before the job is placed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from paddlecloud.backends.base import InputAt, RefusedError
from paddlecloud.files.base import Store
from paddlecloud.files.carry import Brought, FilesOf, Item
from paddlecloud.model import inputs
from paddlecloud.model.errors import (
    ConfigError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    PaddleCloudError,
    UnreachableError,
    UnsupportedError,
)
from paddlecloud.model.inputs import HdfsPath, is_hdfs, parse_hdfs, shipped_name
from paddlecloud.model.job import Input, Job, JobSpec
from paddlecloud.model.pfs import Access, Area, Place, Who
from paddlecloud.model.tree import Kind
from paddlecloud.model.user import User
from paddlecloud.server.pfs import Pfs
from paddlecloud.server.pfs_words import in_its_words
from paddlecloud.server.settings import HdfsSettings


class Load:
    """An input that is fetched: from where, and to where on this disk."""

    def __init__(self, one: Input, store: Store, path: str, brought: Brought) -> None:
        self.name = one.source
        self.brought = brought
        self.source = FilesOf(store)
        self._input = one
        self._path = path

    def listed(self) -> Sequence[Item]:
        try:
            items = self.source.listed(self._path, shipped_name(self._input))
        except InvalidError as error:
            raise InvalidError(f"{self.name} has a name in it that no disk takes: {error.message}") from None
        except NotFoundError:
            if self._input.optional:
                return ()
            raise InvalidError(f"there is no {self.name}, which is an input of the job") from None
        except PaddleCloudError as error:
            raise self.in_words(error) from None
        if not items and not self._input.optional:
            raise InvalidError(f"there are no files in {self.name}, which is an input of the job")
        return items

    def in_words(self, error: PaddleCloudError) -> PaddleCloudError:
        return _in_words(error, self._input)


class FileSystems:
    """The HDFS that the config knows, by the names that jobs know them by."""

    def __init__(self, known: Mapping[str, HdfsSettings]) -> None:
        self._known = known

    def open(self, wanted: HdfsPath, user: str) -> Store:
        """The whole of a file system as this account of it sees it."""
        from paddlecloud.files.hdfs import HdfsStore

        if wanted.name not in self._known:
            known = ", ".join(f"hdfs://{name}" for name in self._known) or "none"
            raise InvalidError(
                f"this server knows no file system hdfs://{wanted.name}: it knows {known}, and its operator can name "
                f'another in the config ([hdfs."{wanted.name}"])'
            )
        found = self._known[wanted.name]
        if not user and not found.user:
            raise InvalidError(f"say whom hdfs://{wanted.name} is to be read as (user)")
        try:
            return HdfsStore(found.url, "/", user=user or found.user)
        except ConfigError as error:
            raise UnsupportedError(
                f"this server cannot reach HDFS, as its operator has to hear: {error.message}"
            ) from None


class InputService:
    def __init__(self, *, pfs: Pfs, folder: Path, hdfs: Callable[[HdfsPath, str], Store]) -> None:
        """`hdfs` opens a file system as somebody, or raises InvalidError; `folder` holds what is fetched, by job."""
        self._pfs = pfs
        self._folder = folder
        self._hdfs = hdfs

    def check(self, user: User, spec: JobSpec) -> JobSpec:
        """The job with its inputs in their normal form, if each is there and its user may read it."""
        found = inputs.normal(spec.inputs)
        for number, one in enumerate(found):
            try:
                self._check(user.name, one)
            except PaddleCloudError as error:
                raise _at_submission(error, one, f"inputs[{number}].source") from None
        return replace(spec, inputs=found)

    def size_bytes(self, user: str, one: Input, *, most_files: int) -> int:
        """How large a source is; NotFoundError: it is not there. No more is looked through than need be."""
        store, path = self._at(user, one)
        found = store.stat(path)
        if found.kind is not Kind.FOLDER:
            return found.size
        size = 0
        for number, entry in enumerate(store.walk(path), 1):
            if number > most_files:
                raise InvalidError(f"{one.source} has more than {most_files} files and folders in it")
            size += entry.size if entry.kind is Kind.FILE else 0
        return size

    def loads(self, job: Job) -> Sequence[Load]:
        """What is to be fetched of a job's inputs."""
        found = []
        for number, one in enumerate(job.spec.inputs):
            try:
                store, path = self._at(job.user, one)
            except PaddleCloudError as error:
                raise _in_words(error, one) from None
            if store.folder is None:
                found.append(Load(one, store, path, self._brought(job, number)))
        return found

    def here(self, job: Job) -> Sequence[InputAt]:
        """Where the inputs of a job are, of which all that is to be fetched is here."""
        try:
            return [self._here(job, number, one) for number, one in enumerate(job.spec.inputs)]
        except (InvalidError, ForbiddenError, NotFoundError) as error:
            raise RefusedError(error.message) from None  # a datacenter that there is no more

    def _here(self, job: Job, number: int, one: Input) -> InputAt:
        if not is_hdfs(one.source):
            place = self._locate(job.user, one)
            store, _ = self._pfs.at(place)
            if store.folder is not None:
                return InputAt(input=one, folder=store.folder / place.root, path=place.below)
        return InputAt(input=one, folder=self._brought(job, number).tree, path=shipped_name(one))

    def _brought(self, job: Job, number: int) -> Brought:
        return Brought(self._folder / job.id, f"input-{number}")

    def _check(self, user: str, one: Input) -> None:
        store, path = self._at(user, one)
        try:
            found = store.stat(path)
        except NotFoundError:
            if one.optional:
                return
            raise
        if found.kind not in (Kind.FILE, Kind.FOLDER):
            raise InvalidError(f"{one.source} is a link, and none is followed: name what it leads to")

    def _at(self, user: str, one: Input) -> tuple[Store, str]:
        """The store that an input is in, and its path there."""
        if is_hdfs(one.source):
            wanted = parse_hdfs(one.source)
            return self._hdfs(wanted, one.user), wanted.path
        place = self._locate(user, one)
        with in_its_words(place):
            return self._pfs.at(place)

    def _locate(self, user: str, one: Input) -> Place:
        try:
            place = self._pfs.locate(Who(user=user), one.source, Access.READ)
        except NotFoundError as error:
            raise InvalidError(error.message) from None  # of no datacenter: it is not optional to know which
        if place.area is Area.ABOVE:
            raise InvalidError(f"{one.source} is too much for an input: name a folder in it")
        return place


def _in_words(error: PaddleCloudError, one: Input) -> PaddleCloudError:
    """What is said of a source: InvalidError if it can never be had as it is, UnreachableError if it may be later."""
    if isinstance(error, NotFoundError):
        return InvalidError(f"there is no {one.source}: check the path, or say that it is optional")
    if isinstance(error, ForbiddenError):
        reader = f" as {one.user}" if one.user else ""
        return InvalidError(f"{one.source} may not be read{reader}: {error.message}")
    if isinstance(error, UnreachableError):
        return UnreachableError(f"{one.source} cannot be reached: {error.message}")
    return error


def _at_submission(error: PaddleCloudError, one: Input, field: str) -> PaddleCloudError:
    known = _in_words(error, one)
    if isinstance(known, UnreachableError):
        # Not as if this server did not answer: a client would wait for that, and send it again.
        return ConflictError(f"{known.message}; nothing was submitted", field=field)
    return type(known)(f"{field} (from): {known.message}", field=field)
