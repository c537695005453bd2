"""The contract of the numbers of tasks' accounts: each is given out once, and kept."""

from __future__ import annotations

from paddlecloud.store.db import Database
from paddlecloud.store.task_accounts import TaskAccountNumbers


def test_an_owner_keeps_its_number_and_no_other_gets_it(database: Database) -> None:
    numbers = TaskAccountNumbers(database)
    assert numbers.last() is None
    given = [numbers.number(owner) for owner in ("user/ann", "user/bob", "share/local/lab", "user/ann")]
    assert given == [0, 1, 2, 0]
    again = TaskAccountNumbers(database)
    assert [again.number(owner) for owner in ("user/bob", "user/new", "user/ann")] == [1, 3, 0]
    assert again.last() == 3
