"""Nothing happens to a job that its history does not tell: one file makes moves, and one folder writes records."""

from __future__ import annotations

import ast

from tests.architecture.sources import names_used, python_files, shown, tree_of


def test_the_store_of_jobs_alone_applies_moves() -> None:
    callers = {
        shown(file)
        for file in python_files("src")
        for _, name in names_used(file)
        if name == "paddlecloud.model.lifecycle.apply"
    }
    assert callers == {"src/paddlecloud/store/jobs.py"}


def test_jobs_and_their_history_are_written_where_moves_are_made() -> None:
    assert _writers("insert", "update") == {"src/paddlecloud/store/jobs.py"}


def test_jobs_and_their_history_are_deleted_in_one_place() -> None:
    assert _writers("delete") == {"src/paddlecloud/store/retention.py"}


def _writers(*verbs: str) -> set[str]:
    return {
        shown(file)
        for file in python_files("src")
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in verbs
        and node.args
        and ast.unparse(node.args[0]) in {"job_table", "history_table", "jobs", "history"}
    }
