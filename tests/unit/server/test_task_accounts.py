"""Accounts that tasks run as: the range of the config, and when there are none."""

from __future__ import annotations

import os
import pwd
from contextlib import closing
from pathlib import Path

import pytest

from paddlecloud.model.errors import ConfigError
from paddlecloud.server import config
from paddlecloud.server.clusters import view_of
from paddlecloud.server.task_accounts import DEFAULT, TaskAccounts, has_accounts, open_accounts
from paddlecloud.store.db import Database
from paddlecloud.store.task_accounts import TaskAccountNumbers

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="a plain account gives out no accounts by itself")


def test_a_server_of_one_person_runs_tasks_as_that_person(tmp_path: Path) -> None:
    assert not has_accounts(config.parse({}, data=tmp_path, embedded=True))
    assert TaskAccounts().uid("ann") is None


@as_root
def test_each_user_has_an_account_of_the_range(tmp_path: Path) -> None:
    settings = config.parse({"jobs": {"uids": "1950000000-1950000001"}}, data=tmp_path)
    with closing(Database.open(f"sqlite:///{tmp_path}/records.db")) as database:
        accounts = open_accounts(settings, TaskAccountNumbers(database))
        assert [accounts.uid(user) for user in ("ann", "bob", "ann")] == [1950000000, 1950000001, 1950000000]
        with pytest.raises(ConfigError, match=r"jobs.uids has 2 ids, and all are in use"):
            accounts.gid("local", "lab")


@as_root
def test_a_range_that_an_account_of_the_machine_lies_in_is_refused(tmp_path: Path) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    settings = config.parse({"jobs": {"uids": f"{nobody - 10}-{nobody + 10}"}}, data=tmp_path)
    with (
        closing(Database.open(f"sqlite:///{tmp_path}/records.db")) as database,
        pytest.raises(ConfigError, match="overlaps with nobody in /etc/passwd"),
    ):
        open_accounts(settings, TaskAccountNumbers(database))


@pytest.mark.parametrize("uids", ["1-2", "5000", "9000-5000", "1000-99999999999"])
def test_a_range_that_is_none_is_refused(uids: object) -> None:
    with pytest.raises(ConfigError, match=r"jobs.uids = .* must be two numbers above 1000"):
        config.parse({"jobs": {"uids": uids}})


@pytest.mark.parametrize("visible", [["/"], ["data"], ["/data/"], ["/data/../etc"], [7], ["/data:rw:rw/.."]])
def test_a_visible_folder_that_is_no_full_path_is_refused(visible: object) -> None:
    with pytest.raises(ConfigError, match=r"clusters.local.visible = .* must be a list of full paths"):
        config.parse({"clusters": {"local": {"visible": visible}}})


def test_a_visible_folder_that_holds_the_servers_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for shown in (tmp_path, tmp_path.parent, tmp_path / "data/pfs", tmp_path / "link"):
        with pytest.raises(ConfigError, match="a folder of the server with the files of all users"):
            config.parse({"clusters": {"local": {"visible": [f"{shown}:rw"]}}}, data=tmp_path / "data")


def test_an_embedded_server_shows_the_machine_until_somebody_else_has_an_account(tmp_path: Path) -> None:
    plain = {"clusters": {"local": {"visible": ["/data", "/scratch:rw"]}}}
    embedded, shared = (config.parse(plain, data=tmp_path, embedded=embedded) for embedded in (True, False))
    assert view_of(embedded, embedded.clusters["local"], lambda: False).whole_machine
    assert not view_of(embedded, embedded.clusters["local"], lambda: True).whole_machine
    view = view_of(shared, shared.clusters["local"], lambda: False)
    assert not view.whole_machine
    assert (view.visible, view.visible_writable) == ((Path("/data"),), (Path("/scratch"),))


def test_the_default_range_is_above_what_systems_give_out() -> None:
    assert DEFAULT.start > 1_879_048_191  # systemd's containers end here
    assert DEFAULT.stop < 2**31
