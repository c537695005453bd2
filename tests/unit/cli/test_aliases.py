"""Seed 002's commands: their parameters, rules and output, to the letter."""

from __future__ import annotations

from argparse import Namespace
from datetime import timedelta

import pytest
from msgspec.structs import replace

from paddlecloud.cli import aliases, files, verbs
from paddlecloud.cli.parser import UsageError
from paddlecloud.model.errors import ConfigError, InvalidError
from paddlecloud.model.job import PSERVER, Job, RoleSpec
from paddlecloud.model.state import JobState, StopReason
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind
from paddlecloud.model.views import Forecast, JobDetail
from paddlecloud.sdk.profile import Profile
from tests.unit.cli.records import CREATED, ID, a_job

SEED_000 = """\
bos_url: output/job-0650470e621f3688812ceda2079805f8
create_time: {created}
error_msg:
finish_time: {finished}
instance_count: 1
instance_ids_list: trainer-0
job_id: job-0650470e621f3688812ceda2079805f8
job_name: tmp_job
job_status: success
job_type: gpu
kill_flag: 0
public_bcc: 1
public_bos: 1
queue_reason:
start_cmd: sh run.sh
start_time: {started}
wall_time: 00:30:00"""


def query_lines(job: Job, forecast: Forecast | None = None) -> list[str]:
    return aliases.query_lines(JobDetail(job=job, forecast=forecast), CREATED)


def read(verb: str, *words: str) -> Namespace:
    return verbs.parser(verbs.VERBS[verb]).read(words)


def test_query_job_prints_seed_000s_fields_in_its_order_and_form() -> None:
    def local(seconds: int) -> str:
        return (CREATED + timedelta(seconds=seconds)).astimezone().strftime("%Y-%m-%d %H:%M:%S")

    expected = SEED_000.format(created=local(0), started=local(19), finished=local(343))
    assert "\n".join(query_lines(a_job())) == expected


def test_a_job_that_waits_has_no_times_and_no_instances_but_a_reason() -> None:
    waiting = a_job(
        state=JobState.QUEUE, placement=None, started_at=None, finished_at=None, queue_reason="no room\nat all"
    )
    lines = query_lines(waiting, Forecast(position=3, about_at=CREATED + timedelta(minutes=12)))
    assert {"start_time:", "finish_time:", "instance_ids_list:", "job_status: queue"} < set(lines)
    assert "queue_reason: 2 jobs before it, starts within 12 min; no room\\nat all" in lines


def test_states_are_written_as_the_manual_writes_them_and_a_kill_is_flagged() -> None:
    assert "job_status: schedule timeout" in query_lines(a_job(state=JobState.SCHEDULE_TIMEOUT))
    lines = query_lines(a_job(state=JobState.KILLED, stop=StopReason.ASKED, error="killed by zhangsan"))
    assert {"kill_flag: 1", "error_msg: killed by zhangsan"} < set(lines)


def test_pservers_are_no_instances_of_their_own() -> None:
    job = a_job()
    pserver = RoleSpec(name=PSERVER, count=1, command="sh ps.sh", min_succeeded=0)
    lines = query_lines(replace(job, spec=replace(job.spec, roles=(pserver, *job.spec.roles))))
    assert {"instance_count: 1", "start_cmd: sh run.sh"} < set(lines)


def test_files_are_listed_as_seed_000_shows_them() -> None:
    later = CREATED + timedelta(seconds=41)
    entries = [
        FileEntry(path=f"output/{ID}/", size=0, modified_at=CREATED, kind=Kind.FOLDER),
        FileEntry(path=f"output/{ID}/log/", size=0, modified_at=CREATED, kind=Kind.FOLDER),
        FileEntry(path=f"output/{ID}/log/trainer-0.log", size=5453, modified_at=later, kind=Kind.FILE),
    ]
    assert list(files.manual_lines(a_job(), entries, f"output/{ID}/")) == [
        f"output/{ID}/\t0\t2020-05-17T10:15:28Z",
        f"output/{ID}/log/trainer-0.log\t5453\t2020-05-17T10:16:09Z",
    ]
    below = list(files.manual_lines(a_job(), entries[2:], f"output/{ID}/log"))
    assert below == [f"output/{ID}/log/trainer-0.log\t5453\t2020-05-17T10:16:09Z"]


def test_submit_job_has_the_manuals_defaults() -> None:
    found = vars(read("submit_job", "--files=job", "--start_cmd=sh run.sh"))
    assert {name: found[name] for name in ("job_name", "cluster", "public_bcc", "public_bos", "job_type")} == {
        "job_name": "tmp_job",
        "cluster": "default",
        "public_bcc": 1,
        "public_bos": 1,
        "job_type": None,
    }
    assert (found["instance_count"], found["wall_time"], found["bos_url"], found["watch_mode"]) == (1, None, "", 0)


def test_parameters_are_given_with_an_equals_sign_or_a_space() -> None:
    one = read("submit_job", "--files=job", "--start_cmd=sh run.sh", "--instance_count=2", "--watch_mode=1")
    two = read("submit_job", "--files", "job", "--start_cmd", "sh run.sh", "--instance_count", "2", "--watch_mode", "1")
    assert vars(one) == vars(two)


def test_the_manuals_misspellings_are_understood() -> None:
    assert read("submit_job", "--file=./job", "--start_cmd=x").files == "./job"
    assert read("get_fils", "--job_id=x").run is read("get_files", "--job_id=x").run


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--files=job"], "--start_cmd is missing"),
        (["--fils=job"], "--fils is not an option; did you mean '--files'?"),
        (["--files=job", "--start_cmd=x", "--public_bcc=2"], "--public_bcc: '2' is not known"),
        (["--files=job", "--start_cmd=x", "--job_type=tpu"], "--job_type: 'tpu' is not known"),
        (["--files=job", "--start_cmd=x", "--instance_count=two"], "--instance_count: 'two' is not a whole number"),
        (["--files=job", "--start_cmd"], "--start_cmd needs a value"),
        (["--files=job", "--start_cmd=x", "more"], "'more' is one argument too many"),
    ],
)
def test_a_wrong_parameter_is_named(words: list[str], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        read("submit_job", *words)
    assert says in caught.value.message
    assert caught.value.program == "paddlecloud submit_job"


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ([], "files"),
        (["--files=job", "--start_cmd= "], "start_cmd"),
        (["--files=job", "--instance_count=0"], "instance_count"),
        (["--files=job", "--bos_url=b.bj.bcebos.com/d"], "bos_url"),
        (["--public_bos=0"], "bos_url"),
        (["--public_bos=0", "--bos_url=b.bj.bcebos.com/d", "--files=job"], "files"),
    ],
)
def test_files_go_with_public_storage_and_a_bos_url_with_ones_own(words: list[str], field: str) -> None:
    with pytest.raises(InvalidError) as caught:
        aliases.check(read("submit_job", "--start_cmd=x", *words), Profile())
    assert caught.value.field == field


def test_resources_of_ones_own_need_their_section_of_client_conf() -> None:
    args = read("submit_job", "--start_cmd=x", "--files=job", "--public_bcc=0")
    with pytest.raises(ConfigError, match=r"sk in section \[bcc\] of /home/x/client.conf, and even then .* machines"):
        aliases.check(args, Profile(private={"bcc": {"ak": "a"}}, client_conf="/home/x/client.conf"))
    aliases.check(args, Profile(private={"bcc": {"ak": "a", "sk": "s"}}, client_conf="/home/x/client.conf"))
    args = read("submit_job", "--start_cmd=x", "--public_bos=0", "--bos_url=b.bj.bcebos.com/d")
    with pytest.raises(
        ConfigError, match=r"ak and sk in section \[bos\] of /home/x/client.conf.* leave public_bos at 1"
    ):
        aliases.check(args, Profile(client_conf="/home/x/client.conf"))
