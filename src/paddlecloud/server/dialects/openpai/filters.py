"""What a list of jobs is asked for, from a query of OpenPAI's: pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from paddlecloud.server.dialects.openpai import refusals, states
from paddlecloud.store.listing import Field, Page, Wanted

LIMIT = 5000
MOST = 50_000
_OFFSET_MOST = 10**9
_NAMES = 200
_TEXT_LETTERS = 200

_FIELDS = {
    "jobName": Field.NAME,
    "submissionTime": Field.SUBMITTED,
    "username": Field.USER,
    "vc": Field.POOL,
    "retries": Field.ATTEMPT,
    "totalTaskNumber": Field.TASKS,
    "totalGpuNumber": Field.GPUS,
    "state": Field.STATE,
    "completionTime": Field.FINISHED,
    "jobPriority": Field.PRIORITY,
}
# OpenPAI's classes of priority are ranges of ours, which are numbers.
PRIORITIES: Mapping[str, tuple[int | None, int | None]] = {
    "oppo": (None, -1),
    "default": (0, 0),
    "test": (0, 0),
    "prod": (1, 150),
    "crit": (151, None),
}


def priority_word(priority: int) -> str:
    for word, (low, high) in PRIORITIES.items():
        if (low is None or priority >= low) and (high is None or priority <= high):
            return word
    return "default"


def wanted(query: Mapping[str, str], *, only: str | None) -> Wanted:
    """The jobs that are asked for; `only`: those of this user alone may be seen."""
    users = _names(query, "username")
    if only is not None:
        users = frozenset({only}) if users is None else users & {only}
    asked = _names(query, "state")
    plain, stopping = (None, frozenset()) if asked is None else states.meant(asked)
    priorities = _names(query, "jobPriority")
    return Wanted(
        users=users,
        pools=_names(query, "vc"),
        states=plain,
        stopping=stopping,
        priorities=None if priorities is None else [PRIORITIES[word] for word in priorities if word in PRIORITIES],
        text=query.get("keyword", "")[:_TEXT_LETTERS],
        tags=_names(query, "tagsContain"),
        without_tags=_names(query, "tagsNotContain") or frozenset(),
    )


def page(query: Mapping[str, str], *, most: int = MOST) -> Page:
    limit = _number(query, "limit", LIMIT)
    if limit > most:
        raise refusals.invalid(f"Limit exceeds max number {most}.")
    order, ascending = _order(query.get("order", ""))
    offset = min(_number(query, "offset", 0), _OFFSET_MOST)
    return Page(order=order, ascending=ascending, state_order=states.RANKS, offset=offset, limit=limit)


def _order(asked: str) -> tuple[Field, bool]:
    """What cannot be sorted by is passed over, as OpenPAI does."""
    field, _, direction = asked.partition(",")
    if field not in _FIELDS or direction not in ("ASC", "DESC"):
        return Field.SUBMITTED, False
    return _FIELDS[field], direction == "ASC"


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise refusals.invalid(f'"{name}" must be a whole number, and 0 at least.')
    return int(text)


def _names(query: Mapping[str, str], name: str) -> frozenset[str] | None:
    """A list with commas; None: there is none, so that everything is meant."""
    text = query.get(name, "")
    found: Collection[str] = [part for part in text.split(",") if part]
    if len(found) > _NAMES:
        raise refusals.invalid(f'"{name}" has {len(found)} names in it; {_NAMES} is the most.')
    return frozenset(found) or None
