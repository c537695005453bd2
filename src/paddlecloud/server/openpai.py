"""Jobs of OpenPAI: what its protocols ask for, as jobs of ours, with what they were written as, their secrets and tags.

A virtual cluster is a queue by its name, else a cluster by its own; `default` is the list of default clusters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from paddlecloud import yamltext
from paddlecloud.backends.base import RefusedError
from paddlecloud.model import hdfspath, inputs, pfs
from paddlecloud.model.errors import ConfigError, InvalidError, NotFoundError, PaddleCloudError, UnreachableError
from paddlecloud.model.job import DEFAULT, Input, Job, JobSpec
from paddlecloud.model.openpai import v1, v2
from paddlecloud.model.openpai.submitted import FS_URI, OpenPaiJob, OpenPaiRequest, Submitted
from paddlecloud.model.openpai.template import uses_secrets
from paddlecloud.model.pfs import Who
from paddlecloud.model.units import format_duration
from paddlecloud.model.user import User
from paddlecloud.server.audit import Origin
from paddlecloud.server.inputs import InputService
from paddlecloud.server.jobs import JobService
from paddlecloud.server.pages import PAGE
from paddlecloud.server.pfs import Pfs
from paddlecloud.server.settings import Settings
from paddlecloud.store.configs import Config, Configs

SECRETS = "secrets"
STORAGES = "extras.storages"
_MASK = "******"
_TAG_CHARACTERS = 255
_CODE_FILES = 100_000
_VIRTUAL_CLUSTER = "virtualCluster"


class OpenPaiJobs:
    def __init__(
        self,
        *,
        jobs: JobService,
        configs: Configs,
        inputs: InputService,
        settings: Settings,
        meant: Callable[[User, str], str],  # the path of the PFS that a path of HDFS means to a user; "": none
        shared: Callable[[User], Mapping[str, str]],  # the shared folders that a user's tasks see: name -> path
    ) -> None:
        self._jobs = jobs
        self._configs = configs
        self._inputs = inputs
        self._settings = settings
        self._meant = meant
        self._shared = shared

    def submit(self, user: User, request: OpenPaiRequest, *, origin: Origin) -> OpenPaiJob:
        """Submit a file of either protocol, which its content tells."""
        text = request.text
        value = _json(text)
        if value is not None and v1.is_v1(value):
            return self.submit_v1(user, _named(value, "jobName", request.name), origin=origin)
        value = yamltext.read(text)
        if v2.is_v2(value):
            text = yamltext.replaced(text, "name", request.name) if request.name else text
            return self.submit_v2(user, text, origin=origin)
        if v1.is_v1(value):
            return self.submit_v1(user, _named(value, "jobName", request.name), origin=origin)
        raise InvalidError("this is no job of OpenPAI: it has neither protocolVersion nor jobName and taskRoles")

    def submit_v1(self, user: User, value: object, *, origin: Origin, form: bool = False) -> OpenPaiJob:
        """A job of the first protocol; `form`: each value of it is a text."""
        submitted = v1.job(value, user=user.name, form=form)
        return self._submit(user, submitted, json.dumps(submitted.config, indent=2, ensure_ascii=False), origin)

    def submit_v2(self, user: User, text: str, *, origin: Origin) -> OpenPaiJob:
        """A job of the second protocol, as its YAML."""
        submitted = v2.job(yamltext.read(text))
        return self._submit(user, submitted, yamltext.replaced(text, SECRETS, _MASK), origin)

    def spec(self, user: User, submitted: Submitted) -> JobSpec:
        """The job with all that only this server knows of it."""
        openpai = submitted.spec.openpai
        if openpai is None:
            raise InvalidError("this is no job of OpenPAI")
        spec = replace(
            submitted.spec,
            openpai=replace(
                openpai,
                fs_uri=self.fs_uri,
                code_dir=self._resolved(openpai.code_dir),
                data_dir=self._resolved(openpai.data_dir),
                output_dir=self._resolved(openpai.output_dir),
                storages=self._storages(user, submitted),
            ),
            inputs=self._code(user, submitted),
        )
        return self._in_virtual_cluster(spec, submitted.virtual_cluster)

    @property
    def fs_uri(self) -> str:
        """What $PAI_DEFAULT_FS_URI stands for."""
        return self._settings.default_fs_uri

    def config(self, job: Job) -> Config:
        """What a job was written as; NotFoundError: it is of another face."""
        return self._configs.get(job.id)

    def tags(self, names: Collection[str]) -> dict[str, tuple[str, ...]]:
        """The tags of these jobs, by id, those without left out."""
        return self._configs.tags(names)

    def tagged(self, tags: Collection[str]) -> set[str]:
        """The ids of the jobs that have one of these tags."""
        return self._configs.tagged(tags)

    def tag(self, job: Job, tag: str) -> None:
        if not tag or len(tag) > _TAG_CHARACTERS or not tag.isprintable() or "," in tag:
            raise InvalidError(
                f"a tag must be 1 to {_TAG_CHARACTERS} printable characters without a comma", field="value"
            )
        self._configs.tag(job.id, tag)

    def untag(self, job: Job, tag: str) -> None:
        self._configs.untag(job.id, tag)

    def _submit(self, user: User, submitted: Submitted, config: str, origin: Origin) -> OpenPaiJob:
        job = self._jobs.submit(
            user,
            self.spec(user, submitted),
            origin=origin,
            written=lambda job_id: self._configs.written(
                job_id,
                protocol=submitted.protocol,
                config=config,
                secrets=submitted.secrets,
                warnings=submitted.warnings,
            ),
        )
        return OpenPaiJob(job=job, warnings=(*submitted.warnings, *self._limited(job, submitted)))

    def _limited(self, job: Job, submitted: Submitted) -> list[str]:
        """How long a job may run that asks for no time, and how it gets more where more would be taken."""
        limit, default = job.spec.wall_time_seconds, self._settings.jobs.wall_time
        if limit is None or submitted.spec.wall_time_seconds is not None:
            return []
        told = f"it may run for {format_duration(limit)}"
        if default is None or limit < default.total_seconds():
            return [f"{told}, the longest that is allowed"]
        instead = "extras: {paddlecloud: {time_limit: TIME}}"
        return [f"{told}, as jobs do here that ask for no time: for more, write {instead}"]

    def _in_virtual_cluster(self, spec: JobSpec, name: str) -> JobSpec:
        if name in self._settings.queues:
            return replace(spec, queue=name)
        if name == DEFAULT or name in self._settings.clusters:
            return replace(spec, cluster=name)
        # Who may use a queue that is not open to all is not asked here, so it is not named.
        queues = [name for name, queue in self._settings.queues.items() if not (queue.users or queue.groups)]
        known = ", ".join(dict.fromkeys([DEFAULT, *queues, *self._settings.clusters]))
        raise InvalidError(f"Virtual cluster {name[:80]} is not found: this server has {known}", field=_VIRTUAL_CLUSTER)

    def _resolved(self, path: str) -> str:
        return path.replace(FS_URI, self.fs_uri)

    def _storages(self, user: User, submitted: Submitted) -> dict[str, str]:
        """The folder of the PFS that its tasks see at each path; InvalidError names a storage that is none of these."""
        known = self._shared(user) if submitted.storages else {}
        for at, name in submitted.storages.items():
            if name not in known:
                yours = f"yours are {', '.join(known)}" if known else "no folder is shared with you"
                raise InvalidError(
                    f"Storage {name[:80]} is not found: {yours}; an admin shares one with a group of yours "
                    "(paddlecloud share)",
                    field=STORAGES,
                )
            if f"{at}/".startswith(f"/{pfs.ROOT}/") and at != known[name]:
                raise InvalidError(
                    f"{STORAGES}: {name[:80]} is at {known[name]} already: take that as its mountPath, or one such as "
                    f"/mnt/{name[:80]}"
                )
        return {at: known[name] for at, name in submitted.storages.items() if at != known[name]}

    def _code(self, user: User, submitted: Submitted) -> tuple[Input, ...]:
        """The code of a job as an input; of no bytes, none is made."""
        if not submitted.code_dir:
            return ()
        one = self._input(user, submitted)
        limit = self._settings.openpai.code_limit
        try:
            size = self._inputs.size_bytes(user.name, one, most_files=_CODE_FILES)
        except NotFoundError:
            raise InvalidError(
                f"codeDir {self._resolved(submitted.code_dir)} does not exist: upload the code there first",
                field="codeDir",
            ) from None
        except UnreachableError as error:
            # Not as if this server did not answer: a client would wait for that, and send it again.
            raise InvalidError(
                f"codeDir cannot be reached: {error.message}; nothing was submitted", field="codeDir"
            ) from None
        except PaddleCloudError as error:
            raise type(error)(f"codeDir: {error.message}", field="codeDir") from None
        if size > limit:
            raise InvalidError(
                f"codeDir {self._resolved(submitted.code_dir)} is {size} bytes; {limit} is the most "
                "(openpai.code_limit): keep data out of it, and read it where it is",
                field="codeDir",
            )
        return (one,) if size else ()

    def _input(self, user: User, submitted: Submitted) -> Input:
        path, reader = self._source(user, submitted.code_dir)
        name = inputs.base_name(path)
        if not name:
            raise InvalidError("codeDir names no folder: write $PAI_DEFAULT_FS_URI/<user>/<folder>", field="codeDir")
        alias = f"{user.name}~{submitted.spec.name}"
        return Input(source=path, target=name, user=reader, copy=True, alias="" if alias == name else alias)

    def _source(self, user: User, code_dir: str) -> tuple[str, str]:
        """Where the code is: in the PFS, or in an HDFS that the config knows, as whom."""
        for prefix in (FS_URI, self.fs_uri):
            if code_dir == prefix or code_dir.startswith(f"{prefix}/"):
                code_dir = code_dir[len(prefix) :] or "/"
        if code_dir.startswith(("hdfs://", "webhdfs://")):
            return f"hdfs://{code_dir.partition('://')[2]}", user.name
        try:
            found = self._meant(user, code_dir)
        except InvalidError as error:
            raise InvalidError(f"codeDir: {error.message}", field="codeDir") from None
        if not found:
            raise InvalidError(
                f"codeDir {code_dir[:200]!r} does not exist: there is neither a folder of yours nor one that you share "
                f"of that name; yours is /{user.name}",
                field="codeDir",
            )
        return found, ""


def secrets_of(configs: Configs, job: Job) -> Mapping[str, Any]:
    """What the commands of a job's tasks are filled with when they start, if they ask for any."""
    asks = job.spec.openpai is not None and any(uses_secrets(role.command) for role in job.spec.roles)
    try:
        return configs.secrets(job.id) if asks else {}
    except ConfigError as error:
        raise RefusedError(error.message) from None


def notes_of(configs: Configs, job: Job) -> Sequence[str]:
    """What a job of OpenPAI asks for and does not get."""
    try:
        return configs.get(job.id).warnings if job.spec.openpai is not None else ()
    except NotFoundError:
        return ()


def meant_in(tree: Pfs, user: User, path: str) -> str:
    """The path of the PFS that a path of HDFS means to a user; "": none."""
    view = hdfspath.View(user=user.name, datacenter=tree.datacenters[0], shared=list(shared_in(tree, user)))
    return hdfspath.locate(path, view).pfs


def shared_in(tree: Pfs, user: User) -> dict[str, str]:
    """The shared folders of the first datacenter that a user sees, by name."""
    found = tree.list(Who(user=user.name), pfs.shared(tree.datacenters[0], ""), limit=PAGE).items
    return {folder.path.rpartition("/")[2]: folder.path for folder in found}


def _json(text: str) -> object | None:
    """The value, if a text is JSON; a file in JSON may have tabs in it, which YAML does not take."""
    try:
        return json.loads(text) if text.lstrip()[:1] == "{" else None
    except (ValueError, RecursionError):
        return None


def _named(value: object, key: str, name: str) -> object:
    return {**value, key: name} if name and isinstance(value, dict) else value
