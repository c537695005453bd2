"""OpenPAI's VS Code client 0.3.2, request by request, as it was recorded (spec, section 1); raises where it would fail.

Its own calls are of `request` 2.88, its lists of the SDK, its files of npm's `webhdfs` 1.2.0, which knows http alone,
hangs for ever on anything but a redirect after a create, and takes only some statuses for errors.
"""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import urllib3

_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_ICONS = ("SUCCEEDED", "FAILED", "WAITING", "STOPPED", "RUNNING", "UNKNOWN", "STOPPING")
_HDFS_ERRORS = (400, 401, 402, 403, 404, 500)


class FallsOverError(Exception):
    """The real client would show an error, hang or give up here."""


class VsCode:
    def __init__(self, host: str, user: str, password: str, address: str = "127.0.0.1") -> None:
        """`address` is of the machine that it runs on."""
        self.host = host
        self.user = user
        self._password = password
        self._pool = urllib3.PoolManager(retries=False, timeout=30.0, source_address=(address, 0))
        self._token = ""
        self.cluster: dict[str, Any] = {}

    def add_cluster(self) -> None:
        """Row 1 to 5 of adding a cluster by its host."""
        health = self._pool.request("GET", f"http://{self.host}/healthz")
        if not 200 <= health.status < 300:
            raise FallsOverError("it takes this for a server of many ports")
        self.cluster = {
            "rest_server_uri": f"{self.host}/rest-server",
            "webhdfs_uri": f"{self.host}/webhdfs/api/v1",
            "web_portal_uri": self.host,
            "protocol_version": "2",
        }
        # The SDK logs in before it asks for anything, here with nothing.
        empty = self._form("POST", "/api/v2/authn/basic/login", {"expiration": "4000", "password": "", "username": ""})
        if empty.status != 400:
            raise FallsOverError(f"an empty log-in gives {empty.status}")
        probed = self._rest("GET", "/api/v2/jobs/protocolversion/config")
        if probed.json().get("code") == "NoApiError":
            self.cluster["protocol_version"] = "1"

    def token(self) -> str:
        """Of its own calls; kept for an hour."""
        if not self._token:
            sent = {"username": self.user, "password": self._password, "expiration": "4000"}
            answer = self._form("POST", "/api/v1/token", sent)
            if answer.status != 200:
                raise FallsOverError(answer.json()["message"])
            self._token = answer.json()["token"]
        return self._token

    def submit_v1(self, job: dict[str, Any], folder: Path, patterns: tuple[str, ...], *, generate_name: bool) -> str:
        """Upload what is in a folder and submit a job of the first protocol; its name."""
        job = json.loads(json.dumps(job))
        if generate_name:
            job["jobName"] = f"{job['jobName']}_{secrets.token_hex(4)}"
        else:
            self.check_name(job["jobName"])
        self._substitute(job)
        self._upload(job["codeDir"].replace("$PAI_DEFAULT_FS_URI", "", 1), folder, patterns)
        body = urlencode(bracketed(job), quote_via=quote)
        headers = {**_FORM, "Authorization": f"Bearer {self.token()}"}
        answer = self._rest("POST", f"/api/v1/user/{self.user}/jobs", body, headers)
        if not 200 <= answer.status < 300:
            raise FallsOverError(answer.json()["message"])
        return str(job["jobName"])

    def submit_v2(self, text: str, name: str) -> None:
        self.check_name(name)
        headers = {"Content-Type": "text/yaml", "Authorization": f"Bearer {self.token()}"}
        answer = self._rest("POST", "/api/v2/jobs", text, headers)
        if not 200 <= answer.status < 300:
            raise FallsOverError(answer.json()["message"])

    def check_name(self, name: str) -> None:
        """404 with NoJobError is a free name, 200 one that is taken; anything else ends the submission."""
        headers = {"Authorization": f"Bearer {self.token()}"}
        answer = self._rest("GET", f"/api/v1/user/{self.user}/jobs/{name}", None, headers)
        if answer.status == 200:
            raise FallsOverError(f"{name} already exists")
        if answer.status != 404 or answer.json()["code"] != "NoJobError":
            raise FallsOverError(f"{answer.status} {answer.data!r}")

    def list_jobs(self) -> list[dict[str, Any]]:
        """The view of jobs: a new log-in each time, then the list; if that fails, the older one without a token."""
        sent = {"expiration": "4000", "password": self._password, "username": self.user}
        made = self._form("POST", "/api/v2/authn/basic/login", sent)
        headers = {"Authorization": f"Bearer {made.json().get('token')}", "Content-Type": "application/json"}
        answer = self._rest("GET", "/api/v2/jobs", None, headers)
        if answer.status != 200:
            answer = self._rest("GET", "/api/v1/jobs")
        found: list[dict[str, Any]] = answer.json()
        for job in found:
            if job["state"] not in _ICONS or not job["name"] or not job["username"]:
                raise FallsOverError(str(job))
        return found

    def state(self, name: str) -> str:
        return next(str(job["state"]) for job in self.list_jobs() if job["name"] == name)

    def view(self, name: str) -> str:
        """The address that it opens in a browser."""
        if self._pool.request("GET", f"http://{self.host}/view.html").status < 400:
            raise FallsOverError("it takes this for a newer portal")
        return f"http://{self.host}/job-detail.html?{urlencode({'username': self.user, 'jobName': name})}"

    def _substitute(self, job: dict[str, Any]) -> None:
        """The first of each variable in each path and command."""
        meanings = {"$PAI_JOB_NAME": job["jobName"], "$PAI_USER_NAME": self.user}
        for place in (job, *job["taskRoles"]):
            for field in ("codeDir", "outputDir", "dataDir", "authFile", "command"):
                for variable, meaning in meanings.items():
                    if isinstance(place.get(field), str):
                        place[field] = place[field].replace(variable, meaning, 1)

    def _upload(self, target: str, folder: Path, patterns: tuple[str, ...]) -> None:
        files = sorted({file for pattern in patterns for file in folder.glob(pattern) if file.is_file()})
        for file in files:
            path = f"{target}/{file.relative_to(folder).as_posix()}"
            self.make_folder(path.rpartition("/")[0])
            self.write_file(path, file.read_bytes())

    def make_folder(self, path: str) -> None:
        """From the leaf up until one is there, then down again."""
        missing = []
        while not self._exists(path):
            missing.append(path)
            path = path.rpartition("/")[0]
            if not path:
                if not self._exists("/"):
                    raise FallsOverError("there is no root")
                break
        for one in reversed(missing):
            made = self._hdfs("PUT", one, op="mkdirs", permission="0755")
            if made.status != 200 or made.json() != {"boolean": True}:
                raise FallsOverError(made.data.decode())

    def write_file(self, path: str, content: bytes) -> None:
        self._exists(path)
        headers = {"content-type": "application/octet-stream", "Content-Length": "0"}
        begun = self._hdfs("PUT", path, headers=headers, op="create", overwrite="true", permission="0755")
        if begun.status not in (301, 307) or "Location" not in begun.headers:
            raise FallsOverError(f"it hangs for ever: {begun.status} {begun.data!r}")
        address = begun.headers["Location"]
        if urlsplit(address).scheme != "http":
            raise FallsOverError("it speaks http alone")
        pieces = [content[:3], content[3:]] if len(content) > 3 else [content]
        sent = self._pool.request("PUT", address, body=iter(pieces), headers={"content-type": headers["content-type"]})
        if sent.status != 201:
            raise FallsOverError(f"{sent.status} {sent.data!r}")

    def list_folder(self, path: str) -> list[str]:
        answer = self._hdfs("GET", path, op="liststatus")
        if answer.status != 200:
            raise FallsOverError(answer.json()["RemoteException"]["message"])
        return [one["pathSuffix"] for one in answer.json()["FileStatuses"]["FileStatus"]]

    def read_file(self, path: str) -> bytes:
        answer = self._hdfs("GET", path, op="open")
        if answer.status in (301, 307):
            answer = self._pool.request("GET", answer.headers["Location"])
        if answer.status != 200:
            raise FallsOverError(answer.json()["RemoteException"]["message"])
        return answer.data

    def _exists(self, path: str) -> bool:
        answer = self._hdfs("GET", path, op="getfilestatus")
        if answer.status == 200:
            return True
        if (
            answer.status not in _HDFS_ERRORS
            or answer.json()["RemoteException"]["exception"] != "FileNotFoundException"
        ):
            raise FallsOverError(f"{answer.status} {answer.data!r}")
        return False

    def _hdfs(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **query: str
    ) -> urllib3.BaseHTTPResponse:
        """Over http, whatever the cluster says."""
        address = f"http://{self.cluster['webhdfs_uri']}{quote(path)}?{urlencode({**query, 'user.name': self.user})}"
        return self._pool.request(method, address, headers=headers or {}, redirect=False)

    def _form(self, method: str, path: str, fields: dict[str, str]) -> urllib3.BaseHTTPResponse:
        return self._rest(method, path, urlencode(fields), {**_FORM, "Accept": "application/json"})

    def _rest(
        self, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None
    ) -> urllib3.BaseHTTPResponse:
        uri = self.cluster["rest_server_uri"]
        return self._pool.request(method, f"http://{uri}{path}", body=body, headers=headers or {})


def bracketed(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """An object as `request` writes a form: text throughout, null is nothing, empty lists vanish."""
    if isinstance(value, dict):
        return [
            pair for key, one in value.items() for pair in bracketed(one, f"{prefix}[{key}]" if prefix else str(key))
        ]
    if isinstance(value, list):
        return [pair for number, one in enumerate(value) for pair in bracketed(one, f"{prefix}[{number}]")]
    text = "" if value is None else json.dumps(value) if isinstance(value, bool) else str(value)
    return [(re.sub(r"\s", " ", prefix), text)]
