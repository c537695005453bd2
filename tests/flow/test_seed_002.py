"""Seeds 000 and 002, typed as their users would."""

from __future__ import annotations

import re
from pathlib import Path

from tests.flow.lab import Lab, processes_with
from tests.waiting import wait_until


def test_a_folder_becomes_a_job_and_its_results_come_back(desk: Lab) -> None:
    desk.folder(run_sh='echo "step 1"\nmkdir -p $OUTPUT_PATH/0\necho weights > $OUTPUT_PATH/0/fc_0.w_0\n')
    job = desk.out("submit_job", "--files=job", "--start_cmd=sh run.sh").split()[-1]
    assert re.fullmatch(r"job-[0-9a-f]{32}", job)
    desk.ends(job, "success")

    listing = [line.split("\t") for line in desk.out("get_files", f"--job_id={job}").splitlines()]
    assert listing[0][:2] == [f"output/{job}/", "0"]
    sizes = {path: size for path, size, _ in listing}
    assert sizes[f"output/{job}/log/trainer-0.log"] == "7"
    assert sizes[f"output/{job}/rank-0/0/fc_0.w_0"] == "8"
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", time) for _, _, time in listing)

    desk.type("get_files", f"--job_id={job}", f"--prefix=output/{job}/log", "--download=1")
    assert (desk.work / "output" / job / "log" / "trainer-0.log").read_text() == "step 1\n"
    desk.type("get_files", f"--job_id={job}", "--download=1", "--download_dir=result")
    assert (desk.work / "result" / job / "rank-0" / "0" / "fc_0.w_0").read_text() == "weights\n"
    refused = desk.type("get_files", f"--job_id={job}", "--download=1", "--download_dir=result", code=2)
    assert "result" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_query_job_prints_seed_000s_fields_in_its_order(desk: Lab) -> None:
    job = desk.submit("true")
    desk.ends(job, "success")
    lines = desk.out("query_job", f"--job_id={job}").splitlines()
    assert [line.partition(":")[0] for line in lines] == (
        "bos_url create_time error_msg finish_time instance_count instance_ids_list job_id job_name job_status "
        "job_type kill_flag public_bcc public_bos queue_reason start_cmd start_time wall_time"
    ).split()
    fields = dict(line.partition(":")[::2] for line in lines)
    assert re.fullmatch(r" \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", fields["create_time"])
    assert fields["error_msg"].strip() == ""
    assert fields["job_name"] == " tmp_job"
    assert fields["job_status"] == " success"
    assert fields["job_type"] == " cpu"
    assert fields["wall_time"] == " 00:30:00"


def test_a_prefix_of_get_files_is_one_of_paths_which_are_listed_in_their_order(desk: Lab) -> None:
    job = desk.submit("cd $OUTPUT_PATH; mkdir model; for name in model/a model.b modest other; do echo 1 > $name; done")
    desk.ends(job, "success")

    def listed(*more: str) -> list[str]:
        lines = desk.out("get_files", f"--job_id={job}", *more).splitlines()
        return [line.split("\t")[0].removeprefix(f"output/{job}/") for line in lines]

    names = ["rank-0/model.b", "rank-0/model/a", "rank-0/modest", "rank-0/other"]
    assert listed() == ["", "log/trainer-0.log", *names], "in the order of the bytes of whole paths"
    assert listed(f"--prefix=output/{job}/rank-0/model") == names[:2]
    assert listed("--prefix=rank-0/mod") == names[:3]
    assert listed("--prefix=rank-0/model/") == names[1:2]
    desk.type("get_files", f"--job_id={job}", "--prefix=rank-0/model", "--download=1")
    brought = sorted(path.name for path in (desk.work / "output" / job / "rank-0").rglob("*") if path.is_file())
    assert brought == ["a", "model.b"]
    assert "no file" in desk.type("get_files", f"--job_id={job}", "--prefix=rank-0/x", code=102).stderr


def test_the_prefix_that_means_everything_brings_the_jobs_own_files_too(desk: Lab) -> None:
    desk.folder(run_sh="echo 1 > $OUTPUT_PATH/model\n")
    (desk.work / "job" / "data").mkdir()
    (desk.work / "job" / "data" / "part-0").write_text("a line\n")
    job = desk.submit("sh run.sh")
    desk.ends(job, "success")
    listed = [line.split("\t")[:2] for line in desk.out("get_files", f"--job_id={job}", "--prefix=/").splitlines()]
    assert listed == [
        ["data/part-0", "7"],
        [f"output/{job}/", "0"],
        [f"output/{job}/log/trainer-0.log", "0"],
        [f"output/{job}/rank-0/model", "2"],
        ["run.sh", str(len("echo 1 > $OUTPUT_PATH/model\n"))],
    ]
    desk.type("get_files", f"--job_id={job}", "--prefix=/", "--download=1", "--download_dir=all")
    assert (desk.work / "all" / "data" / "part-0").read_text() == "a line\n"
    assert (desk.work / "all" / "run.sh").read_text() == "echo 1 > $OUTPUT_PATH/model\n"
    assert (desk.work / "all" / job / "rank-0" / "model").read_text() == "1\n"


def test_what_is_brought_back_is_left_out_of_the_next_upload(desk: Lab) -> None:
    desk.folder(run_sh="find . -mindepth 1 | sort; echo 1 > $OUTPUT_PATH/model\n")
    folder = desk.work / "job"
    desk.work = folder
    try:
        assert desk.type("run", ".", "--", "sh", "run.sh").stdout == "./run.sh\n"
        [results] = folder.glob("output-*")
        [job] = [path.name for path in results.iterdir() if path.is_dir()]
        assert (results / job / "rank-0" / "model").read_text() == "1\n"
        desk.type("get_files", f"--job_id={job}", "--download=1")
        assert (folder / "output" / ".gitignore").read_text() == "*\n"
        again = desk.type("run", ".", "--no-download", "--", "sh", "run.sh")
        assert again.stdout == "./run.sh\n"
        done = desk.type("run", ".", "--", "true")
        assert "it left no results" in done.stderr
        assert len(list(folder.glob("output-*"))) == 1, "no folder is made for no results"
    finally:
        desk.work = folder.parent


def test_watch_mode_prints_each_change_of_state(desk: Lab) -> None:
    desk.folder()
    said = desk.out("submit_job", "--files=job", "--start_cmd=sleep 1", "--watch_mode=1")
    for state in ("submit", "schedule", "running", "success"):
        assert re.search(rf"\b{state}\b", said), said


def test_a_killed_job_is_gone_before_it_is_called_killed(lab: Lab) -> None:
    script = "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' & (sleep 1000 &) ; trap '' TERM; sleep 1000"
    lab.configure('[jobs]\ngrace = "1s"\n')
    job = lab.submit(script)
    wait_until(lambda: lab.field(job, "job_status") == "running", "it runs")
    lab.type("kill_job", f"--job_id={job}")
    lab.ends(job, "killed")
    assert processes_with(job) == []
    assert lab.field(job, "kill_flag") == "1"


def test_a_job_over_its_wall_time_is_stopped_with_notice_and_times_out(lab: Lab) -> None:
    lab.configure('[jobs]\ngrace = "5s"\n')
    lab.folder(
        run_sh="trap 'echo saved > $OUTPUT_PATH/checkpoint; exit 0' TERM\necho begun\nwhile :; do sleep 0.1; done\n"
    )
    job = lab.out("submit_job", "--files=job", "--start_cmd=sh run.sh", "--wall_time=00:00:01").split()[-1]
    lab.ends(job, "timeout")
    assert "wall_time 00:00:01" in lab.field(job, "error_msg")
    assert f"output/{job}/rank-0/checkpoint\t6" in lab.out("get_files", f"--job_id={job}")


def test_a_job_that_waits_too_long_is_called_schedule_timeout(lab: Lab) -> None:
    lab.configure('[jobs]\nschedule_limit = "2s"\n[clusters.local]\nbackend = "local"\ncpus = 1\n')
    first = lab.submit("sleep 60")
    second = lab.submit("true")
    lab.ends(second, "schedule timeout")
    waited = [row.why for row in lab.client().get(second).history if row.to_state.label == "queue"]
    assert "needs 1 CPU" in waited[0]
    lab.type("kill_job", f"--job_id={first}")
    lab.ends(first, "killed")


def test_a_failed_job_names_the_first_task_and_its_last_lines(desk: Lab) -> None:
    job = desk.submit("echo loading; echo no such file >&2; exit 3")
    desk.ends(job, "failed")
    assert desk.field(job, "error_msg") == "trainer-0 failed first: exit code 3"
    said = desk.type("show", job).stdout
    assert "no such file" in said
    assert desk.type("wait", job, code=100).returncode == 100


def test_every_task_of_a_gang_has_its_own_variables(desk: Lab) -> None:
    desk.folder(
        run_sh="env > $OUTPUT_PATH/env\ntest -r $LOCAL_MOUNT_PATH/run.sh\n"
        "[ $TRAINING_ROLE = TRAINER ] || exec python listen.py\n",
        listen_py="import os, socket, time\n"
        "listener = socket.create_server((os.environ['POD_IP'], int(os.environ['PADDLE_PORT'])))\n"
        "time.sleep(1000)\n",
    )
    job = desk.out("submit_job", "--files=job", "--start_cmd=sh run.sh", "--instance_count=2").split()[-1]
    desk.ends(job, "success")
    desk.type("get_files", f"--job_id={job}", "--download=1", "--download_dir=result")
    seen = {path.parent.name: read_env(path) for path in (desk.work / "result" / job).glob("*/env")}
    assert set(seen) == {"rank-0", "rank-1", "pserver-0", "pserver-1"}
    first, second, server = seen["rank-0"], seen["rank-1"], seen["pserver-1"]
    assert [first["PADDLE_TRAINER_ID"], second["PADDLE_TRAINER_ID"]] == ["0", "1"]
    assert {env["PADDLE_TRAINERS_NUM"] for env in seen.values()} == {"2"}
    assert {env["JOB_ID"] for env in seen.values()} == {job}
    assert {env["DISTRIBUTE_JOB_TYPE"] for env in seen.values()} == {"PSERVER"}
    assert {env["PADDLE_IS_LOCAL"] for env in seen.values()} == {"0"}
    assert {env["PADDLE_USE_CUDA"] for env in seen.values()} == {"0"}
    assert [first["TRAINING_ROLE"], server["TRAINING_ROLE"]] == ["TRAINER", "PSERVER"]
    endpoints = first["PADDLE_TRAINER_ENDPOINTS"].split(",")
    assert endpoints == [first["PADDLE_CURRENT_ENDPOINT"], second["PADDLE_CURRENT_ENDPOINT"]]
    servers = first["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
    assert servers[1] == f"{server['POD_IP']}:{server['PADDLE_PORT']}"
    assert len({*endpoints, *servers}) == 4
    assert first["OUTPUT_PATH"] != second["OUTPUT_PATH"]
    assert first["LOCAL_LOG_PATH"] != second["LOCAL_LOG_PATH"]


def test_each_trainer_of_a_gpu_job_sees_a_gpu_of_its_own(lab: Lab) -> None:
    lab.configure('[clusters.local]\nbackend = "local"\ngpus = 2\n')
    lab.folder(run_sh="env > $OUTPUT_PATH/env\n")
    job = lab.out("submit_job", "--files=job", "--start_cmd=sh run.sh", "--instance_count=2").split()[-1]
    lab.ends(job, "success")
    lab.type("get_files", f"--job_id={job}", "--download=1", "--download_dir=result")
    seen = [read_env(lab.work / "result" / job / rank / "env") for rank in ("rank-0", "rank-1")]
    assert [env["CUDA_VISIBLE_DEVICES"] for env in seen] == ["0", "1"]
    assert {env["PADDLE_USE_CUDA"] for env in seen} == {"1"}
    assert {env["DISTRIBUTE_JOB_TYPE"] for env in seen} == {"NCCL2"}
    assert lab.field(job, "job_type") == "gpu"


def read_env(path: Path) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in path.read_text().splitlines())
