"""Fresh records on every kind of database, a fresh store of files of every kind, and a local backend, for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.files.base import Store
from paddlecloud.files.local import LocalStore
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.contract.local import Room
from tests.contract.webhdfs_face import WebHdfsFace, serving
from tests.hdfs import Hdfs
from tests.migrated import migrated
from tests.postgres import Postgres
from tests.s3 import S3Server

KINDS = ["sqlite", "postgres"]
STORES = ["local", "s3", "hdfs", "webhdfs"]


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the store under test is; a database of another kind joins the contract by its name above."""
    if request.param == "sqlite":
        yield migrated(tmp_path / "paddlecloud.db")
    else:
        postgres: Postgres = request.getfixturevalue("postgres")
        with postgres.emptied() as url:
            yield url


@pytest.fixture(params=KINDS)
def new_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database that has nothing in it yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'new.db'}"
    else:
        postgres: Postgres = request.getfixturevalue("postgres")
        with postgres.database() as url:
            yield url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database.open(database_url)
    yield opened
    opened.close()


@pytest.fixture
def jobs(database: Database) -> Jobs:
    return Jobs(database)


@pytest.fixture
def users(database: Database, tmp_path: Path) -> Users:
    return Users(database, Cipher(tmp_path / "key"))


@pytest.fixture(scope="session")
def webhdfs_face(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebHdfsFace]:
    """One server of ours for all tests of this process, which speaks WebHDFS."""
    with serving(tmp_path_factory.mktemp("webhdfs") / "data") as made:
        yield made


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """The store of files under test, empty; one of another kind joins the contract by its name above."""
    if request.param == "local":
        return LocalStore(tmp_path / "store")
    if request.param == "hdfs":
        cluster: Hdfs = request.getfixturevalue("hdfs_cluster")
        return cluster.store()
    if request.param == "webhdfs":
        face: WebHdfsFace = request.getfixturevalue("webhdfs_face")
        return face.store()
    server: S3Server = request.getfixturevalue("s3_server")
    return server.store()


@pytest.fixture(params=[True, False], ids=["isolated", "bare"])
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Room]:
    """A local backend whose tasks are kept apart by namespaces, and one that has to do without."""
    with Room(tmp_path, isolated=request.param) as room:
        yield room
