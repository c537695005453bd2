"""Jobs of OpenPAI for programs: a file of either protocol as it is, and the code beside it sent as VS Code does."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paddlecloud.model import hdfspath
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.openpai import v1, v2, vscode
from paddlecloud.model.openpai.submitted import OpenPaiJob, OpenPaiRequest
from paddlecloud.sdk.bundle import Source
from paddlecloud.sdk.client import Client
from paddlecloud.sdk.exchange import Progress
from paddlecloud.sdk.put import Sent, put_sources, source_of

_SETTINGS = ".vscode/settings.json"
_MOST_BYTES = 2_000_000


class JobFile:
    """A file that is a job of OpenPAI, and what is to be done with it."""

    def __init__(self, path: Path, text: str, value: Mapping[str, Any]) -> None:
        self.path = path
        self.folder = path.resolve().parent
        self._text = text
        self._value = value
        self.is_v1 = v1.is_v1(value)
        self.settings = self._read_settings()

    def submit(self, client: Client, *, name: str = "", progress: Progress | None = None) -> OpenPaiJob:
        """Send its code, if it names a place for it, and submit it; `name` takes the place of its own."""
        if not self.is_v1:
            v2.job(self._value)
            return _submit(client, self._text, name)
        user = _user(client)
        value = self.named(user, name)
        v1.job(value, user=user)
        if self.settings.upload and (path := vscode.code_path(value.get("codeDir"))):
            self.send(client, path, progress)
        return _submit(client, json.dumps(value, indent=4, ensure_ascii=False), "")

    def named(self, user: str, name: str = "") -> dict[str, Any]:
        """The job in JSON under the name that it is submitted by."""
        own = str(self._value.get("jobName", ""))
        if not name:
            name = f"{own}_{secrets.token_hex(4)}" if self.settings.generate_name else own
        return vscode.prepared(self._value, user=user, name=name)

    def send(self, client: Client, path: str, progress: Progress | None = None) -> Sent:
        """Send the files that its settings name to a path of the file system that OpenPAI's jobs know."""
        target = _in_pfs(client, path)
        client.pfs.make_folder(target)
        return put_sources(client.http, [(source, f"{target}/{source.path}") for source in self.sources()], progress)

    def sources(self) -> list[Source]:
        """The files that go along: all below its folder that its settings do not leave out, but the file itself."""
        own = self.path.resolve()
        found = [file for file in _files(self.folder) if self.settings.sends(file) and self.folder / file != own]
        return [source_of(self.folder / file, file) for file in found]

    def _read_settings(self) -> vscode.Settings:
        try:
            return vscode.read_settings((self.folder / _SETTINGS).read_text("utf-8-sig"))
        except (FileNotFoundError, NotADirectoryError):
            return vscode.Settings()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidError(f"{self.folder / _SETTINGS} cannot be read: {error}") from None


def read(path: Path) -> JobFile | None:
    """The file, if it is a job of OpenPAI, which its content tells."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
    value = _value(text)
    return JobFile(path, text, value) if isinstance(value, dict) and (v1.is_v1(value) or v2.is_v2(value)) else None


def _value(text: str) -> object:
    from paddlecloud import yamltext

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return yamltext.read(text)
    except InvalidError:
        return None


def _submit(client: Client, text: str, name: str) -> OpenPaiJob:
    return client.http.send(OpenPaiJob, "POST", "/v1/openpai/jobs", OpenPaiRequest(text=text, name=name))


def _user(client: Client) -> str:
    """Whom the server takes us for: a profile with a token need not say."""
    return client.pfs.datacenters()[0].home.rpartition("/")[2]


def _in_pfs(client: Client, path: str) -> str:
    """Where a path of HDFS is: a home in the first datacenter, or a folder that is shared there."""
    first, user = client.pfs.datacenters()[0], _user(client)
    top = path.strip("/").partition("/")[0]
    view = hdfspath.View(user=user, datacenter=first.name, shared=() if top == user else (top,))
    found = hdfspath.locate(path, view).pfs
    if not found:
        raise InvalidError(f"codeDir {path[:200]!r} is no path of a folder", field="codeDir")
    return found


def _files(folder: Path) -> Iterator[str]:
    """The plain files below a folder, by name; links are not followed."""
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in (".git", "__pycache__", "node_modules", ".venv"))
        for name in sorted(files):
            whole = Path(top) / name
            if whole.is_file() and not whole.is_symlink():
                yield whole.relative_to(folder).as_posix()
