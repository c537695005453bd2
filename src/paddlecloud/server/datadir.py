"""The data folder: one owner, one server, and the files by which a client on the same machine finds that server.

It holds keys and everybody's files, so it is refused when another user could have prepared it; a lock that dies with
its process keeps a second server out.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from paddlecloud.model.errors import ConfigError
from paddlecloud.model.wire import builtins
from paddlecloud.server.certificate import Certificate


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Every path in a data folder."""

    root: Path

    @property
    def database(self) -> Path:
        return self.root / "paddlecloud.db"

    @property
    def key(self) -> Path:
        return self.root / "key"

    @property
    def backups(self) -> Path:
        return self.root / "backups"

    @property
    def files(self) -> Path:
        return self.root / "files"

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def pfs(self) -> Path:
        """Datacenters that have no place of their own, by name."""
        return self.root / "pfs"

    @property
    def drafts(self) -> Path:
        """Files on their way into the PFS, on its disk."""
        return self.root / "pfs" / ".drafts"

    @property
    def environments(self) -> Path:
        """Virtual environments of jobs, by user."""
        return self.root / "environments"

    @property
    def buckets(self) -> Path:
        """Files that live jobs have from buckets of their users' own, by job."""
        return self.root / "buckets"

    @property
    def tasks(self) -> Path:
        return self.root / "tasks"

    @property
    def marks(self) -> Path:
        return self.root / "marks"

    @property
    def log(self) -> Path:
        """What an embedded server says."""
        return self.root / "server.log"

    @property
    def outbox(self) -> Path:
        """Mail that is still to be sent."""
        return self.root / "outbox"

    @property
    def server(self) -> Path:
        """Says where the server is while it runs."""
        return self.root / "server.json"

    @property
    def embedded(self) -> Path:
        """The access key of an embedded server's own user."""
        return self.root / "embedded.json"

    @property
    def shared(self) -> Path:
        """Says by which command a server of several users was started here."""
        return self.root / "shared.json"

    @property
    def clock(self) -> Path:
        """What this machine's clocks said last, by which a clock that was set is noticed."""
        return self.root / "clock.json"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def last_port(self) -> int:
        """The port that the server had the last time; 0 where that is not known."""
        found = read_private(self.root / "port.json").get("port")
        return found if isinstance(found, int) and 0 < found < 2**16 else 0

    def remember_shared(self, command: str) -> None:
        write_private(self.shared, {"command": command})

    def remember_port(self, port: int) -> None:
        if port != self.last_port:
            write_private(self.root / "port.json", {"port": port})


@contextmanager
def hold(root: Path) -> Iterator[DataFolder]:
    """The data folder, made if need be, for this process alone."""
    _prepare(root)
    folder = DataFolder(root)
    lock = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _take(lock, root)
        yield folder
    finally:
        os.close(lock)


def refuse_shared(folder: DataFolder) -> None:
    """Refuse to serve, as one person's own, records that several users share: their limits would not hold there."""
    if command := read_private(folder.shared).get("command"):
        raise ConfigError(
            f"the data folder {folder.root} is that of a shared server: start it with {command}, or remove "
            f"{folder.shared} to have it for yourself"
        )


@contextmanager
def announced(
    folder: DataFolder, *, url: str, started_at: datetime, version: str, certificate: Certificate | None = None
) -> Iterator[None]:
    """Tell clients on this machine where the server is, and what it shows them, for as long as it is there.

    They cannot check its certificate by its name, which is not that of this machine's own address.
    """

    def write() -> None:
        said = {"url": url, "pid": os.getpid(), "started_at": started_at, "version": version}
        write_private(folder.server, said | ({"fingerprint": certificate.pair.fingerprint} if certificate else {}))

    write()
    if certificate is not None:
        certificate.on_renewal = write
    try:
        yield
    finally:
        folder.server.unlink(missing_ok=True)


def write_private(path: Path, values: Mapping[str, object]) -> None:
    """Write a JSON file that its owner alone can read, whole or not at all."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        json.dump(builtins(values), file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)


def read_private(path: Path) -> dict[str, object]:
    """What `write_private` wrote; nothing where there is no such file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def check_owner(root: Path) -> None:
    """Raise ConfigError for the folder of another account, in which our files would be closed to that one."""
    owner = root.stat().st_uid
    if owner != os.geteuid():
        raise ConfigError(
            f"the data folder {root} belongs to user id {owner}, not to you ({os.geteuid()}): "
            "name one of your own by server.data or PADDLECLOUD_DATA, or become that user"
        )


def _prepare(root: Path) -> None:
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = root.stat()
    except OSError as error:
        raise ConfigError(
            f"cannot make the data folder {root}: {error.strerror}; name another by server.data or PADDLECLOUD_DATA"
        ) from None
    check_owner(root)
    if stat.S_IMODE(found.st_mode) != 0o700:
        root.chmod(0o700)


def _take(lock: int, root: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 20, 0).decode("ascii", "replace").strip() or "unknown"
        raise ConfigError(
            f"a server (pid {holder}) uses the data folder {root} already: "
            "talk to that one, stop it, or name another folder by PADDLECLOUD_DATA"
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
