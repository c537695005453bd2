"""Manifests, chunks, packs and pieces of logs that were bent on their way: refused in words, or right, or harmless."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import urllib3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paddlecloud.model import wire
from paddlecloud.model.tree import Manifest, pack
from tests import trees
from tests.unit.server.running import Running, running

CALLS = int(os.environ.get("FUZZ_CALLS", "150"))
fuzz = settings(max_examples=CALLS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
CONTENT = {"run.sh": b"echo hello\n", "data/a.txt": b"a" * 100}
HOSTILE = ["../x", "/etc/passwd", "a/../../x", "", ".", "..", "a//b", "a\0b", "a" * 300, "x/" * 200, "\ud800", "run.sh"]

FOLDERS = {"chunks", "lock", "objects", "partial", "parts", "trees"}  # of a user, and their lock

Bend = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "data"


@pytest.fixture(scope="module")
def server(data: Path) -> Iterator[Running]:
    with running(data) as made:
        yield made


@st.composite
def bends(draw: st.DrawFn) -> Bend:
    """A change of bytes: some replaced, put in, cut out, or said twice."""
    at, size = draw(st.floats(0, 1)), draw(st.integers(0, 40))
    put = draw(st.binary(max_size=40) | st.sampled_from([b'"', b"{", b"[" * 50, b"null", b"-1", b"1e999", b"\\ud800"]))
    kind = draw(st.sampled_from(["replace", "put in", "cut out", "twice", "cut off"]))

    def bend(body: bytes) -> bytes:
        place = int(at * len(body))
        before, after = body[:place], body[place:]
        return {
            "replace": before + put + after[len(put) :],
            "put in": before + put + after,
            "cut out": before + after[size:],
            "twice": body + after,
            "cut off": before,
        }[kind]

    return bend


def odd_entries() -> st.SearchStrategy[dict[str, Any]]:
    """Entries of a manifest, each field of which may be anything, or nearly right."""
    digests = st.sampled_from([trees.digest(content) for content in CONTENT.values()]) | st.text(max_size=70)
    return st.fixed_dictionaries(
        {"path": st.sampled_from(HOSTILE) | st.text(max_size=30)},
        optional={
            "kind": st.sampled_from(["file", "folder", "link", "device", ""]),
            "size": st.integers(-(2**70), 2**70) | st.integers(0, 200),
            "executable": st.booleans() | st.none(),
            "chunks": st.lists(digests, max_size=3),
            "target": st.sampled_from(HOSTILE),
        },
    )


@pytest.mark.slow
@pytest.mark.timeout(7200)
@fuzz
@given(bent=bends())
def test_a_bent_manifest_is_refused_or_is_another_manifest(server: Running, data: Path, bent: Bend) -> None:
    _sane(server.ask("POST", "/v1/trees", bent(wire.encode(trees.manifest(CONTENT)))))
    _whole(data / "files")


@pytest.mark.slow
@pytest.mark.timeout(7200)
@fuzz
@given(entries=st.lists(odd_entries(), max_size=4))
def test_a_made_up_manifest_lays_out_nothing_outside_its_tree(
    server: Running, data: Path, entries: list[dict[str, Any]]
) -> None:
    body = json.dumps({"entries": entries}).encode("utf-8", "surrogatepass")
    _sane(server.ask("POST", "/v1/trees", body))
    _whole(data / "files")


@pytest.mark.slow
@pytest.mark.timeout(7200)
@fuzz
@given(name=st.text(st.characters(codec="ascii"), max_size=80) | st.none(), body=st.binary(max_size=200), bent=bends())
def test_a_chunk_is_kept_under_its_own_digest_alone(server: Running, name: str | None, body: bytes, bent: Bend) -> None:
    digest = hashlib.sha256(body).hexdigest() if name is None else name
    sent = bent(body)
    answer = server.ask("PUT", f"/v1/chunks/{quote(digest, safe='')}", sent)
    _sane(answer)
    assert (answer.status == 204) == (sent != b"" and hashlib.sha256(sent).hexdigest() == digest)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@fuzz
@given(contents=st.lists(st.binary(max_size=50), min_size=1, max_size=5), bent=bends())
def test_a_bent_pack_is_kept_whole_or_not_at_all(server: Running, contents: list[bytes], bent: Bend) -> None:
    fresh = [os.urandom(8) + content for content in contents]
    body = bent(pack([(trees.digest(one), one) for one in fresh]))
    answer = server.ask("POST", "/v1/chunks", body)
    _sane(answer)
    if answer.status != 204:
        asked = trees.manifest({f"{number}": content for number, content in enumerate(fresh)})
        missing = server.ask("POST", "/v1/trees", wire.encode(asked)).json()["missing"]
        assert sorted(missing) == sorted({trees.digest(one) for one in fresh})


@pytest.mark.slow
@pytest.mark.timeout(7200)
@fuzz
@given(pieces=st.lists(st.tuples(st.integers(-5, 400) | st.integers(), st.binary(max_size=60)), max_size=6))
def test_a_log_grows_only_at_its_end(server: Running, pieces: list[tuple[int, bytes]]) -> None:
    job = _job(server)
    path = f"/v1/jobs/{job}/tasks/trainer-0/log"
    token = server.services.shipping.token(server.services.records.get(job))
    log = server.results(job) / "log" / "trainer-0.log"
    for offset, piece in pieces:
        before = log.read_bytes() if log.exists() else b""
        answer = server.ask("PUT", f"{path}?offset={offset}", piece, token=token)
        _sane(answer)
        after = log.read_bytes() if log.exists() else b""
        if answer.status == 200:
            assert after == before + piece[len(before) - offset :]
            assert answer.json() == {"length": len(after)}
        else:
            assert after == before


def _sane(answer: urllib3.BaseHTTPResponse) -> None:
    """A success, or a problem in words; never a fault."""
    assert answer.status < 500, answer.data
    if answer.status >= 400:
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["detail"]


def _whole(root: Path) -> None:
    """Nothing appeared beside the folders of users, and in theirs nothing but what belongs there."""
    assert {path.name for path in root.iterdir()} <= {"ann", "bob"}
    for user in root.iterdir():
        assert {path.name for path in user.iterdir()} <= FOLDERS
    assert not list(root.rglob("passwd"))


def _job(server: Running) -> str:
    """One job for many calls: it runs as long as its server."""
    living = server.get("/v1/jobs?state=running")["items"]
    return str(living[0]["id"]) if living else server.run()


def test_the_manifest_that_is_bent_is_itself_taken(server: Running) -> None:
    manifest: Manifest = trees.manifest(CONTENT)
    assert server.ask("POST", "/v1/trees", wire.encode(manifest)).status == 200
