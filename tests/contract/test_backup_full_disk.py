"""A backup onto a full disk, for real: a small tmpfs in a mount namespace of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.filled import contents, fill, settings_of, url_of

SCRIPT = """
import os, sys
from pathlib import Path
from paddlecloud.model.errors import FullError
from paddlecloud.server import upkeep
from tests.contract.filled import settings_of
from tests.contract.records import NOW

disk, data, url = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
settings = settings_of(data, url)
try:
    upkeep.backup(settings, disk / "it.backup", now=NOW, progress=lambda *_: None)
except FullError as error:
    print(error.message)
print(os.listdir(disk))
"""


@pytest.mark.parametrize("size", ["64k", "128k"])
def test_a_backup_that_does_not_fit_is_told_and_leaves_nothing(database_url: str, tmp_path: Path, size: str) -> None:
    inside = 'mount -t tmpfs -o size="$0" none "$1" && exec "$2" -c "$3" "$1" "$4" "$5"'
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no mount namespaces")
    url = database_url if database_url.startswith("postgres") else ""
    settings = settings_of(tmp_path / "data", url)
    fill(settings)
    before = contents(url_of(settings))
    disk = tmp_path / "disk"
    disk.mkdir()
    repository = Path(__file__).parents[2]
    run = subprocess.run(
        [*alone, "sh", "-c", inside, size, str(disk), sys.executable, SCRIPT, str(tmp_path / "data"), url],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{repository}/src:{repository}", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
    )
    said, left = run.stdout.splitlines() or [run.stderr, ""]
    assert said == f"no space left for {disk}/it.backup: nothing was changed; free some space and try again"
    assert left == "[]"
    assert contents(url_of(settings)) == before
