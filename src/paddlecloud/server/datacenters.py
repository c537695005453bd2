"""The PFS of a server, put together: the stores of its datacenters, and what of them a task finds below /pfs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from paddlecloud.backends.base import Mount
from paddlecloud.files import disk
from paddlecloud.files.base import Store
from paddlecloud.files.drafts import Drafts
from paddlecloud.files.local import LocalStore
from paddlecloud.model import pfs as names
from paddlecloud.model.errors import ConfigError, InvalidError, NotFoundError, UnsupportedError
from paddlecloud.model.job import Job, JobSpec
from paddlecloud.model.pfs import Access, Area, Who
from paddlecloud.model.tree import Kind
from paddlecloud.model.user import User
from paddlecloud.runtime import owners, processes
from paddlecloud.runtime.owners import Claim
from paddlecloud.server.attributes import Noted
from paddlecloud.server.copies import Copies
from paddlecloud.server.datadir import DataFolder
from paddlecloud.server.homes import make_output
from paddlecloud.server.incoming import Incoming
from paddlecloud.server.memberships import Memberships
from paddlecloud.server.pfs import Pfs
from paddlecloud.server.quotas import space_of_groups
from paddlecloud.server.room import Room
from paddlecloud.server.settings import HDFS, LOCAL, DatacenterSettings, Settings
from paddlecloud.server.shared import Granted
from paddlecloud.server.task_accounts import TaskAccounts
from paddlecloud.store.groups import Groups
from paddlecloud.store.pfs_use import PfsUse
from paddlecloud.store.users import Users

log = logging.getLogger(__name__)

_DRAFTS_KEPT = timedelta(days=1)
NO_ACCOUNTS = TaskAccounts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """All parts of the PFS, which live as long as the server."""

    stores: Mapping[str, Store]
    outputs: Store
    drafts: Drafts
    room: Room
    pfs: Pfs
    incoming: Incoming
    copies: Copies
    shared: Granted
    accounts: TaskAccounts

    def hand_over(self, users: Sequence[str], shared: Iterable[tuple[str, str]]) -> None:
        """Give homes and shared folders to the accounts that tasks run as. Those that were given before are left as
        they are, so only the first start of a server with such accounts takes long."""
        homes = [(name, f"{names.HOME}/{user}", self.accounts.uid(user)) for name in self.stores for user in users]
        for name, path, uid in homes:
            if uid is not None:
                self._claim(name, path, owners.owned(uid))
        for name, folder in shared:
            if (gid := self.accounts.gid(name, folder)) is not None:
                self._claim(name, names.keeper_of(folder), owners.shared(gid))

    def _claim(self, datacenter: str, path: str, wanted: Claim) -> None:
        root = self.stores[datacenter].folder if datacenter in self.stores else None
        if root is not None and (root / path).is_dir():
            if not wanted.holds((root / path).lstat()):
                log.info("giving %s to the account of its tasks", root / path)
            owners.claim(str(root / path), wanted)

    def mounts(self, job: Job) -> Sequence[Mount]:
        """What a task of this job finds below /pfs, also by its user's own name of the datacenter, and at the paths
        that a job of OpenPAI asks for."""
        found = mounts(self.stores, self.outputs, job.user, self.shared(job.user), self.accounts)
        by_target = {mount.target: mount for mount in found}
        storages = job.spec.openpai.storages.items() if job.spec.openpai is not None else ()
        more = [changed(by_target[path], target=at) for at, path in storages if path in by_target]
        if job.spec.datacenter_alias:
            named, called = (f"/{names.ROOT}/{name}/" for name in (job.spec.datacenter, job.spec.datacenter_alias))
            here = [mount for mount in found if mount.target.startswith(named)]
            more += [changed(mount, target=called + mount.target[len(named) :]) for mount in here]
        return [*found, *more]

    def in_pfs(self, user: User, spec: JobSpec) -> JobSpec:
        """The job with the name of its datacenter, the first if it says none, and the folder that it runs in."""
        known = self.pfs.datacenters
        try:
            datacenter = names.datacenter(spec.datacenter, known) if spec.datacenter else known[0]
        except NotFoundError as error:
            raise InvalidError(error.message, field="datacenter") from None
        package = self._package(user, spec.package) if spec.package else ""
        alias = names.alias(spec.datacenter, known)
        return replace(spec, datacenter=datacenter, datacenter_alias=alias, package=package)

    def _package(self, user: User, path: str) -> str:
        """The normal form of the path of a folder that a job of this user may run in."""
        who = Who(user=user.name)
        place = self.pfs.locate(who, path, Access.READ)
        if place.area is Area.ABOVE or self.pfs.stat(who, path).kind is not Kind.FOLDER:
            raise InvalidError(f"package {place.path} is not a folder that a job can run in", field="package")
        if self.stores[place.datacenter].folder is None:
            raise UnsupportedError(
                f"package {place.path} is in a bucket, which tasks cannot run in: submit the folder itself, or keep it "
                "in a datacenter with a folder",
                field="package",
            )
        return place.path

    def forget_drafts(self, now: datetime) -> None:
        self.drafts.expire((now - _DRAFTS_KEPT).timestamp())


def open_tree(
    settings: Settings,
    folder: DataFolder,
    users: Users,
    use: PfsUse,
    clock: Callable[[], datetime],
    discard: Callable[[str, str], None],
    groups: Groups,
    noted: Noted | None = None,
    accounts: TaskAccounts = NO_ACCOUNTS,
) -> Tree:
    stores = open_stores(settings, folder.pfs)
    outputs = LocalStore(folder.results)
    disk.make_folder(str(folder.pfs))
    drafts = Drafts(folder.drafts, boot=processes.boot_id())
    room = Room(
        users=users,
        use=use,
        stores=stores,
        limit_bytes=settings.pfs.space,
        clock=clock,
        shared=lambda: groups.membership().shared,
        of_groups=lambda user: space_of_groups(groups.membership(), user)[0],
    )
    granted = Granted(groups, Memberships(groups, users))
    pfs = Pfs(stores=stores, outputs=outputs, room=room, discard=discard, shared=granted, noted=noted)
    return Tree(
        stores=stores,
        outputs=outputs,
        drafts=drafts,
        room=room,
        pfs=pfs,
        incoming=Incoming(pfs, drafts),
        copies=Copies(pfs),
        shared=granted,
        accounts=accounts,
    )


def open_stores(settings: Settings, folder: Path) -> dict[str, Store]:
    """The store of each datacenter; `folder` holds those that the config gives no place of their own."""
    return {name: _open(name, datacenter, folder / name) for name, datacenter in settings.datacenters.items()}


def _open(name: str, datacenter: DatacenterSettings, folder: Path) -> Store:
    if datacenter.store != LOCAL:
        return open_elsewhere(name, datacenter)
    root = datacenter.path or folder
    store = LocalStore(root)
    # Closed to the other accounts of this machine, wherever it is.
    for closed in (names.HOME, names.SHARED):
        (root / closed).mkdir(mode=0o700, exist_ok=True)
    return store


def open_elsewhere(name: str, datacenter: DatacenterSettings) -> Store:
    # Imported here: what speaks S3, or WebHDFS, is an extra of its own.
    if datacenter.store == HDFS:
        from paddlecloud.files.hdfs import HdfsStore

        return HdfsStore(datacenter.endpoint, str(datacenter.path), user=datacenter.user)
    from paddlecloud.files.s3 import S3Store

    return S3Store(
        datacenter.bucket,
        endpoint=datacenter.endpoint,
        region=datacenter.region,
        key_id=datacenter.key_id,
        secret=_secret(name, datacenter),
    )


def _secret(name: str, datacenter: DatacenterSettings) -> str:
    file = datacenter.secret_file
    try:
        return file.read_text(encoding="utf-8").strip() if file is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"datacenters.{name}.secret_file {file} cannot be read: {error}") from None


def mounts(
    stores: Mapping[str, Store],
    outputs: Store,
    user: str,
    shared: Mapping[tuple[str, str], bool],
    accounts: TaskAccounts = NO_ACCOUNTS,
) -> Sequence[Mount]:
    """What a task of this user finds below /pfs, the same as its paths mean everywhere else.

    A store that is elsewhere cannot be shown: its files come by the server alone.
    """
    found = []
    for name, store in stores.items():
        if store.folder is None:
            continue
        first = name == next(iter(stores))
        if first:
            make_output(store, f"{names.HOME}/{user}")
        found.append(_mount(store, f"{names.HOME}/{user}", names.home(name, user), writable=True))
        public = [names.public(name), *([f"/{names.ROOT}/{names.PUBLIC}"] if first else [])]
        found += [_mount(store, names.PUBLIC, target, writable=False, public=True) for target in public]
        if first:
            found.append(_mount(outputs, user, f"{names.home(name, user)}/{names.OUTPUT}", writable=False))
        found += [
            _mount(
                store,
                names.keeper_of(folder),
                names.shared(name, folder),
                writable=writable,
                gid=accounts.gid(name, folder),
            )
            for (where, folder), writable in sorted(shared.items())
            if where == name
        ]
    return found


def _mount(
    store: Store, path: str, target: str, *, writable: bool, gid: int | None = None, public: bool = False
) -> Mount:
    store.make_folder(path)
    if store.folder is None:
        raise ConfigError(f"{target} is not on this machine")
    return Mount(source=store.folder / path, target=target, writable=writable, gid=gid, public=public)
