"""Servers' settings with some of every kind of record, and what a database holds, to be compared."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path

from msgspec.structs import replace
from sqlalchemy import select, text

from paddlecloud.model.attributes import Attributes
from paddlecloud.model.bos import StorageKeyRequest
from paddlecloud.model.group import GroupRequest
from paddlecloud.model.registry import RegistryRequest
from paddlecloud.model.state import JobState
from paddlecloud.model.task import TaskState
from paddlecloud.model.user import ALL_CLUSTERS, Quota, Role, Scope
from paddlecloud.server import config, upkeep
from paddlecloud.server.datadir import DataFolder
from paddlecloud.server.settings import Settings
from paddlecloud.store import schema
from paddlecloud.store.attributes import FileAttributes, Said
from paddlecloud.store.buckets import Buckets
from paddlecloud.store.configs import Configs
from paddlecloud.store.db import reading
from paddlecloud.store.groups import Groups
from paddlecloud.store.jobs import Idempotency, Jobs
from paddlecloud.store.passes import EndedPasses
from paddlecloud.store.pfs_use import PfsUse
from paddlecloud.store.publications import Publications
from paddlecloud.store.registry import Registries
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.contract.records import NOW, WAY_TO, a_job, a_report, a_task, brought_to
from tests.passwords import give_password

Contents = dict[str, list[tuple[object, ...]]]


def settings_of(data: Path, url: str = "") -> Settings:
    """Of a server whose records are at the URL, or in its data folder."""
    return config.parse({"server": {"database": url}}, data=data)


def url_of(settings: Settings) -> str:
    return settings.server.database or f"sqlite:///{settings.server.data / 'paddlecloud.db'}"


def fill(settings: Settings) -> tuple[str, str]:
    """Add users and jobs of every kind; an access key and its secret."""
    settings.server.data.mkdir(mode=0o700, exist_ok=True)
    with closing(upkeep.open_records(settings, lambda: NOW)) as database:
        users = Users(database, Cipher(DataFolder(settings.server.data).key))
        users.add("张三@163.com", Role.ADMIN, None, NOW)
        give_password(database, "张三@163.com", "right horse")
        users.add("ann", Role.USER, None, NOW + timedelta(microseconds=1))
        users.change("ann", quotas={ALL_CLUSTERS: Quota(running_jobs=2, space_bytes=2**40), "cce": Quota(instances=1)})
        groups = Groups(database)
        groups.add(GroupRequest(name="lab", members=("ann",), queues=("long",), quota=Quota(instances=9)), NOW)
        with database.write() as connection:
            connection.execute(schema.shares.insert(), {"datacenter": "local", "name": "demo", "created_at": NOW})
            grant = {"datacenter": "local", "share": "demo", "group": "lab", "writable": True}
            connection.execute(schema.share_grants.insert(), grant)
        key, sk = users.add_key("ann", NOW)
        EndedPasses(database).end("ann", "0a", expires_at=NOW + timedelta(days=7), now=NOW)
        users.add_token("ann", "laptop", Scope.READ, NOW + timedelta(hours=1), NOW)
        secret = RegistryRequest(name="lab", server="hub.lab:5000", username="ann", password="a password")
        Registries(database, Cipher(DataFolder(settings.server.data).key)).add("ann", secret, NOW)
        buckets = Buckets(database, Cipher(DataFolder(settings.server.data).key))
        bucket = StorageKeyRequest(url="lab.bj.bcebos.com/数据", key_id="ak", secret="sk")
        stored = buckets.add_key("ann", "key-1", bucket, NOW)
        Publications(database).publish("ann", "/pfs/local/home/ann/模型", NOW)
        PfsUse(database).put("ann", "local", size_bytes=2**40, files=3, at=NOW)
        said = Said(
            path="/pfs/local/home/ann/模型", area="/pfs/local/home/ann", version="1", attributes=Attributes(owner="x")
        )
        FileAttributes(database).put(said, NOW)
        jobs = Jobs(database)
        for state in WAY_TO:
            last = brought_to(jobs, state)
        jobs.hide(last.id)
        held = brought_to(jobs, JobState.RUNNING, user="张三@163.com")
        task = a_task(state=TaskState.FAILED, exit_code=1, ended_at=NOW, tail="0.1 € \0 \n\\x '\"")
        jobs.record_tasks({held.handle: a_report(task, a_task("trainer-1"))})
        own = replace(a_job("ann").spec, public_bos=False, bos_url=stored.url, storage_key=stored.id)
        jobs.add(replace(a_job("ann"), spec=own), group="group", idempotency=Idempotency(key="k", body_hash="h"))
        configs = Configs(database, Cipher(DataFolder(settings.server.data).key))
        paper = a_job("ann")
        words = ("gpuType is not looked at", "ü")
        text = configs.written(paper.id, protocol=1, config='{"a": "ü"}', secrets={"a": "b"}, warnings=words)
        jobs.add(paper, group="group", written=text)
        configs.tag(paper.id, "标签")
        with database.write() as connection:
            row = {"at": NOW, "user": "ann", "address": "127.0.0.1", "action": "x", "target": "", "detail": "ü"}
            for _ in range(3):
                connection.execute(schema.audit.insert(), row | {"request_id": "r"})
            connection.execute(schema.audit.delete().where(schema.audit.c.seq == 3))
    return key.ak, sk


def contents(url: str) -> Contents:
    """Every row of every table, and the last number that was given out in each."""
    with reading(url) as (connection, kind):
        found: Contents = {
            table.name: sorted((tuple(row) for row in connection.execute(select(table))), key=repr)
            for table in schema.metadata.sorted_tables
        }
        numbered = [table.name for table in schema.metadata.sorted_tables if "seq" in table.c]
        for name in numbered:
            query = (
                f"SELECT seq FROM sqlite_sequence WHERE name = '{name}'"
                if kind.name == "SQLite"
                else f"SELECT last_value FROM {name}_seq_seq WHERE is_called"
            )
            found[f"last of {name}"] = [tuple(row) for row in connection.execute(text(query))]
    return found
