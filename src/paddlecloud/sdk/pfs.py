"""The PFS for programs: list, bring, send, make, move and remove files of `/pfs/<datacenter>/home/<user>/…`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from paddlecloud.model import pfs
from paddlecloud.model.errors import InvalidError, NotFoundError
from paddlecloud.model.transfers import Datacenter, FileEntry, FilePage, FolderRequest, MoveRequest
from paddlecloud.model.tree import Kind
from paddlecloud.sdk.exchange import Progress
from paddlecloud.sdk.fetch import Fetched, fetch
from paddlecloud.sdk.http import Http
from paddlecloud.sdk.put import Sent, put

_PAGE = 5000


class Pfs:
    def __init__(self, http: Http) -> None:
        self._http = http

    def datacenters(self) -> Sequence[Datacenter]:
        """The datacenters of the server, with your home in each; the first one has the results of jobs."""
        return self._http.get(list[Datacenter], "/v1/datacenters")

    def list(self, path: str, *, recursive: bool = False) -> Iterator[FileEntry]:
        """What is in a folder, by name, or with `recursive` all below it; a file is listed itself."""
        query = {"recursive": recursive or None, "limit": _PAGE}
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
        """Remove a file; a folder only if `recursive`."""
        self._http.request("DELETE", f"/v1/files{_normal(path)}", query={"recursive": recursive or None})

    def move(self, source: str, target: str) -> FileEntry:
        """Rename a file or a folder within a datacenter."""
        return self._http.send(FileEntry, "POST", "/v1/moves", MoveRequest(source=source, target=target))

    def put(self, local: str | Path, path: str, *, progress: Progress | None = None) -> Sent:
        """Send a file to this very path, or all that is in a folder below it. To resume, call it again."""
        return put(self._http, Path(local), _normal(path), progress)

    def get(self, path: str, local: str | Path, *, progress: Progress | None = None) -> Fetched:
        """Bring a file to this very name, or all that is in a folder into the folder `local`."""
        path = _normal(path)
        entries = list(self.list(path, recursive=True))
        is_file = len(entries) == 1 and entries[0].path == path and entries[0].kind is not Kind.FOLDER
        if is_file and entries[0].kind is Kind.LINK:
            raise InvalidError(f"{path} is a link, and links are not followed")
        return fetch(self._http, entries, path, Path(local), progress)


def _normal(path: str) -> str:
    """Made normal before it is sent: what lies between may take `..` for itself."""
    return "/" + "/".join(pfs.normal(path))


__all__ = ["Fetched", "Pfs", "Sent"]
