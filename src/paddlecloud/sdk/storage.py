"""Calls about storage of one's own, which jobs bring their files from and send their results to."""

from __future__ import annotations

from paddlecloud.model.bos import StorageKey, StorageKeyRequest
from paddlecloud.sdk.http import Http


class Storage:
    """`client.storage`: keys to buckets of one's own."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def add_key(self, url: str, key_id: str, secret: str) -> StorageKey:
        """Hand over the key to `<bucket>.<region>.bcebos.com/dir` for a job that names its id (`storage_key`).

        The server keeps it, encrypted, until the job's results are in the bucket; nobody reads it back.
        """
        asked = StorageKeyRequest(url=url, key_id=key_id, secret=secret)
        return self._http.send(StorageKey, "POST", "/v1/storage_keys", asked)
