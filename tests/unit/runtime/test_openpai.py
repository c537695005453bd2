"""OpenPAI's variables, as its own runtime sets them."""

from __future__ import annotations

from paddlecloud.runtime import openpai, variables
from paddlecloud.runtime.openpai import NAMED
from paddlecloud.runtime.taskfile import Role, TaskFile, decode, encode
from tests.unit.runtime.orders import LABELS, alone

PS = Role("ps", 0, 1.0, 1 << 30, 1, 0, ["127.0.0.2"], [[20000, 20001]], LABELS, 0)
WORKERS = Role(
    "My-Worker", 2, 4.0, 8 << 30, 1, 2, ["127.0.0.3", "127.0.0.4"], [[20010, 20011], [20020, 20021]], LABELS, 0
)  # as a job of OpenPAI may call them


FIRST = {
    "protocol": "1",
    "virtual_cluster": "vc2",
    "fs_uri": "hdfs://box:9000",
    "code_dir": "hdfs://box:9000/alice/j",
    "data_dir": "hdfs://box:9000/data",
    "output_dir": "hdfs://box:9000/out",
}


def a_worker() -> TaskFile:
    return alone(
        user="alice",
        job_name="couplet",
        role="My-Worker",
        role_index=1,
        address="127.0.0.4",
        ports=[20020, 20021],
        gpus=[2, 3],
        cluster="vc1",
        roles=[PS, WORKERS],
    )


def test_a_task_is_told_who_and_where_it_is() -> None:
    found = openpai.environment(a_worker())
    assert found["PAI_JOB_NAME"] == found["PAI_FRAMEWORK_NAME"] == "alice~couplet"
    assert (found["PAI_USER_NAME"], found["PAI_VIRTUAL_CLUSTER"]) == ("alice", "vc1")
    assert found["PAI_CURRENT_TASK_ROLE_NAME"] == "My-Worker"
    assert found["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"] == found["PAI_TASK_INDEX"] == "1"
    assert found["PAI_CURRENT_CONTAINER_IP"] == "127.0.0.4"
    assert (found["PAI_CURRENT_CONTAINER_PORT"], found["PAI_CONTAINER_SSH_PORT"]) == ("20020", "20021")
    assert found["PAI_CONTAINER_HOST_PORT_LIST"] == "http:20020;ssh:20021;"
    assert found["PAI_CONTAINER_HOST_http_PORT_LIST"] == "20020"
    assert found["NVIDIA_VISIBLE_DEVICES"] == "2,3"
    assert found["PAI_WORK_DIR"] == "/x/work"


def test_a_task_is_told_of_all_roles_and_their_tasks() -> None:
    found = openpai.environment(a_worker())
    assert (found["PAI_TASK_ROLE_COUNT"], found["PAI_TASK_ROLE_LIST"]) == ("2", "ps,My-Worker")
    assert (found["PAI_TASKS_NUM"], found["PAI_TASK_ROLE_INSTANCES"]) == ("3", "ps:0,My-Worker:0,My-Worker:1")
    assert found["PAI_TASK_ROLE_TASK_COUNT_My-Worker"] == found["PAI_TASK_ROLE_NUM"] == "2"
    assert found["PAI_RESOURCE_My-Worker"] == found["PAI_RESOURCE"] == "2,4,8192,64"
    assert found["PAI_RESOURCE_ps"] == "0,1,1024,64"
    assert (found["PAI_MIN_FAILED_TASK_COUNT_ps"], found["PAI_MIN_SUCCEEDED_TASK_COUNT_ps"]) == ("1", "0")
    assert found["PAI_HOST_IP_ps_0"] == "127.0.0.2"
    assert found["PAI_PORT_LIST_My-Worker_1_ssh"] == found["PAI_My-Worker_1_ssh_PORT"] == "20021"
    assert found["PAI_TASK_ROLE_My-Worker_HOST_LIST"] == "127.0.0.3:20010,127.0.0.4:20020"


def test_a_role_is_also_called_as_newer_versions_call_it() -> None:
    found = openpai.environment(a_worker())
    assert found["PAI_HOST_IP_myworker_1"] == found["PAI_HOST_IP_My-Worker_1"] == "127.0.0.4"
    assert [name for name in found if "PAI_HOST_IP_ps" in name] == ["PAI_HOST_IP_ps_0"]


def test_ports_and_shared_memory_are_what_the_job_asked_for() -> None:
    labels = {"http": [0, 4], "ssh": [1], "web": [5]}
    role = WORKERS._replace(
        labels=labels, shared_memory_bytes=512 << 20, ports=[[1, 2, 3, 4, 5, 6], [11, 12, 13, 14, 15, 16]]
    )
    found = openpai.environment(a_worker()._replace(roles=[PS, role], ports=[11, 12, 13, 14, 15, 16]))
    assert found["PAI_PORT_LIST_My-Worker_0_http"] == found["PAI_My-Worker_0_http_PORT"] == "1,5"
    assert found["PAI_CONTAINER_HOST_PORT_LIST"] == "http:11,15;ssh:12;web:16;"
    assert (found["PAI_CONTAINER_HOST_PORT"], found["PAI_CONTAINER_HOST_web_PORT_LIST"]) == ("11", "16")
    assert found["PAI_RESOURCE"] == "2,4,8192,512"
    assert found["PAI_CURRENT_TASK_ROLE_SHM_MB"] == "512"


def test_a_job_of_the_first_protocol_is_told_its_folders_and_others_are_not() -> None:
    found = openpai.environment(a_worker()._replace(openpai=FIRST))
    assert (found["PAI_DEFAULT_FS_URI"], found["PAI_VIRTUAL_CLUSTER"]) == ("hdfs://box:9000", "vc2")
    assert (found["PAI_CODE_DIR"], found["PAI_DATA_DIR"]) == ("hdfs://box:9000/alice/j", "hdfs://box:9000/data")
    assert found["PAI_OUTPUT_DIR"] == "hdfs://box:9000/out"
    assert (found["FRAMEWORK_NAME"], found["HADOOP_USER_NAME"]) == ("alice~couplet", "alice")
    assert (found["APP_ID"], found["PAI_CONTAINER_ID"]) == ("job-1-1", "job-1-1-trainer-0")
    second = openpai.environment(a_worker()._replace(openpai={**FIRST, "protocol": "2"}))
    assert second["PAI_DEFAULT_FS_URI"] == ""
    assert "PAI_CODE_DIR" not in second
    ours = openpai.environment(a_worker())
    assert not {"PAI_DEFAULT_FS_URI", "PAI_CODE_DIR", "APP_ID", "HADOOP_USER_NAME"} & set(ours)


def test_a_name_that_a_role_has_is_no_other_roles() -> None:
    one, other = WORKERS._replace(name="a_b"), WORKERS._replace(name="ab", addresses=["127.0.0.8", "127.0.0.9"])
    found = openpai.environment(a_worker()._replace(roles=[other, one], role="ab"))
    assert found["PAI_HOST_IP_ab_1"] == "127.0.0.9"


def test_a_task_without_ports_or_gpus_is_told_of_none() -> None:
    found = openpai.environment(alone(ports=[], roles=[PS._replace(name="trainer", ports=[[]])]))
    assert [name for name in found if "PORT" in name] == ["PAI_CONTAINER_HOST_PORT_LIST"]
    assert found["PAI_CONTAINER_HOST_PORT_LIST"] == ""
    assert found["NVIDIA_VISIBLE_DEVICES"] == "none"


def test_every_variable_is_there_and_the_users_own_wins() -> None:
    plain = [named.name for named in NAMED if "<" not in named.name]
    assert len(set(plain)) == len(plain)
    assert set(plain) <= set(variables.environment(a_worker()._replace(openpai=FIRST)))
    assert variables.environment(alone(env={"PAI_USER_NAME": "me"}))["PAI_USER_NAME"] == "me"


def test_roles_survive_the_task_file() -> None:
    task = a_worker()
    assert decode(encode(task)) == task
