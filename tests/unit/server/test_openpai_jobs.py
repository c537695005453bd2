"""What only a server knows of a job of OpenPAI: where its virtual cluster is, where its code, and whose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.model.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from paddlecloud.model.job import JobSpec
from paddlecloud.model.openpai import v1
from paddlecloud.model.openpai.submitted import OpenPaiRequest
from paddlecloud.model.pfs import Access, Who
from paddlecloud.server.audit import HERE
from tests.unit.server.running import Running, running

SETTINGS = {
    "openpai": {"code_limit": "1000", "fs_uri": "hdfs://box:9000/"},
    "queues": {"long": {"cluster": "local"}, "closed": {"cluster": "local", "users": ["bob"]}},
    "hdfs": {"far:9000": {"url": "http://127.0.0.1:1", "user": "hadoop"}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("openpai") / "data", SETTINGS) as server:
        put(server, "ann", "code/train.sh", b"x" * 600)
        put(server, "ann", "code/pkg/m.py", b"x" * 400)
        put(server, "ann", "large/m.bin", b"x" * 1001)
        put(server, "bob", "code/train.sh", b"x")
        server.services.pfs.make_folder(Who(user="ann"), "/pfs/local/home/ann/empty")
        yield server


def put(server: Running, user: str, path: str, content: bytes) -> None:
    place = server.services.pfs.locate(Who(user=user), f"/pfs/local/home/{user}/{path}", Access.WRITE)
    store, at = server.services.pfs.at(place)
    store.write(at, [content])


def spec(server: Running, **changed: Any) -> JobSpec:
    value = {"jobName": "j", "image": "i", "taskRoles": [{"name": "r", "command": "true"}], **changed}
    return server.services.openpai.spec(server.user("ann"), v1.job(value, user="ann"))


@pytest.mark.parametrize(
    "code_dir",
    [
        "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/code",
        "$PAI_DEFAULT_FS_URI/user/ann/code",
        "hdfs://box:9000/ann/code",
        "/ann/code/",
        "/pfs/local/home/ann/code",
    ],
)
def test_code_is_found_by_each_of_its_names_and_copied_under_its_own(server: Running, code_dir: str) -> None:
    (one,) = spec(server, codeDir=code_dir).inputs
    assert one.source.rstrip("/") == "/pfs/local/home/ann/code"
    assert (one.target, one.alias, one.copy) == ("code", "ann~j", True)


@pytest.mark.parametrize(
    ("code_dir", "kind", "words"),
    [
        ("$PAI_DEFAULT_FS_URI/ann/none", InvalidError, "does not exist"),
        ("$PAI_DEFAULT_FS_URI/nowhere/x", InvalidError, "does not exist"),
        ("$PAI_DEFAULT_FS_URI/ann/large", InvalidError, "is 1001 bytes; 1000 is the most"),
        ("$PAI_DEFAULT_FS_URI/user/bob/code", ForbiddenError, "not yours"),
        ("$PAI_DEFAULT_FS_URI/ann/../bob/code", InvalidError, "codeDir"),
        ("$PAI_DEFAULT_FS_URI", InvalidError, "codeDir"),
        ("$PAI_DEFAULT_FS_URI/ann", InvalidError, "bytes"),
        ("relative/path", InvalidError, "codeDir"),
        ("hdfs://other:9000/x", InvalidError, "knows no file system"),
        ("hdfs://far:9000/x", InvalidError, "cannot be reached"),
    ],
)
def test_code_that_cannot_be_had_is_refused_when_it_is_submitted(
    server: Running, code_dir: str, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words) as refused:
        spec(server, codeDir=code_dir)
    assert getattr(refused.value, "field", "") == "codeDir"


def test_code_of_no_bytes_is_nothing_to_copy(server: Running) -> None:
    assert spec(server, codeDir="/ann/empty").inputs == ()
    assert spec(server).inputs == ()


def test_paths_are_told_with_what_the_file_system_is_called(server: Running) -> None:
    told = spec(server, dataDir="$PAI_DEFAULT_FS_URI/data", outputDir="$PAI_DEFAULT_FS_URI/$PAI_USERNAME/out").openpai
    assert told is not None
    assert (told.fs_uri, told.data_dir, told.output_dir) == (
        "hdfs://box:9000",
        "hdfs://box:9000/data",
        "hdfs://box:9000/ann/out",
    )


@pytest.mark.parametrize(
    ("name", "queue", "cluster"), [("default", "", "default"), ("long", "long", "default"), ("local", "", "local")]
)
def test_a_virtual_cluster_is_a_queue_or_a_cluster(server: Running, name: str, queue: str, cluster: str) -> None:
    found = spec(server, virtualCluster=name)
    assert (found.queue, found.cluster) == (queue, cluster)


def test_a_virtual_cluster_that_is_none_or_not_open_is_refused(server: Running) -> None:
    with pytest.raises(InvalidError, match="not found") as refused:
        spec(server, virtualCluster="nowhere")
    assert refused.value.field == "virtualCluster"
    text = '{"jobName": "c", "image": "i", "virtualCluster": "closed", "taskRoles": [{"name": "r", "command": "true"}]}'
    with pytest.raises(ForbiddenError, match="closed"):
        server.services.openpai.submit(server.user("ann"), OpenPaiRequest(text=text), origin=HERE)


def test_a_file_is_submitted_by_its_content_kept_as_it_is_and_tagged(server: Running) -> None:
    service, ann = server.services.openpai, server.user("ann")
    first = '{\n\t"jobName": "one", "image": "i", "taskRoles": [{"name": "r", "command": "true"}]}'
    made = service.submit(ann, OpenPaiRequest(text=first, name="renamed"), origin=HERE)
    assert made.job.spec.name == "renamed"
    assert service.config(made.job).protocol == 1
    second = (
        "protocolVersion: 2\nname: two # mine\ntype: job\nsecrets: {a: b}\n"
        "prerequisites: [{name: i, type: dockerimage, uri: u}]\n"
        "taskRoles: {r: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 9, gpu: 0}, commands: [x]}}\n"
    )
    made = service.submit(ann, OpenPaiRequest(text=second), origin=HERE)
    assert service.config(made.job).text == second.replace("{a: b}", '"******"')
    with pytest.raises(ConflictError, match="already exists"):
        service.submit(ann, OpenPaiRequest(text=second), origin=HERE)
    service.tag(made.job, "mine")
    assert service.tags([made.job.id]) == {made.job.id: ("mine",)}
    with pytest.raises(InvalidError):
        service.tag(made.job, "a,b")
    service.untag(made.job, "mine")
    with pytest.raises(NotFoundError):
        service.untag(made.job, "mine")


@pytest.mark.parametrize("text", ["", "{}", "[1]", "a: b", "{", "\t", "name: x\ntaskRoles: {}"])
def test_what_is_no_job_of_openpai_is_refused(server: Running, text: str) -> None:
    with pytest.raises(InvalidError):
        server.services.openpai.submit(server.user("ann"), OpenPaiRequest(text=text), origin=HERE)
