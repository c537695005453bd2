"""What Prometheus is told, and who may ask."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import urllib3
from prometheus_client.parser import text_string_to_metric_families

from paddlecloud.model.job import Moved
from paddlecloud.model.state import JobState
from paddlecloud.server.access_log import NO_ROUTE, Served
from paddlecloud.server.metrics import Metrics
from tests.unit.server.running import Running, running
from tests.waiting import wait_until

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(version="1.2.3", open_here=True)


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def moved(job: str, to: JobState, at: datetime, before: JobState | None = JobState.QUEUE) -> Moved:
    return Moved(seq=1, job=job, user="ann", attempt=1, at=at, from_state=before, to_state=to, why="")


def test_a_request_is_counted_by_its_route_and_never_by_what_was_sent(metrics: Metrics) -> None:
    served = Served("GET", "/v1/jobs/{job_id}", 200, seconds=0.02, received_bytes=3, sent_bytes=40)
    metrics.serve(served)
    metrics.serve(served)
    for method in ("BREW", "PROPFIND", "<script>"):
        metrics.serve(Served(method, NO_ROUTE, 405))
    labels = {"route": "/v1/jobs/{job_id}", "method": "GET", "status": "200"}
    assert value(metrics, "paddlecloud_request_seconds_count", **labels) == 2
    assert value(metrics, "paddlecloud_request_seconds_bucket", **labels, le="0.01") == 0
    assert value(metrics, "paddlecloud_request_seconds_bucket", **labels, le="0.025") == 2
    assert value(metrics, "paddlecloud_received_bytes_total", route="/v1/jobs/{job_id}") == 6
    assert value(metrics, "paddlecloud_sent_bytes_total", route="/v1/jobs/{job_id}") == 80
    assert value(metrics, "paddlecloud_request_seconds_count", route=NO_ROUTE, method="other", status="405") == 3


def test_a_jobs_wait_is_counted_once_from_its_submission_to_its_first_run(metrics: Metrics) -> None:
    metrics.move([moved("a", JobState.SUBMIT, NOW, None), moved("b", JobState.SUBMIT, NOW, None)])
    metrics.move([moved("a", JobState.RUNNING, NOW + timedelta(seconds=30))])
    metrics.move([moved("a", JobState.QUEUE, NOW), moved("a", JobState.RUNNING, NOW + timedelta(hours=1))])
    metrics.move([moved("b", JobState.KILLED, NOW + timedelta(seconds=5))])
    metrics.move([moved("of an earlier server", JobState.RUNNING, NOW)])
    assert value(metrics, "paddlecloud_queue_wait_seconds_count") == 1
    assert value(metrics, "paddlecloud_queue_wait_seconds_sum") == 30
    assert value(metrics, "paddlecloud_moves_total", state="running") == 3
    assert value(metrics, "paddlecloud_moves_total", state="failed") == 0


def test_rounds_and_those_that_failed_are_counted(metrics: Metrics) -> None:
    metrics.round(0.003, False)
    metrics.round(0.2, True)
    assert value(metrics, "paddlecloud_round_seconds_count") == 2
    assert value(metrics, "paddlecloud_failed_rounds_total") == 1


def test_two_servers_in_one_process_count_apart(metrics: Metrics) -> None:
    other = Metrics(version="1.2.3", open_here=True)
    metrics.round(0.1, True)
    assert value(other, "paddlecloud_failed_rounds_total") == 0


def scraped(server: Running) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    answer = urllib3.request("GET", f"{server.url}/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.data.decode())
        for sample in family.samples
    }


def test_a_server_tells_of_its_jobs_requests_streams_rounds_and_itself(server: Running) -> None:
    done, running_on = server.run(), server.run()
    server.finish(done)
    server.reaches(done, "success")
    with server.ask("GET", f"/v1/jobs/{running_on}/logs", stream=True):
        wait_until(lambda: scraped(server)["paddlecloud_streams", ()] == 1, "the stream is open")
    wait_until(lambda: scraped(server)["paddlecloud_streams", ()] == 0, "the stream is closed")
    wait_until(lambda: scraped(server)["paddlecloud_queue_wait_seconds_count", ()] == 2, "both have waited")
    found = scraped(server)
    assert found["paddlecloud_jobs", (("state", "success"),)] == 1
    assert found["paddlecloud_jobs", (("state", "running"),)] == 1
    assert found["paddlecloud_jobs", (("state", "failed"),)] == 0
    assert found["paddlecloud_moves_total", (("state", "running"),)] == 2
    submits = (("method", "POST"), ("route", "/v1/jobs"), ("status", "201"))
    assert found["paddlecloud_request_seconds_count", submits] == 2
    assert found["paddlecloud_received_bytes_total", (("route", "/v1/jobs"),)] > 100
    assert found["paddlecloud_round_seconds_count", ()] > 0
    assert found["paddlecloud_failed_rounds_total", ()] == 0
    for name in ("process_open_fds", "process_resident_memory_bytes", "paddlecloud_threads", "paddlecloud_free_bytes"):
        assert found[name, ()] > 0
    names = {name for name, _ in found}
    assert {"process_cpu_seconds_total", "paddlecloud_build_info"} <= names


def test_no_label_holds_what_a_stranger_sent(server: Running) -> None:
    for path in ("/v1/jobs/job-nobody-has", "/wp-admin.php", "/v1/users/somebody"):
        server.ask("GET", path)
    text = urllib3.request("GET", f"{server.url}/metrics").data.decode()
    for word in ("nobody-has", "wp-admin", "somebody"):
        assert word not in text
    routes = set(re.findall(r'route="([^"]*)"', text))
    assert {"/v1/jobs/{job_id}", "/v1/users/{name}", NO_ROUTE} <= routes


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "X-Forwarded-Host"])
def test_what_a_proxy_on_this_machine_passes_on_is_not_from_this_machine(server: Running, header: str) -> None:
    assert urllib3.request("GET", f"{server.url}/metrics", headers={header: "203.0.113.9"}).status == 401


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "data", {"server": {"metrics": False}}) as made:
        yield made


def test_where_a_setting_closes_them_only_an_admin_reads_them(closed: Running) -> None:
    assert urllib3.request("GET", f"{closed.url}/metrics").status == 401
    assert closed.ask("GET", "/metrics").status == 403
    assert closed.ask("GET", "/metrics", token=closed.root).status == 200
