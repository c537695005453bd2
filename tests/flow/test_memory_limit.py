"""A server without cgroups says that its memory limit holds per process only: in its log, by doctor and by clusters."""

from __future__ import annotations

import json

from tests.flow.lab import Lab


def test_a_server_without_cgroups_says_what_its_memory_limit_means(lab: Lab) -> None:
    lab.configure('[clusters.bare]\nisolate = false\n[clusters.other]\nbackend = "local"\n')
    lab.type("up")
    listed = {one["name"]: one["memory_limit"] for one in json.loads(lab.type("clusters", "-o", "json").stdout)}
    assert listed["bare"] == "process"
    assert listed["other"] in ("task", "process")
    shown = lab.type("clusters")
    assert "per process" in shown.stdout
    assert "bare" in shown.stderr
    assert "the memory limit holds per process only" in shown.stderr
    findings = [line for line in lab.type("doctor").stdout.splitlines() if "isolation on bare" in line]
    assert any(line.startswith("warning") and "memory per process only" in line for line in findings)
    logs = [path.read_text() for path in lab.data.rglob("*.log")]
    assert any("the memory limit holds per process only" in text for text in logs)
