"""What may go of each kind, and how it goes: one class for each way, which `Retention` puts into a table.

`going` only looks. `remove` may be repeated, at any point where it was killed, and says what went.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol

from paddlecloud.files import environments
from paddlecloud.files.collect import JobFiles
from paddlecloud.files.counting import Counter
from paddlecloud.files.environments import Environments
from paddlecloud.files.trees import Tree, Trees
from paddlecloud.model import retention
from paddlecloud.model.kept import LEFT_BY_JOBS, Kept
from paddlecloud.model.retention import Going, Item, Rule, TreeUse
from paddlecloud.model.space import Used
from paddlecloud.server.pace import Pace
from paddlecloud.store.audit import Audit
from paddlecloud.store.remains import Remains
from paddlecloud.store.retention import Forgetting

log = logging.getLogger(__name__)


class Collector(Protocol):
    def going(self, rule: Rule, now: datetime) -> Iterator[Going]:
        """What the rule lets go, oldest first."""
        ...

    def remove(self, going: Sequence[Going], now: datetime, /) -> Sequence[Going]:
        """Those of these that went."""
        ...

    def finish(self) -> None:
        """Remove what was being removed when the server died."""
        ...


class LeftByJobs:
    """One kind of what finished jobs have left: recorded as leaving, removed, recorded as gone."""

    def __init__(self, kind: Kept, remains: Remains, files: JobFiles) -> None:
        self._kind = kind
        self._remains = remains
        self._files = files

    def going(self, rule: Rule, now: datetime) -> Iterator[Going]:
        total = 0 if rule.size_bytes is None else self._remains.total_bytes(self._kind)
        return retention.going(self._remains.kept(self._kind), rule, now, total_bytes=total)

    def remove(self, going: Sequence[Going], now: datetime) -> Sequence[Going]:
        self._remains.leave(self._kind, going, now)
        gone = self._remove({one.item.name: one.item.user for one in going})
        return [one for one in going if one.item.name in gone]

    def finish(self) -> None:
        self._remove(self._remains.leaving(self._kind))

    def _remove(self, owners: Mapping[str, str]) -> set[str]:
        gone: set[str] = set()
        try:
            for job, user in owners.items():
                if _done(partial(self._files.remove, user, job, self._kind), f"the {self._kind.value} of {job}"):
                    gone.add(job)
        finally:
            self._remains.gone(self._kind, sorted(gone))
        return gone


class WholeJobs:
    """Finished jobs with all that they have left and all that is known of them. Their records go last."""

    def __init__(self, remains: Remains, records: Forgetting, files: JobFiles) -> None:
        self._remains = remains
        self._records = records
        self._files = files

    def going(self, rule: Rule, now: datetime) -> Iterator[Going]:
        return retention.going(self._remains.jobs(), rule, now)

    def remove(self, going: Sequence[Going], now: datetime) -> Sequence[Going]:
        for kind in LEFT_BY_JOBS:
            self._remains.leave(kind, going, now)
        empty = [one for one in going if self._removed(one.item)]
        self._records.forget([one.item.name for one in empty])
        return empty

    def finish(self) -> None:
        """What was leaving is finished kind by kind, and its job is found again by its age."""

    def _removed(self, item: Item) -> bool:
        return _done(partial(self._files.remove_all, item.user, item.name), item.name)


class Uploads:
    """Uploaded folders that no live job uses and no submit is awaited for."""

    def __init__(self, trees: Trees, records: Forgetting, pace: Pace) -> None:
        self._trees = trees
        self._records = records
        self._pace = pace

    def going(self, rule: Rule, now: datetime) -> Iterator[Going]:
        items = [item for user in self._trees.users() for item in self._unused(user, rule, now)]
        items.sort(key=lambda item: item.since)
        return retention.going(items, rule, now, total_bytes=sum(item.size_bytes for item in items))

    def remove(self, going: Sequence[Going], now: datetime) -> Sequence[Going]:
        return [one for one in going if self._remove(one.item, now)]

    def finish(self) -> None:
        self._trees.finish(self._pace)

    def _remove(self, item: Item, now: datetime) -> bool:
        tree = Tree(user=item.user, id=item.name, asked_at=item.since)

        def needed(found: Tree) -> bool:
            return self._since(item.user, [found], now)[found.id] is None

        return _done(
            partial(self._trees.remove, tree, self._pace, needed=needed),
            f"the uploaded folder {item.name} of {item.user}",
        )

    def _unused(self, user: str, rule: Rule, now: datetime) -> Iterator[Item]:
        since = self._since(user, self._trees.of(user), now)
        unused = {tree: at for tree, at in since.items() if at is not None}
        newest_first = sorted(unused, key=lambda tree: unused[tree], reverse=True)
        if rule.size_bytes is None:
            newest_first = [tree for tree in newest_first if rule.age is not None and now - unused[tree] >= rule.age]
        sizes = self._sizes(user, [*(since.keys() - unused.keys()), *newest_first] if newest_first else [])
        for tree in newest_first:
            used = sizes[tree]
            yield Item(name=tree, user=user, since=unused[tree], size_bytes=used.size_bytes, files=used.files)

    def _since(self, user: str, trees: Sequence[Tree], now: datetime) -> dict[str, datetime | None]:
        """Since when nobody needs each of these; None: it is needed."""
        uses = self._records.trees(user, [tree.id for tree in trees])
        return {tree.id: retention.unused_since(tree.asked_at, uses.get(tree.id, TreeUse()), now) for tree in trees}

    def _sizes(self, user: str, trees: Sequence[str]) -> dict[str, Used]:
        """What each has that none before it has: of trees that stay longest first, what the end of each sets free."""
        counter = self._trees.counter(user, self._pace)
        return {tree: counter.count(tree) for tree in trees}


class JobEnvironments:
    """Virtual environments of jobs, by when they were last used; whether one is in use, its own lock tells."""

    def __init__(self, environments: Environments, pace: Pace) -> None:
        self._environments = environments
        self._pace = pace

    def going(self, rule: Rule, now: datetime) -> Iterator[Going]:
        items = sorted(map(self._item, self._environments.all()), key=lambda item: item.since)
        return retention.going(items, rule, now, total_bytes=sum(item.size_bytes for item in items))

    def remove(self, going: Sequence[Going], _now: datetime) -> Sequence[Going]:
        return [one for one in going if self._remove(one.item)]

    def finish(self) -> None:
        """What is half removed is not whole, and is built anew or goes again."""

    def _item(self, kept: environments.Kept) -> Item:
        used = Counter(str(self._environments.root / kept.user), self._pace).count(kept.name)
        return Item(name=kept.name, user=kept.user, since=kept.used_at, size_bytes=used.size_bytes, files=used.files)

    def _remove(self, item: Item) -> bool:
        return _done(
            partial(self._environments.remove, item.user, item.name, self._pace),
            f"the environment {item.name} of {item.user}",
        )


class AuditRecord:
    """Lines of the audit record, some at a time."""

    def __init__(self, audit: Audit, pace: Pace) -> None:
        self._audit = audit
        self._pace = pace

    def going(self, rule: Rule, now: datetime) -> Iterator[Going]:
        if rule.age is None:
            return iter(())
        before = now - rule.age
        count = self._audit.older(before)
        lines = [Item(name="audit", since=before, count=count)] if count else []
        return retention.going(lines, rule, now)

    def remove(self, going: Sequence[Going], _now: datetime) -> Sequence[Going]:
        for one in going:
            while self._audit.forget(one.item.since):
                self._pace.rest()
        return going

    def finish(self) -> None:
        """A line is there or not."""


def _done(remove: Callable[[], bool | None], what: str) -> bool:
    """Whether it went; what cannot be removed is tried again next time, and keeps nothing else from going."""
    try:
        return remove() is not False
    except OSError as error:
        log.warning("%s cannot be removed, and is tried again: %s", what, error)
        return False
