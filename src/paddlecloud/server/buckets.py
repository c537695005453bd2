"""Buckets of users' own: their keys, whether a job's folder is there and can be read, and what is told of its results.

Nobody reads a key back. Whatever a bucket answers is said in words for its user, without the key.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from paddlecloud.files import carry
from paddlecloud.files.bucket import Bucket
from paddlecloud.model import paths
from paddlecloud.model.audit import Action
from paddlecloud.model.bos import (
    Place,
    StorageKey,
    StorageKeyRequest,
    StorageLogin,
    check_storage_key,
    parse_bos_url,
)
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
from paddlecloud.model.job import Job, JobSpec
from paddlecloud.model.user import User
from paddlecloud.server.audit import AuditService, Origin
from paddlecloud.store.buckets import Buckets, Stage, new_key_id

_NO_BUCKET = "NoSuchBucket"


class BucketService:
    def __init__(self, *, records: Buckets, endpoint: str, audit: AuditService, clock: Callable[[], datetime]) -> None:
        self._records = records
        self._endpoint = endpoint
        self._audit = audit
        self._clock = clock

    def add_key(self, user: str, request: StorageKeyRequest, *, origin: Origin) -> StorageKey:
        place, key_id = check_storage_key(request), new_key_id()
        act = self._audit.beside(Action.STORAGE_KEY_ADD, origin, user=user, target=key_id, detail=f"for {place}")
        with act:
            return self._records.add_key(user, key_id, request, self._clock())

    def check(self, user: User, spec: JobSpec) -> None:
        """Look once, and not for long, whether the files of a job can be had with its key."""
        if spec.public_bos:
            return
        place = parse_bos_url(spec.bos_url)
        key, login = self._records.key(user.name, spec.storage_key)
        if key.url != str(place):
            raise InvalidError(f"storage_key {key.id} is for {key.url}: send one for {place}", field="storage_key")
        try:
            bucket = self.open(place, login, patient=False)
            if next(carry.listed(bucket, place.folder), None) is None:
                raise nothing_there(place)
        except PaddleCloudError as error:
            known = in_words(error, place)
            if isinstance(known, UnreachableError):
                # Not as if this server did not answer: a client would wait for that, and send it again.
                raise ConflictError(f"{known.message}; nothing was submitted", field="bos_url") from None
            raise known from None

    def open(self, place: Place, login: StorageLogin, *, patient: bool = True) -> Bucket:
        try:
            return Bucket(
                place.bucket,
                key_id=login.key_id,
                secret=login.secret,
                region=place.region,
                endpoint=self._endpoint.replace("{region}", place.region),
                patient=patient,
            )
        except ConfigError as error:
            raise UnsupportedError(
                f"public_bos=0: this server cannot reach buckets, as its operator has to hear: {error.message}",
                field="public_bos",
            ) from None

    def sending(self, job: Job) -> str:
        """What is to be said of the results of a finished job on their way to its user's bucket; "" if nothing is."""
        if not job.spec.storage_key or not job.state.final:
            return ""
        stage, why = self._records.stage(job.id)
        if stage is Stage.SENT:
            return why
        return why or f"its results are being sent to {results_place(job)}"


def results_place(job: Job) -> str:
    return f"{parse_bos_url(job.spec.bos_url)}/{paths.output_prefix(job.id)}"


def in_words(error: PaddleCloudError, place: Place) -> PaddleCloudError:
    """What a bucket's user is told: InvalidError if it can never work as it is, UnreachableError if it may later."""
    if isinstance(error, ForbiddenError):
        return InvalidError(
            f"{place} refuses the key that was sent for it, or does not let it list, read and write: check ak and sk "
            "in section [bos] of client.conf, and what the key may do",
            field="bos_url",
        )
    if isinstance(error, NotFoundError) or _NO_BUCKET in error.message:
        return InvalidError(
            f"there is no bucket {place.bucket!r} in region {place.region!r}: check bos_url", field="bos_url"
        )
    if isinstance(error, ConflictError):
        return InvalidError(
            f"{place} has a name in it that no disk takes: rename it ({error.message})", field="bos_url"
        )
    if isinstance(error, UnreachableError):
        return UnreachableError(f"{place.bucket}.{place.region}.bcebos.com does not answer, or not as it should")
    return error


def nothing_there(place: Place) -> InvalidError:
    return InvalidError(f"there are no files in {place}: put the job's files there, or check bos_url", field="bos_url")
