"""docs/reference/metrics.md: every metric that a server tells Prometheus, from the registry itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from tempfile import TemporaryDirectory

from prometheus_client.core import Metric

from paddlecloud.model.job import Moved
from paddlecloud.model.state import JobState
from paddlecloud.server import config
from paddlecloud.server.access_log import Served
from paddlecloud.server.metrics import Metrics, measure
from paddlecloud.server.shares import Shares
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from tools.pages.markdown import code, document, table

INTRODUCTION = """
`GET /metrics` answers in Prometheus' text form: programs on the server's own machine without a login (unless
`server.metrics = false`), everybody else with the token or the signature of an admin.
[How to have them scraped](../operate.md#metrics). A histogram has `_bucket`, `_sum` and `_count`, and its `_count` says
how often; labels come from short lists, never from what somebody sent.
"""


def page() -> str:
    rows = [(code(name), kind, ", ".join(map(code, labels)), told) for name, kind, labels, told in _metrics()]
    return document(
        "Metrics",
        "src/paddlecloud/server/metrics.py",
        INTRODUCTION,
        table(("metric", "type", "labels", "what it tells"), rows),
    )


def _metrics() -> Iterator[tuple[str, str, list[str], str]]:
    with TemporaryDirectory() as data:
        database = Database.open(f"sqlite:///{data}/records.db")
        try:
            made = measure(config.parse({"server": {"data": data}}), Jobs(database), Shares())
            _use(made)
            for metric in sorted(made.registry.collect(), key=lambda one: (one.name.startswith("process_"), one.name)):
                yield _full_name(metric), metric.type, _labels(metric), metric.documentation
        finally:
            database.close()


def _use(made: Metrics) -> None:
    """Have one of everything happen: a metric shows its labels once it has a value."""
    now = datetime(2000, 1, 1, tzinfo=UTC)
    made.certificate(lambda: now)
    made.serve(Served("GET", "/v1/jobs", 200))
    made.move([Moved(seq=1, job="", user="", attempt=1, at=now, from_state=None, to_state=JobState.SUBMIT, why="")])


def _full_name(metric: Metric) -> str:
    ending = {"counter": "_total", "info": "_info"}.get(metric.type, "")
    return metric.name + ending


def _labels(metric: Metric) -> list[str]:
    return sorted({label for sample in metric.samples for label in sample.labels} - {"le"})
