"""What reading a job of OpenPAI gives: the job, what is to be shown of it again, and what must not be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from paddlecloud.model.job import Job, JobSpec

FACE = "openpai"  # in JobSpec.face: names of such jobs tell them apart
MASKED = "******"
FS_URI = "$PAI_DEFAULT_FS_URI"
RETRIES = 100  # the most that a job or a task may ask for
ROLE_CHARACTERS = 63
TRANSIENT = 100  # so often is a job started again for what was not its fault; in OpenPAI, without end


class OpenPaiRequest(Struct, frozen=True, kw_only=True):
    """A job as its file has it: JSON of the first protocol, or YAML of the second."""

    text: str
    name: str = ""  # takes the place of its own


class OpenPaiJob(Struct, frozen=True, kw_only=True):
    """The job that such a file has become, and what of the file is not done."""

    job: Job
    warnings: tuple[str, ...] = ()


class Submitted(Struct, frozen=True, kw_only=True):
    """A job as it was understood.

    `spec` names no cluster, no queue and no inputs yet: what `virtual_cluster` and `code_dir` mean only a server knows.
    """

    spec: JobSpec
    virtual_cluster: str
    code_dir: str = ""  # with its variables replaced, but for $PAI_DEFAULT_FS_URI at its beginning; "": none
    config: Mapping[str, Any]  # as it was written, without its secrets
    secrets: Mapping[str, Any] = field(default_factory=dict)  # what <% $secrets.… %> in commands stands for
    storages: Mapping[str, str] = field(default_factory=dict)  # where each is to be in the tasks -> its name
    warnings: tuple[str, ...] = ()  # what it asks for and does not get

    @property
    def protocol(self) -> int:
        return self.spec.openpai.protocol if self.spec.openpai is not None else 2
