"""The audit record: who did what, when, from where. It names things and never holds a secret."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class Action(StrEnum):
    """Everything that is recorded, with what its `target` is. What comes after a dot is asked for by what is before."""

    LOGIN = "login"  # the user
    LOGIN_REFUSED = "login.refused"  # the user whose name was given; empty if there is none of that name
    GEN_TOKEN = "gen_token"  # the address of mail that a key was asked for
    GEN_TOKEN_REFUSED = "gen_token.refused"  # such an address that gets none
    MAIL_SENT = "mail.sent"  # the address
    MAIL_REFUSED = "mail.refused"  # the address that the mail server would not have
    USER_ADD = "user.add"  # the user
    USER_CHANGE = "user.change"  # the user
    GROUP_ADD = "group.add"  # the group
    GROUP_CHANGE = "group.change"  # the group
    GROUP_REMOVE = "group.remove"  # the group
    GROUP_JOIN = "group.join"  # the group that a user is in from now on; several: the only ones
    GROUP_LEAVE = "group.leave"  # the group that a user is in no more
    SHARE_ADD = "share.add"  # the path of the shared folder
    SHARE_GRANT = "share.grant"  # its path
    SHARE_REVOKE = "share.revoke"  # its path
    SHARE_REMOVE = "share.remove"  # its path
    KEY_CREATE = "key.create"  # the ak
    KEY_REVOKE = "key.revoke"  # the ak
    TOKEN_CREATE = "token.create"  # the token's id
    TOKEN_REVOKE = "token.revoke"  # the token's id
    TOKEN_REVOKE_OLD = "token.revoke_old"  # the user whose old clients must log in again
    WEBHDFS_SHOW = "webhdfs.show"  # the user whose secret address was shown
    REGISTRY_ADD = "registry.add"  # the registry's name
    REGISTRY_DELETE = "registry.delete"  # the registry's name
    FILE_PUBLISH = "file.publish"  # the path that anybody may read by its address from now on
    FILE_UNPUBLISH = "file.unpublish"  # the path that is read by its address no longer
    STORAGE_KEY_ADD = "storage_key.add"  # the key's id
    JOB_SUBMIT = "job.submit"  # the job
    JOB_KILL = "job.kill"  # the job
    JOB_HIDE = "job.hide"  # the job that is out of the lists now
    RETENTION = "retention"  # what was deleted by age or size
    DB_RESTORE = "db.restore"  # the backup
    SERVER_START = "server.start"  # the data folder
    SERVER_STOP = "server.stop"  # the data folder


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One act. `user` is empty where nobody had said who they are, or the server itself acted."""

    at: datetime
    action: Action
    target: str = ""
    user: str = ""
    address: str = ""
    request_id: str = ""
    detail: str = ""
    seq: int = 0


class AuditPage(Struct, frozen=True, kw_only=True):
    """Some of what was done, newest first; `next_cursor` asks for what was before, None: there is no more."""

    items: tuple[AuditEntry, ...]
    next_cursor: str | None = None
