"""The PFS by every face: one user's files are nobody else's, and nobody keeps more than they may."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from paddlecloud.model import wire
from paddlecloud.model.errors import ForbiddenError, NotFoundError, PaddleCloudError, QuotaError
from paddlecloud.model.transfers import CopiedFile, CopyReport, CopyRequest, RoomRequest
from paddlecloud.sdk.client import Client
from paddlecloud.sdk.profile import Profile
from tests.flow.goclient import GoClient, RefusedError
from tests.flow.lab import Lab

PASSWORD = "correct horse"
NUMBERS = itertools.count()


class Person:
    """A user with every client that there is."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.name = f"{name}{next(NUMBERS)}"
        lab.type("user", "add", self.name, "--password", stdin=f"{PASSWORD}\n")
        url = lab.server["url"]
        self.old = GoClient(url, self.name, PASSWORD)
        self.client = Client(Profile(server=url, user=self.name, password=PASSWORD))
        self.home = f"/pfs/local/home/{self.name}"

    def run(self, script: str) -> tuple[str, str]:
        """A job of one task: its state, and what it said."""
        job = self.client.submit(command=script)
        ended = self.client.wait(job.id, timeout=60)
        return ended.state.label, "".join(piece.text for piece in self.client.logs(job.id))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("pfs"))
    made.configure("[jobs]\ngrace = '1s'\n")
    made.type("up")
    yield made
    made.close()


@pytest.fixture
def ann(lab: Lab) -> Iterator[Person]:
    person = Person(lab, "ann")
    yield person
    person.client.close()


@pytest.fixture
def bob(lab: Lab) -> Iterator[Person]:
    person = Person(lab, "bob")
    person.client.pfs.make_folder(f"{person.home}/deep")
    person.old.put_file(b"bob's secret", "x", f"{person.home}/secret")
    yield person
    person.client.close()


def test_every_face_sees_the_same_files(lab: Lab, ann: Person) -> None:
    ann.old.put_file(b"by the old calls", "x", f"{ann.home}/old")
    ann.old.upload(b"by chunks", f"{ann.home}/chunks")
    (lab.work / "new").write_text("by our command")
    ann.client.pfs.put(lab.work / "new", f"{ann.home}/new")
    state, said = ann.run(f"cd {ann.home}; cat old chunks new; printf 'by a job' > job; ls $PADDLECLOUD_PFS/local/home")
    assert (state, said) == ("success", f"by the old callsby chunksby our command{ann.name}\n")
    assert ann.old.get_file(f"{ann.home}/job") == b"by a job"
    assert ann.old.download(f"{ann.home}/job") == b"by a job"
    names = {entry.path for entry in ann.client.pfs.list(ann.home)}
    assert names == {f"{ann.home}/{name}" for name in ("chunks", "job", "new", "old", "output")}


def test_results_are_seen_in_the_home_by_every_face(lab: Lab, ann: Person) -> None:
    job = ann.client.submit(command="echo weights > $OUTPUT_PATH/model; echo said")
    ann.client.wait(job.id)
    model = f"{ann.home}/output/{job.id}/rank-0/model"
    assert ann.old.get_file(model) == b"weights\n"
    assert model in {entry.path for entry in ann.client.pfs.list(ann.home, recursive=True)}
    assert ann.run(f"cat {model}; echo x > {model}")[1].startswith("weights\n")
    assert ann.old.get_file(model) == b"weights\n"
    with pytest.raises(ForbiddenError, match=f"goes as a whole: paddlecloud rm -r {ann.home}/output/{job.id}$"):
        ann.client.pfs.remove(model)


WAYS: dict[str, Callable[[Person, str], object]] = {
    "old get": lambda person, path: person.old.get_file(path),
    "old put": lambda person, path: _said(person.old.put_file(b"ann's", "x", path)),
    "old filelist": lambda person, path: person.old.list_files(path),
    "old ls": lambda person, path: person.old.ls(path),
    "old stat": lambda person, path: person.old.stat(path),
    "old chunk": lambda person, path: person.old.get_chunk(path, 0, 4),
    "old chunk meta": lambda person, path: person.old.chunk_meta(path, 4096, 0),
    "old upload": lambda person, path: person.old.upload(b"ann's", path),
    "old put chunk": lambda person, path: person.old.put_chunk(path, 0, b"ann's"),
    "old rm": lambda person, path: person.old.rm(path, recursive=True),
    "old mkdir": lambda person, path: person.old.mkdir(f"{path}/below"),
    "list": lambda person, path: list(person.client.pfs.list(path)),
    "match": lambda person, path: person.client.pfs.match(path),
    "get": lambda person, path: person.client.http.request("GET", f"/v1/files{path}"),
    "put": lambda person, path: person.client.http.request("PUT", f"/v1/files{path}", body=b"ann's"),
    "remove": lambda person, path: person.client.pfs.remove(path, recursive=True),
    "move away": lambda person, path: person.client.pfs.move(path, f"{person.home}/mine"),
    "move onto": lambda person, path: person.client.pfs.move(f"{person.home}/own", path),
    "copy away": lambda person, path: person.client.pfs.copy(path, f"{person.home}/mine"),
    "copy file": lambda person, path: _copied(person, path, f"{person.home}/mine"),
    "copy onto": lambda person, path: person.client.pfs.copy(f"{person.home}/own", path),
    "room": lambda person, path: person.client.http.request("POST", "/v1/room", body=_room(path)),
    "make folder": lambda person, path: person.client.pfs.make_folder(f"{path}/below"),
    "package": lambda person, path: person.client.http.request("POST", "/v1/jobs", body=_job(path)),
}


def _said(message: str) -> None:
    if message:
        raise RefusedError(message)


def _copied(person: Person, source: str, target: str) -> None:
    asked = CopyRequest(files=(CopiedFile(source=source, target=target),))
    answer = person.client.http.request("POST", "/v1/copies", body=wire.encode(asked))
    last = wire.decode(CopyReport, answer.data.splitlines()[-1])
    if last.code:
        raise RefusedError(last.message)


def _room(path: str) -> bytes:
    return wire.encode(RoomRequest(path=path, size=1))


def _job(package: str) -> bytes:
    return b'{"roles": [{"name": "trainer", "count": 1, "command": "true"}], "package": "%s"}' % package.encode()


@pytest.mark.parametrize("way", WAYS)
def test_no_face_lets_ann_at_bobs_files(ann: Person, bob: Person, way: str) -> None:
    ann.old.put_file(b"own", "x", f"{ann.home}/own")
    for path in (f"{bob.home}/secret", f"{ann.home}/../{bob.name}/secret", bob.home, f"{bob.home}/output"):
        with pytest.raises((RefusedError, ForbiddenError, NotFoundError)) as refused:
            WAYS[way](ann, path)
        assert "secret" not in str(refused.value).replace(path, "").replace(f"{bob.home}/secret", "")
    assert bob.old.get_file(f"{bob.home}/secret") == b"bob's secret"
    assert sorted(bob.old.list_files(bob.home)) == ["deep", "output", "secret"]


@pytest.mark.parametrize("encoded", ["..", "%2e%2e", "%2E%2E", "..%2f..%2fhome"])
def test_no_spelling_of_a_path_lets_ann_at_bobs_files(ann: Person, bob: Person, encoded: str) -> None:
    path = f"/v1/files{ann.home}/{encoded}/{bob.name}/secret"
    token = ann.client.accounts.login(ann.name, PASSWORD).secret
    for start in (path, f"api/v1/file/?path={ann.home}/{encoded}/{bob.name}/secret"):
        request = f"GET {start if start.startswith('/') else '/' + start} HTTP/1.1\r\nHost: x\r\n"
        status, body = ann.old._answer(f"{request}Authorization: Bearer {token}\r\n\r\n".encode())
        assert not status.startswith("200"), status
        assert b"bob's secret" not in body


def test_job_code_finds_nothing_of_bobs_and_nothing_of_the_servers(lab: Lab, ann: Person, bob: Person) -> None:
    homes = lab.data / "pfs" / "local" / "home"
    tries = [
        f"cat {bob.home}/secret",
        f"cat {homes}/{bob.name}/secret",
        f"ls {homes}/{bob.name}",
        f"cat {ann.home}/../{bob.name}/secret",
        f"ln -s {bob.home}/secret {ann.home}/link; cat {ann.home}/link",
        f"ln {homes}/{bob.name}/secret {ann.home}/hard",
        f"cat {lab.data}/server.key {lab.data}/*.key",
        f"cat {lab.data}/*.db",
        f"ls {lab.data}/results/{bob.name}",
        "touch /pfs/public/mine",
        "touch /pfs/local/public/mine",
        f"mkdir /pfs/local/home/{bob.name}/x",
    ]
    script = "\n".join(f"({one}) 2>/dev/null && echo 'REACHED {number}'" for number, one in enumerate(tries))
    state, said = ann.run(f"{script}\ntrue")
    assert (state, said) == ("success", ""), said
    with pytest.raises(RefusedError):
        ann.old.get_file(f"{ann.home}/link")
    assert not (lab.data / "pfs" / "local" / "public" / "mine").exists()


def test_links_that_a_job_leaves_lead_the_server_nowhere(lab: Lab, ann: Person, bob: Person) -> None:
    homes = lab.data / "pfs" / "local" / "home"
    ann.run(f"ln -s {homes}/{bob.name} {ann.home}/folder; ln -s {homes}/{bob.name}/secret {ann.home}/file")
    for path in (f"{ann.home}/folder/secret", f"{ann.home}/file"):
        for way in ("old get", "old chunk", "get"):
            with pytest.raises((RefusedError, PaddleCloudError)):
                WAYS[way](ann, path)
    ann.old.put_file(b"ann's", "x", f"{ann.home}/file")
    ann.old.put_file(b"ann's", "x", f"{ann.home}/folder/secret")
    ann.old.rm(f"{ann.home}/folder/*", recursive=True)
    assert bob.old.get_file(f"{bob.home}/secret") == b"bob's secret"


def test_nobody_keeps_more_than_they_may(lab: Lab, ann: Person) -> None:
    lab.type("user", "quota", ann.name, "--space", "1Mi")
    ann.old.put_file(b"x" * 600_000, "x", f"{ann.home}/first")
    over = b"y" * 600_000
    assert "quota" in ann.old.put_file(over, "x", f"{ann.home}/second")
    with pytest.raises(RefusedError, match="quota"):
        ann.old.upload(over, f"{ann.home}/second")
    with pytest.raises(QuotaError, match=r"keeps .* of 1\.0 MiB"):
        ann.client.http.request("PUT", f"/v1/files{ann.home}/second", body=over)
    (lab.work / "large").write_bytes(over * 20)
    with pytest.raises(QuotaError):
        ann.client.pfs.put(lab.work / "large", f"{ann.home}/second")
    assert ann.old.list_files(ann.home) == ["first", "output"]
    ann.old.rm(f"{ann.home}/first")
    assert ann.old.put_file(over, "x", f"{ann.home}/second") == ""


def test_what_was_acknowledged_survives_a_kill_and_an_upload_goes_on(tmp_path_factory: pytest.TempPathFactory) -> None:
    lab = Lab(tmp_path_factory.mktemp("killed"))
    try:
        lab.type("up")
        ann = Person(lab, "ann")
        whole = bytes(range(256)) * 4096 * 9  # nine mebibytes: three chunks of the old client
        ann.old.put_file(b"whole", "x", f"{ann.home}/before")
        ann.old.touch(f"{ann.home}/large", len(whole))
        ann.old.put_chunk(f"{ann.home}/large", 0, whole[: 4 << 20])
        lab.kill_server()
        lab.type("up")
        again = GoClient(lab.server["url"], ann.name, PASSWORD)
        assert again.get_file(f"{ann.home}/before") == b"whole"
        with pytest.raises(RefusedError, match="no such file"):
            again.stat(f"{ann.home}/large")
        assert again.upload(whole, f"{ann.home}/large") == 2
        lab.kill_server()
        lab.type("up")
        assert GoClient(lab.server["url"], ann.name, PASSWORD).get_file(f"{ann.home}/large") == whole
        assert not list((lab.data / "pfs" / ".drafts").iterdir())
        ann.client.close()
    finally:
        lab.close()
