"""nni 2.10.1, whose trials are jobs of OpenPAI, unmodified: an experiment from its start to its last metric.

It brings 200 MB and pins of its own, and `nnictl create` fails now and then: it is run after `make .venv/nni/.made`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.flow.lab import Lab
from tests.ports import free_port
from tests.waiting import wait_until

NNI = Path(sys.prefix) / "nni"
PASSWORD = "correct horse"
TRIAL = "import nni\n\nx = nni.get_next_parameter()['x']\nnni.report_final_result(2 * x)\n"

# Also in CI: nni's own start fails now and then, so `make test` does not install it.
pytestmark = pytest.mark.skipif(not (NNI / "bin/nnictl").exists(), reason=f"run on request: `make {NNI}/.made`")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    lab.configure(
        "[clusters.local]\ncpus = 16\nmemory = '32Gi'\npolicy = 'open'\n"
        f"[jobs]\ngrace = '1s'\npython = '{NNI}/bin/python3'\n"
    )
    lab.type("up")
    lab.type("user", "add", "alice", "--password", stdin=f"{PASSWORD}\n")
    lab.type("share", "add", "trials", "--write", "default")
    yield lab
    lab.close()


def experiment(server: Lab, token: str) -> str:
    (server.work / "code").mkdir()
    (server.work / "code" / "trial.py").write_text(TRIAL)
    return f"""
experimentName: doubled
searchSpace: {{x: {{_type: choice, _value: [1, 2]}}}}
trialCommand: python3 trial.py
trialCodeDirectory: {server.work}/code
trialConcurrency: 1
maxTrialNumber: 1
tuner: {{name: Random}}
debug: true
nniManagerIp: 127.0.0.1
trainingService:
  platform: openpai
  host: {server.server["url"]}
  username: alice
  token: {token}
  trialCpuNumber: 1
  trialGpuNumber: 0
  trialMemorySize: 1GB
  virtualCluster: default
  storageConfigName: trials
  dockerImage: any
  localStorageMountPoint: {server.data}/pfs/local/shared/trials
  containerStorageMountPoint: /pfs/local/shared/trials
  reuseMode: false
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_experiment_runs_its_trials_here(server: Lab) -> None:
    asked = {"Content-Type": "application/x-www-form-urlencoded"}
    address = f"{server.server['url']}/rest-server/api/v2"
    body = f"username=alice&password={PASSWORD.replace(' ', '+')}"
    token = urllib3.request("POST", f"{address}/authn/basic/login", body=body, headers=asked).json()["token"]
    (server.work / "config.yaml").write_text(experiment(server, token))
    port = free_port()
    env = {"HOME": str(server.home), "PATH": f"{NNI}/bin:{os.environ['PATH']}"}

    def nnictl(*words: str) -> None:
        subprocess.run([f"{NNI}/bin/nnictl", *words], check=True, capture_output=True, env=env, timeout=120)

    def trials() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = urllib3.request("GET", f"http://127.0.0.1:{port}/api/v1/nni/trial-jobs").json()
        return found

    nnictl("create", "--config", str(server.work / "config.yaml"), "--port", str(port))
    try:
        wait_until(lambda: any(one["status"] == "SUCCEEDED" for one in trials()), "a trial succeeds", seconds=150)
        assert trials()[0]["finalMetricData"][0]["data"] in ('"2"', '"4"')
        jobs = urllib3.request("GET", f"{address}/jobs", headers={"Authorization": f"Bearer {token}"}).json()
        assert [(job["name"].startswith("nni_exp_"), job["state"]) for job in jobs] == [(True, "SUCCEEDED")]
    finally:
        nnictl("stop", "--all")
