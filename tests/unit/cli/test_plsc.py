"""plsc against a real server: which folder it puts together and sends, and what it refuses before that."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.frameworks import PYTHON, needs
from tests.unit.cli.command import SRC, Command

EXAMPLE = Path(__file__).parents[3] / "examples" / "plsc"


def submitted(command: Command, *words: str) -> dict[str, Any]:
    """The spec of the job."""
    return dict(json.loads(command.out("plsc", *words, "-o", "json"))["spec"])


def told(spec: dict[str, Any]) -> str:
    return str(spec["roles"][0]["command"])


def test_it_submits_the_example_for_two_trainers(command: Command) -> None:
    spec = submitted(command, "--out", "kept")
    assert spec["name"] == "plsc"
    assert spec["roles"][0]["count"] == 2
    assert spec["distribute"] == "NCCL2"
    assert told(spec) == "sh run.sh --classes 10000"
    sent = {file.name for file in (command.folder / "kept" / "job").iterdir()}
    assert sent == {file.name for file in (EXAMPLE / "job").iterdir() if file.is_file()}
    assert {"run.sh", "train.py", "zip_reader.py", "requirements.txt"} <= sent
    assert (command.folder / "kept" / "submit.sh").exists()


def test_a_script_gets_the_id_alone(command: Command) -> None:
    done = command.type("plsc", "--small")
    assert done.stdout.startswith("job-")
    assert len(done.stdout.split()) == 1


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--small"], "sh run.sh --classes 300 --passes 12 --batch 64 --rate 0.1"),
        (["--small", "--passes", "3", "--classes", "50"], "sh run.sh --classes 50 --passes 3 --batch 64 --rate 0.1"),
        (["--partial-fc"], "sh run.sh --classes 10000 --partial-fc 0.1"),
        (["--partial-fc", "0.2", "--passes", "4"], "sh run.sh --classes 10000 --passes 4 --partial-fc 0.2"),
        (["--resume", "/pfs/local/home/ann/run"], "sh run.sh --classes 10000 --resume /pfs/local/home/ann/run"),
    ],
)
def test_options_reach_the_trainers(command: Command, words: list[str], line: str) -> None:
    assert told(submitted(command, *words)) == line


def test_what_a_job_may_ask_for_it_may_ask_for(command: Command) -> None:
    spec = submitted(
        command, "--trainers", "3", "--name", "faces", "--time-limit", "2h", "--retry", "2", "--env", "A=1"
    )
    assert spec["roles"][0]["count"] == 3
    assert (spec["name"], spec["wall_time_seconds"], spec["env"]) == ("faces", 7200, {"A": "1"})
    assert spec["retry"]["user_error"] == 2


def test_pictures_of_ones_own_are_sent_in_place_of_made_ones(command: Command) -> None:
    own = command.folder / "faces"
    (own / "train_data").mkdir(parents=True)
    (own / "label.txt").write_text("a.jpg 0\n")
    with zipfile.ZipFile(own / "train_data" / "images.zip", "w") as made:
        made.writestr("a.jpg", b"a picture")
    spec = submitted(command, "--images", "faces", "--out", "kept")
    assert told(spec) == "sh run.sh"
    data = command.folder / "kept" / "job" / "data"
    assert (data / "label.txt").read_text() == "a.jpg 0\n"
    assert (data / "train_data" / "images.zip").read_bytes() == (own / "train_data" / "images.zip").read_bytes()


def test_of_results_only_the_newest_pass_that_all_completed_is_sent(command: Command) -> None:
    results = command.folder / "results" / "job-1f2e"
    for rank, number in ((0, 9), (0, 10), (0, 11), (1, 9), (1, 10)):
        folder = results / f"rank-{rank}" / str(number)
        folder.mkdir(parents=True)
        (folder / "complete.json").write_text("{}")
        (folder / "variable").write_text(f"{rank} {number}")
    (results / "rank-0" / "figures.json").write_text("[]")
    (results / "log").mkdir()
    assert told(submitted(command, "--resume", "results", "--out", "kept")).endswith("--resume resume")
    resume = command.folder / "kept" / "job" / "resume"
    assert sorted(file.relative_to(resume).as_posix() for file in resume.rglob("*") if file.is_file()) == [
        "rank-0/10/complete.json",
        "rank-0/10/variable",
        "rank-0/figures.json",
        "rank-1/10/complete.json",
        "rank-1/10/variable",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--images", "home"], "home is not a folder of pictures: it needs zip files, and a label.txt"),
        (["--images", "home", "--classes", "3"], "label.txt says it of your own"),
        (["--resume", "home"], "home holds no pass that all of its trainers completed"),
        (["--out", "home"], "home exists: --out must name a new folder"),
        (["--classes", "0"], "--classes 0 is too few"),
        (["--passes", "0"], "--passes 0 is too few"),
        (["--partial-fc", "1.5"], "--partial-fc 1.5 is no share: write more than 0, and 1 at most"),
        (["--trainers", "0"], "0 is too small"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(command: Command, words: list[str], sentence: str) -> None:
    done = command.type("plsc", *words, code=2)
    assert sentence in done.stderr
    assert done.stdout == ""


def test_the_wheel_brings_the_whole_example(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=SRC.parent, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("paddlecloud/examples/")}
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."],
        cwd=EXAMPLE,
        check=True,
        capture_output=True,
        text=True,
    )
    wanted = {f"paddlecloud/examples/plsc/{name}" for name in listed.stdout.split() if name != ".gitignore"}
    assert held == wanted


@needs("PIL")
def test_where_numpy_and_pillow_are_the_pictures_are_made_here(command: Command) -> None:
    client = command.folder / "client"
    client.mkdir()
    for package in (msgspec, yaml):
        folder = Path(str(package.__file__)).parent
        (client / folder.name).symlink_to(folder)
    environment = {**command.environment, "PYTHONPATH": f"{SRC}:{client}"}
    done = subprocess.run(
        [str(PYTHON), "-m", "paddlecloud", "plsc", "--classes", "3", "--out", "kept"],
        cwd=command.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "making pictures: 36.0 KiB in" in done.stderr
    data = command.folder / "kept" / "job" / "data"
    lines = (data / "label.txt").read_text().splitlines()
    assert lines[:5] == ["00000/0.jpg 0", "00000/1.jpg 0", "00000/2.jpg 0", "00000/3.jpg 0", "00001/0.jpg 1"]
    assert len(lines) == 12
    with zipfile.ZipFile(data / "test_data" / "images.zip") as test:
        assert test.namelist() == ["00000/3.jpg", "00001/3.jpg", "00002/3.jpg"]
        assert test.read("00001/3.jpg").startswith(b"\xff\xd8")
