"""Every row of the table of verdicts, and what stands before what."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.backends.slurmstate import CANCELLED, ENDED, FORGOTTEN, WAITING
from paddlecloud.backends.slurmverdict import TABLE, Known, Verdict, judge

RUNNING = ("RUNNING", "COMPLETING", "SUSPENDED", "WHATEVER")
BEGUN = {"begun": True}
AWAITED = {"begun": True, "words_awaited": True}


@pytest.mark.parametrize(
    ("verdict", "state", "more"),
    [
        (Verdict.NOT_SEEN, None, {}),
        (Verdict.NOT_SEEN, None, {"stopped": True, "all_ended": True}),
        *((Verdict.WAITS, state, {}) for state in sorted(WAITING)),
        (Verdict.WAITS, "PENDING", {"stopped": True}),
        (Verdict.AS_TOLD, "RUNNING", {**BEGUN, "stopped": True, "all_ended": True}),
        (Verdict.AS_TOLD, CANCELLED, {**AWAITED, "stopped": True, "all_ended": True}),
        (Verdict.AS_TOLD, "PENDING", {**BEGUN, "stopped": True, "all_ended": True}),
        *((Verdict.ENDING, state, AWAITED) for state in sorted(ENDED | {FORGOTTEN})),
        *((Verdict.ENDING, state, {"words_awaited": True}) for state in sorted(ENDED - {CANCELLED} | {FORGOTTEN})),
        (Verdict.ENDING, "PENDING", AWAITED),
        (Verdict.ENDING, "TIMEOUT", {**AWAITED, "stopped": True}),
        (Verdict.PUT_BACK, "PENDING", BEGUN),
        (Verdict.PUT_BACK, "REQUEUED", {**AWAITED, "all_ended": True}),
        (Verdict.OVER, CANCELLED, {"words_awaited": True}),
        *((Verdict.OVER, state, BEGUN) for state in sorted(ENDED | {FORGOTTEN})),
        *((Verdict.OVER, state, {**AWAITED, "all_ended": True}) for state in sorted(ENDED)),
        (Verdict.OVER, "TIMEOUT", {**BEGUN, "stopped": True}),
        *((Verdict.RUNS, state, more) for state in RUNNING for more in ({}, BEGUN, {**BEGUN, "all_ended": True})),
        (Verdict.RUNS, "RUNNING", {**BEGUN, "stopped": True}),
        (Verdict.RUNS, "PENDING", {**BEGUN, "seen_since": False}),
        (Verdict.RUNS, "PENDING", {**BEGUN, "stopped": True}),
    ],
)
def test_the_first_row_that_fits_counts(verdict: Verdict, state: str | None, more: dict[str, Any]) -> None:
    assert judge(Known(state=state, **more)) is verdict


def test_the_table_has_one_row_for_each_verdict() -> None:
    assert [verdict for verdict, _ in TABLE] == list(Verdict)


@pytest.mark.parametrize("state", [None, "PENDING", *RUNNING])
def test_only_what_slurm_runs_no_more_has_ended(state: str | None) -> None:
    assert not Known(state=state).ended
    assert Known(state=state, begun=True).ended == (state == "PENDING")
