"""What Prometheus asks for: every metric on one page, in a registry of the server's own.

What happens often is counted as it happens; what can be looked up is looked up when Prometheus asks. Labels are taken
from short lists of our own making, never from what somebody sent: each combination is kept for ever.
"""

from __future__ import annotations

import platform
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from paddlecloud import __version__
from paddlecloud.model.job import Job, Moved
from paddlecloud.model.state import JobState
from paddlecloud.server.accepting import ADDRESS, TOTAL
from paddlecloud.server.access_log import Served
from paddlecloud.server.settings import Settings
from paddlecloud.server.shares import Shares
from paddlecloud.store.jobs import Jobs

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER = "other"
_REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ROUND_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_WAIT_SECONDS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)

# Times at which each series began: twice the lines, and of no use to Prometheus' own format.
disable_created_metrics()  # type: ignore[no-untyped-call]


def measure(settings: Settings, jobs: Jobs, shares: Shares) -> Metrics:
    """The metrics of a server with these parts."""
    made = Metrics(version=__version__, open_here=settings.server.metrics)
    made.jobs(jobs.counts)
    made.expect(jobs.live())
    made.gauge("paddlecloud_streams", "Streams of logs and events that are open.", lambda: shares.open_streams)
    data = settings.server.data
    made.gauge(
        "paddlecloud_free_bytes", "Space left on the disk of the data folder.", lambda: shutil.disk_usage(data).free
    )
    return made


class Metrics:
    """`open_here`: whoever asks from this machine may read them without a login."""

    def __init__(self, *, version: str, open_here: bool) -> None:
        self.open_here = open_here
        self.registry = registry = CollectorRegistry()
        self._children: dict[tuple[str, str, int], tuple[Histogram, Counter, Counter]] = {}
        self._submitted: dict[str, datetime] = {}
        self._requests = Histogram(
            "paddlecloud_request_seconds",
            "Time from the arrival of a request until its answer began, by route, method and status.",
            ("route", "method", "status"),
            buckets=_REQUEST_SECONDS,
            registry=registry,
        )
        self._received = Counter(
            "paddlecloud_received_bytes",
            "Bytes of bodies received, of requests that have ended.",
            ("route",),
            registry=registry,
        )
        self._sent = Counter(
            "paddlecloud_sent_bytes",
            "Bytes of bodies sent, of requests that have ended.",
            ("route",),
            registry=registry,
        )
        self._rounds = Histogram(
            "paddlecloud_round_seconds", "Time that a scheduling round took.", buckets=_ROUND_SECONDS, registry=registry
        )
        self._failed_rounds = Counter(
            "paddlecloud_failed_rounds", "Scheduling rounds that ended in a fault; the log says why.", registry=registry
        )
        self._waits = Histogram(
            "paddlecloud_queue_wait_seconds",
            "Time from a job's submission until it first ran.",
            buckets=_WAIT_SECONDS,
            registry=registry,
        )
        self._moves = Counter(
            "paddlecloud_moves",
            "Changes of state of jobs, by the state that they came to.",
            ("state",),
            registry=registry,
        )
        self._refused_connections = Counter(
            "paddlecloud_refused_connections",
            "Connections refused, by the limit that was reached: of one address, or of all (total).",
            ("limit",),
            registry=registry,
        )
        for limit in (ADDRESS, TOTAL):
            self._refused_connections.labels(limit)
        for state in JobState:
            self._moves.labels(state.value)
        self.gauge("paddlecloud_threads", "Live threads of the server.", threading.active_count)
        ProcessCollector(registry=registry)
        build = Info("paddlecloud_build", "The version that runs.", registry=registry)
        build.info({"version": version, "python": platform.python_version()})

    def gauge(self, name: str, help: str, value: Callable[[], float]) -> None:
        """One more number, looked up at each scrape."""
        Gauge(name, help, registry=self.registry).set_function(value)

    def certificate(self, end: Callable[[], datetime]) -> None:
        self.gauge(
            "paddlecloud_certificate_end_timestamp_seconds",
            "Until when the certificate is valid, in seconds since 1970; left out where there is none.",
            lambda: end().timestamp(),
        )

    def jobs(self, counts: Callable[[], Mapping[JobState, int]]) -> None:
        """Tell how many jobs are in each state, by what `counts` says at each scrape."""
        self.registry.register(_Jobs(counts))

    def expect(self, waiting: Iterable[Job]) -> None:
        """Jobs that were submitted to an earlier run of the server and may still come to run in this one."""
        self._submitted.update((job.id, job.created_at) for job in waiting if job.started_at is None)

    def serve(self, served: Served) -> None:
        """Count a request that has ended."""
        key = (served.route, served.method, served.status)
        if key not in self._children:
            method = served.method if served.method in _METHODS else _OTHER
            self._children[key] = (
                self._requests.labels(served.route, method, served.status),
                self._received.labels(served.route),
                self._sent.labels(served.route),
            )
        seconds, received, sent = self._children[key]
        seconds.observe(served.seconds)
        received.inc(served.received_bytes)
        sent.inc(served.sent_bytes)

    def refuse_connection(self, limit: str) -> None:
        self._refused_connections.labels(limit).inc()

    def round(self, seconds: float, failed: bool) -> None:
        self._rounds.observe(seconds)
        if failed:
            self._failed_rounds.inc()

    def move(self, moves: Sequence[Moved]) -> None:
        for moved in moves:
            self._moves.labels(moved.to_state.value).inc()
            if moved.from_state is None:
                self._submitted[moved.job] = moved.at
            elif moved.to_state is JobState.RUNNING or moved.to_state.final:
                submitted = self._submitted.pop(moved.job, None)
                if submitted is not None and moved.to_state is JobState.RUNNING:
                    self._waits.observe((moved.at - submitted).total_seconds())

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """All of it in the form that is accepted, with its media type."""
        encode, media_type = choose_encoder(accept)
        return encode(self.registry), media_type


class _Jobs(Collector):
    def __init__(self, counts: Callable[[], Mapping[JobState, int]]) -> None:
        self._counts = counts

    def describe(self) -> Iterator[Metric]:
        # Asked when it is registered; the records are not read for that.
        yield self._family()

    def collect(self) -> Iterator[Metric]:
        counts = self._counts()
        family = self._family()
        for state in JobState:
            family.add_metric([state.value], counts.get(state, 0))
        yield family

    def _family(self) -> GaugeMetricFamily:
        return GaugeMetricFamily("paddlecloud_jobs", "Jobs that are recorded, by state.", labels=("state",))
