"""The PFS for programs: list, bring, send, copy, make, move and remove files of `/pfs/<datacenter>/home/<user>/…`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice
from pathlib import Path

from paddlecloud.model import pfs, wire
from paddlecloud.model.errors import FullError, InvalidError, NotFoundError, QuotaError
from paddlecloud.model.transfers import Datacenter, FileEntry, FilePage, FolderRequest, MoveRequest, RoomRequest
from paddlecloud.model.tree import Kind
from paddlecloud.sdk.copy import Copied, copied_to, copy
from paddlecloud.sdk.exchange import Progress
from paddlecloud.sdk.fetch import Fetched, fetch
from paddlecloud.sdk.http import Http
from paddlecloud.sdk.put import Sent, put
from paddlecloud.sdk.shared import Shared

_PAGE = 5000


class Pfs:
    def __init__(self, http: Http) -> None:
        self._http = http

    @cached_property
    def shared(self) -> Shared:
        return Shared(self._http)

    def datacenters(self) -> Sequence[Datacenter]:
        """The datacenters of the server, with your home in each; the first one has the results of jobs."""
        return self._http.get(list[Datacenter], "/v1/datacenters")

    @cached_property
    def names(self) -> Sequence[str]:
        """The names of the datacenters, asked for once."""
        return [one.name for one in self.datacenters()]

    def list(self, path: str, *, recursive: bool = False, limit: int | None = None) -> Iterator[FileEntry]:
        """What is in a folder, by name, or with `recursive` all below it, at most `limit`; a file is listed itself."""
        return islice(self._listed(path, recursive, _PAGE if limit is None else min(limit, _PAGE) or 1), limit)

    def _listed(self, path: str, recursive: bool, page_limit: int) -> Iterator[FileEntry]:
        query = {"recursive": recursive or None, "limit": page_limit}
        cursor: str | None = None
        while True:
            page = self._http.get(FilePage, f"/v1/folders{_normal(path)}", {**query, "cursor": cursor})
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def match(self, pattern: str) -> Sequence[FileEntry]:
        """What a pattern such as `/pfs/local/home/you/part-*` means; a path means itself."""
        return self._http.get(FilePage, f"/v1/matches{_normal(pattern)}").items

    def stat(self, path: str) -> FileEntry | None:
        """What is at a path; None: nothing."""
        try:
            return next(iter(self.match(path)), None)
        except NotFoundError:
            return None

    def make_folder(self, path: str) -> FileEntry:
        """Make a folder, and those above it; one that is there stays as it is."""
        return self._http.send(FileEntry, "POST", "/v1/folders", FolderRequest(path=_normal(path)), repeatable=True)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file; a folder only if `recursive`. What an ended job left goes by its folder, `…/output/<job>`."""
        self._http.request("DELETE", f"/v1/files{_normal(path)}", query={"recursive": recursive or None})

    def move(self, source: str, target: str) -> FileEntry:
        """Rename a file or a folder within a datacenter."""
        return self._http.send(FileEntry, "POST", "/v1/moves", MoveRequest(source=source, target=target))

    def put(self, local: str | Path, path: str, *, progress: Progress | None = None) -> Sent:
        """Send a file to this very path, or all that is in a folder below it. To resume, call it again.

        A folder that is more than you may keep is refused before anything of it is sent.
        """
        path = self._resolved(path)
        return put(self._http, Path(local), path, progress, check=partial(self._check_room, path))

    def copy(self, source: str, target: str, *, progress: Progress | None = None) -> Copied:
        """Copy a file to this very path, or all that is in a folder below it; the server does it, file by file."""
        source, target = self._resolved(source), self._resolved(target)
        if f"{target}/".startswith(f"{source}/"):
            raise InvalidError(f"{source} cannot be copied into itself: {target}", field="target")
        entries = self._whole(source)
        sizes = {copied_to(entry, source, target): entry.size for entry in entries if entry.kind is Kind.FILE}
        self._check_room(target, sizes)
        return copy(self._http, entries, source, target, progress)

    def get(self, path: str, local: str | Path, *, progress: Progress | None = None) -> Fetched:
        """Bring a file to this very name, or all that is in a folder into the folder `local`."""
        path = self._resolved(path)
        return fetch(self._http, self._whole(path), path, Path(local), progress)

    def _whole(self, path: str) -> Sequence[FileEntry]:
        """A file itself, or all that is below a folder."""
        entries = list(self._listed(path, True, _PAGE))
        if len(entries) == 1 and entries[0].path == path and entries[0].kind is Kind.LINK:
            raise InvalidError(f"{path} is a link, and links are not followed")
        return entries

    def _resolved(self, path: str) -> str:
        """The path as the server lists it: with the name of the datacenter."""
        return pfs.locate(path, self.names).path

    def _check_room(self, folder: str, sizes: Mapping[str, int]) -> None:
        """Raise if files of these sizes, by path, are more than may be kept, also when they replace what is there."""
        total = sum(sizes.values())
        try:
            self._ask_room(folder, total)
        except (QuotaError, FullError):
            replaced = self._replaced(folder, sizes)
            if not replaced:
                raise
            self._ask_room(folder, max(0, total - replaced))

    def _ask_room(self, folder: str, size: int) -> None:
        self._http.request("POST", "/v1/room", body=wire.encode(RoomRequest(path=folder, size=size)), repeatable=True)

    def _replaced(self, folder: str, sizes: Mapping[str, int]) -> int:
        there = 0
        with suppress(NotFoundError):
            there = sum(entry.size for entry in self._listed(folder, True, _PAGE) if entry.path in sizes)
        return there


def _normal(path: str) -> str:
    """Made normal before it is sent: what lies between may take `..` for itself."""
    return "/" + "/".join(pfs.normal(path))


__all__ = ["Copied", "Fetched", "Pfs", "Sent"]
