"""Settings of the faces of other systems: OpenPAI's API and WebHDFS."""

from __future__ import annotations

from dataclasses import dataclass

from paddlecloud.server import kinds
from paddlecloud.server.kinds import setting

OFF, TASKS, LOGINS = "off", "tasks", "logins"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPaiSettings:
    code_limit: int = setting(200_000_000, kinds.size, "Largest codeDir that a job may name.")
    fs_uri: str = setting(
        "", kinds.text, "What $PAI_DEFAULT_FS_URI stands for in jobs; empty: hdfs://<this server>:9000."
    )
    open_lists: bool = setting(
        False,
        kinds.yes_or_no,
        "Show everybody's jobs to whoever asks by OpenPAI's first API, without a login, as OpenPAI did.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebHdfsSettings:
    plain: str | None = setting(
        None,
        kinds.choice(OFF, TASKS, LOGINS),
        "Whose user.name alone is believed: nobody's (off), tasks', or logins'; left out: tasks, and logins on an "
        "embedded server.",
    )
