"""Users, groups, virtual clusters and storages by OpenPAI's API: the records that every other face has."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from paddlecloud.model.errors import UnauthenticatedError
from paddlecloud.model.job import Resources
from paddlecloud.server.app import utc_now
from paddlecloud.server.dialects.openpai.route import LOGIN
from tests.unit.server.openpai.asking import PASSWORD, Pai
from tests.unit.server.running import running

USER = {"username", "email", "grouplist", "extension", "admin", "virtualCluster", "storageConfig"}
PLAIN = {
    "clusters": {"local": {"policy": "open"}, "far": {"policy": "open"}},
    "queues": {"long": {"users": ["nobody"]}, "short": {"cluster": "local"}},
}
CAPACITIES = {"local": Resources(cpus=8.0, memory_bytes=16 * 2**30, gpus=4), "far": None}


@pytest.fixture(scope="module")
def pai(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pai]:
    with running(tmp_path_factory.mktemp("people") / "data", PLAIN, CAPACITIES) as server:
        yield Pai(server)


@pytest.fixture(scope="module")
def root(pai: Pai) -> str:
    return pai.server.services.passes.make("root-of-all", LOGIN, lasting=timedelta(hours=1), now=utc_now())


def test_a_user_is_added_changed_and_removed(pai: Pai, root: str) -> None:
    new = {"username": "eve", "password": "long enough", "email": "eve@lab.example", "extension": {"a": 1}}
    for path in ("/v2/users/", "/v2/users"):
        answer = pai.send("POST", path, new, token=root)
        if path.endswith("/"):
            assert (answer.status, answer.json()) == (201, {"message": "User is created successfully"}), answer.data
    assert (answer.status, answer.json()["code"]) == (409, "ConflictUserError")
    assert answer.json()["message"] == "User name eve already exists."
    eve = pai.get("/v2/users/eve", root)
    assert set(eve) == USER
    assert (eve["email"], eve["grouplist"], eve["extension"], eve["admin"]) == (
        "eve@lab.example",
        ["default"],
        {"a": 1},
        False,
    )
    assert pai.login("eve", "long enough")
    changed = {"patch": True, "data": {"username": "eve", "email": "e@lab.example", "admin": True}}
    assert pai.send("PUT", "/v2/users", changed, token=root).status == 201
    eve = pai.get("/v1/user/eve", root)
    assert (eve["email"], eve["admin"], eve["grouplist"]) == ("e@lab.example", True, ["default", "admin"])
    assert pai.refused("DELETE", "/v2/users/eve", token=root) == (403, "RemoveAdminError")
    assert pai.send("DELETE", "/v2/users/eve/group", {"groupname": "admin"}, token=root).status == 201
    removed = pai.send("DELETE", "/v2/users/eve", token=root)
    assert (removed.status, removed.json()) == (200, {"message": "user is removed successfully"})
    assert pai.refused("GET", "/v2/users/eve", token=root) == (400, "NoUserError")
    assert "eve" not in [user["username"] for user in pai.get("/v2/users/", root)]
    assert pai.form("/v1/token", username="eve", password="long enough").status == 400


def test_a_removed_user_is_made_again_with_their_files_and_no_older_credential(pai: Pai, root: str) -> None:
    new = {"username": "fay", "password": "long enough", "email": "fay@lab.example"}
    assert pai.send("POST", "/v2/users", new, token=root).status == 201
    login = pai.login("fay", "long enough")
    application = pai.send("POST", "/v2/tokens/application", token=login).json()["token"]
    users = pai.server.users
    key, _ = users.add_key("fay", utc_now())
    address = pai.server.services.hdfs_callers.access(users.get("fay")).path
    folder = f"{address}/webhdfs/v1/user/fay/kept?user.name=fay&op="
    assert pai.send("PUT", f"/{folder}MKDIRS", token="").json() == {"boolean": True}
    assert pai.send("DELETE", "/v2/users/fay", token=root).status == 200
    assert pai.send("POST", "/v2/users", {**new, "password": "another one"}, token=root).status == 201
    assert pai.refused("POST", "/v2/users", new, token=root) == (409, "ConflictUserError")
    for token in (login, application):
        assert pai.refused("GET", "/v2/users/fay", token=token) == (401, "UnauthorizedUserError")
    assert pai.form("/v1/token", username="fay", password="long enough").status == 400
    assert pai.send("GET", f"/{folder}GETFILESTATUS", token="").status == 401
    with pytest.raises(UnauthenticatedError):
        users.key_secret(key.ak)
    assert pai.login("fay", "another one")
    again = pai.server.services.hdfs_callers.access(users.get("fay")).path
    assert pai.send("GET", f"/{folder}GETFILESTATUS".replace(address, again), token="").status == 200


def test_setting_the_same_password_again_ends_no_token(pai: Pai, root: str) -> None:
    new = {"username": "gus", "password": "long enough"}
    assert pai.send("POST", "/v2/users", new, token=root).status == 201
    login = pai.login("gus", "long enough")
    for password, status in (("long enough", 200), ("longer still", 401)):
        changed = {"patch": True, "data": {"username": "gus", "password": password}}
        assert pai.send("PUT", "/v2/users", changed, token=root).status == 201
        assert pai.send("GET", "/v2/users/gus", token=login).status == status


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "InvalidParametersError"),
        ({"username": "x y", "password": "long enough"}, "InvalidParametersError"),
        ({"username": "x", "password": "short"}, "InvalidParametersError"),
        ({"username": "x", "password": 5}, "InvalidParametersError"),
        ({"username": "x", "password": "long enough", "email": "no address"}, "InvalidParametersError"),
        ({"username": "x", "password": "long enough", "admin": "perhaps"}, "InvalidParametersError"),
        ({"username": "x", "password": "long enough", "extension": []}, "InvalidParametersError"),
        ({"username": "x", "password": "long enough", "virtualCluster": ["elsewhere"]}, "NoVirtualClusterError"),
        ({"username": "x", "password": "long enough", "virtualCluster": ["long"]}, "InvalidParametersError"),
    ],
    ids=str,
)
def test_a_user_that_cannot_be_is_refused(pai: Pai, root: str, body: dict[str, object], code: str) -> None:
    assert pai.refused("POST", "/v2/users", body, token=root) == (400, code)
    assert pai.refused("GET", "/v2/users/x", token=root) == (400, "NoUserError")


def test_a_whole_user_must_be_whole(pai: Pai, root: str) -> None:
    told = {"patch": False, "data": {"username": "ann", "email": "a@b.example"}}
    assert pai.refused("PUT", "/v2/users", told, token=root) == (400, "InvalidParametersError")
    told = {"patch": True, "data": {"username": "nobody", "email": "a@b.example"}}
    assert pai.refused("PUT", "/v2/users", told, token=root) == (404, "NoUserError")


def test_everybody_changes_what_is_their_own_and_nothing_else(pai: Pai) -> None:
    token = pai.login()
    mine = {"patch": True, "data": {"username": "carl", "email": "carl@lab.example", "extension": {"k": "v"}}}
    assert pai.send("PUT", "/v2/users/me", mine, token=token).status == 201
    assert pai.get("/v2/users/carl", token)["email"] == "carl@lab.example"
    other = {"patch": True, "data": {"username": "ann", "email": "x@y.example"}}
    assert pai.refused("PUT", "/v2/users/me", other, token=token) == (403, "ForbiddenUserError")
    sneaky = {"patch": True, "data": {"username": "carl", "admin": True}}
    assert pai.send("PUT", "/v2/users/me", sneaky, token=token).status == 201
    assert pai.get("/v2/users/carl", token)["admin"] is False
    new = {"patch": True, "data": {"username": "carl", "newPassword": "newer horse", "oldPassword": "wrong horse"}}
    assert pai.refused("PUT", "/v2/users/me", new, token=token) == (400, "IncorrectPasswordError")
    new["data"]["oldPassword"] = PASSWORD  # type: ignore[index]
    assert pai.send("PUT", "/v2/users/me", new, token=token).status == 201
    assert pai.refused("GET", "/v2/jobs", token=token) == (401, "UnauthorizedUserError"), "a new password ends tokens"
    pai.server.users.change("carl", password=PASSWORD)


def test_who_is_on_a_server_is_for_admins(pai: Pai) -> None:
    assert [user["username"] for user in pai.get("/v2/users")] == ["ann"]
    assert pai.get("/v2/users/ann")["username"] == "ann"
    for method, path, body in (
        ("GET", "/v2/users/bob", None),
        ("POST", "/v2/users", {"username": "x", "password": "long enough"}),
        ("PUT", "/v2/users", {"patch": True, "data": {"username": "ann", "admin": True}}),
        ("DELETE", "/v2/users/bob", None),
        ("PUT", "/v2/users/ann/group", {"groupname": "admin"}),
        ("PUT", "/v2/users/ann/grouplist", {"grouplist": ["admin"]}),
        ("PUT", "/v2/users/ann/admin", {"admin": True}),
        ("PUT", "/v2/users/bob/extension", {"extension": {}}),
        ("PUT", "/v2/users/bob/password", {"newPassword": "long enough"}),
        ("POST", "/v2/groups", {"groupname": "mine"}),
        ("GET", "/v2/groups/default/userlist", None),
        ("GET", "/v2/kubernetes/nodes", None),
        ("GET", "/v2/kubernetes/pods", None),
    ):
        assert pai.refused(method, path, body) == (403, "ForbiddenUserError"), path
    assert pai.get("/v2/users/ann")["admin"] is False


def test_an_application_of_an_admin_is_no_admin(pai: Pai, root: str) -> None:
    made = pai.send("POST", "/v2/tokens/application", token=root).json()["token"]
    pai.server.submit(name="of-ann")
    assert pai.get("/v2/jobs", made) == []
    for method, path in (("POST", "/v2/users"), ("DELETE", "/v2/users/bob"), ("GET", "/v2/kubernetes/nodes")):
        assert pai.refused(method, path, {}, token=made) == (403, "ForbiddenUserError"), path
    assert [user["username"] for user in pai.get("/v2/users", made)] == ["root-of-all"]


def test_one_field_at_a_time_by_the_older_addresses(pai: Pai, root: str) -> None:
    assert pai.send("PUT", "/v2/users/ann/extension", {"extension": {"ssh": "key"}}).status == 201
    assert pai.get("/v2/users/ann")["extension"] == {"ssh": "key"}
    assert pai.send("PUT", "/v1/user/ann/email", {"email": "ann@lab.example"}, token=root).status == 201
    assert pai.get("/v2/users/ann")["email"] == "ann@lab.example"
    assert pai.refused("PUT", "/v2/users/ann/shoes", {"shoes": 5}, token=root) == (404, "NoApiError")


def test_groups_are_those_of_every_other_face(pai: Pai, root: str) -> None:
    acls = {"admin": False, "virtualClusters": ["long", "local"], "storageConfigs": []}
    new = {"groupname": "vision", "description": "eyes", "externalName": "", "extension": {"acls": acls, "x": [1]}}
    assert pai.send("POST", "/v2/groups", new, token=root).status == 201
    assert pai.refused("POST", "/v2/groups", new, token=root) == (409, "ConflictGroupError")
    group = pai.server.get("/v1/groups/vision", pai.server.root)
    assert (group["queues"], group["extension"]) == (["long"], {"x": [1]})
    shown = pai.get("/v2/groups/vision", root)
    assert shown["extension"] == {"x": [1], "acls": {"admin": False, "virtualClusters": ["long"], "storageConfigs": []}}
    assert [one["groupname"] for one in pai.get("/v2/groups", root)] == ["default", "admin", "vision"]
    assert [one["groupname"] for one in pai.get("/v2/groups")] == ["default"]
    assert pai.refused("GET", "/v2/groups/vision") == (400, "NoGroupError")
    assert pai.send("PUT", "/v2/users/ann/group", {"groupname": "vision"}, token=root).status == 201
    assert pai.get("/v2/users/ann")["grouplist"] == ["default", "vision"]
    assert pai.get("/v2/groups/vision/userlist", root) == [{"username": "ann", "clusterAdmin": False}]
    told = {"patch": True, "data": {"groupname": "vision", "description": "ears"}}
    assert pai.send("PUT", "/v2/groups", told, token=root).status == 201
    assert pai.send("PUT", "/v2/groups/vision/externalname", {"externalName": "cn=vision"}, token=root).status == 201
    assert pai.send("PUT", "/v2/groups/vision/extension/acls/virtualClusters", {"data": []}, token=root).status == 201
    shown = pai.get("/v2/groups/vision", root)
    assert (shown["description"], shown["externalName"]) == ("ears", "cn=vision")
    assert shown["extension"]["acls"]["virtualClusters"] == []
    assert pai.send("PUT", "/v2/users/ann/grouplist", {"grouplist": ["default"]}, token=root).status == 201
    assert pai.get("/v2/users/ann")["grouplist"] == ["default"]
    assert pai.refused("PUT", "/v2/users/ann/group", {"groupname": "gone"}, token=root) == (404, "NoGroupError")
    assert pai.refused("PUT", "/v2/users/ann/grouplist", {"grouplist": ["gone"]}, token=root) == (404, "NoGroupError")
    assert pai.send("DELETE", "/v2/groups/vision", token=root).status == 200
    assert pai.refused("DELETE", "/v2/groups/vision", token=root) == (404, "NoGroupError")
    assert pai.refused("DELETE", "/v2/groups/default", token=root) == (403, "ForbiddenUserError")


@pytest.mark.parametrize(
    "body",
    [
        {"groupname": "x y"},
        {"groupname": "default"},
        {"groupname": "g", "extension": []},
        {"groupname": "g", "extension": {"acls": []}},
        {"groupname": "g", "extension": {"acls": {"admin": True}}},
        {"groupname": "g", "extension": {"acls": {"virtualClusters": ["elsewhere"]}}},
        {"groupname": "g", "extension": {"acls": {"virtualClusters": "long"}}},
        {},
    ],
    ids=str,
)
def test_a_group_that_cannot_be_is_refused(pai: Pai, root: str, body: dict[str, object]) -> None:
    assert pai.refused("POST", "/v2/groups", body, token=root)[0] == 400


def test_virtual_clusters_are_queues_and_clusters(pai: Pai, root: str) -> None:
    everything = pai.get("/v2/virtual-clusters", root)
    assert list(everything) == ["default", "long", "short", "local", "far"]
    assert list(pai.get("/v1/virtual-clusters")) == ["default", "short", "local", "far"]
    local = everything["local"]
    assert local["resourcesTotal"] == {"cpu": 8.0, "memory": 16384, "gpu": 4, "vCores": 8.0, "GPUs": 4}
    assert (local["status"], local["capacity"], local["dedicated"]) == ("RUNNING", 100, False)
    asks = [{"name": "trainer", "count": 1, "command": "go on", "resources": {"cpus": 2.0, "gpus": 1}}]
    job = pai.server.run(name="uses", roles=asks, queue="short")
    used = pai.get("/v2/virtual-clusters/short")
    assert (used["resourcesUsed"]["gpu"], used["numActiveJobs"], used["numJobs"]) == (1, 1, 1)
    assert used["usedCapacity"] == 25.0
    nodes = pai.get("/v2/virtual-clusters?nodes")
    assert list(nodes) == ["local"]
    assert (nodes["local"]["gpuTotal"], nodes["local"]["gpuUsed"] + nodes["local"]["gpuAvailable"]) == (4, 4)
    assert pai.get("/v2/virtual-clusters/long", root)["numJobs"] == 0
    assert pai.refused("GET", "/v2/virtual-clusters/long") == (404, "NoVirtualClusterError")
    assert pai.refused("GET", "/v2/virtual-clusters/elsewhere", token=root) == (404, "NoVirtualClusterError")
    machines = pai.get("/v2/kubernetes/nodes", root)["items"]
    assert [node["metadata"]["name"] for node in machines] == ["local", "far"]
    pods = pai.get("/v2/kubernetes/pods?namespace=default", root)["items"]
    assert job in str(pods)
    assert pai.get("/v2/kubernetes/pods?namespace=other", root)["items"] == []
    pai.server.finish(job)


def test_a_queue_that_is_not_for_all_is_not_named_to_who_asks_for_another(pai: Pai) -> None:
    role = {"name": "a", "command": "true"}
    job = {"jobName": "astray", "image": "x", "virtualCluster": "elsewhere", "taskRoles": [role]}
    answer = pai.send("POST", "/v1/jobs", job)
    assert (answer.status, answer.json()["code"]) == (404, "NoVirtualClusterError")
    assert "long" not in answer.json()["message"]


def test_virtual_clusters_are_the_configs_to_change(pai: Pai, root: str) -> None:
    change = {"vcCapacity": 10}
    assert pai.refused("PUT", "/v2/virtual-clusters/default", change, token=root) == (403, "ForbiddenUserError")
    assert pai.refused("DELETE", "/v2/virtual-clusters/default", token=root) == (403, "ForbiddenUserError")
    assert pai.refused("PUT", "/v2/virtual-clusters/long", change, token=root) == (403, "ReadOnlyVcError")
    assert pai.refused("PUT", "/v1/virtual-clusters/long/status", {"vcStatus": "stopped"}, token=root)[0] == 403
    assert pai.refused("DELETE", "/v2/virtual-clusters/gone", token=root) == (404, "NoVirtualClusterError")
    assert pai.refused("DELETE", "/v2/virtual-clusters/short") == (403, "ForbiddenUserError")
    assert pai.get("/v2/cluster/sku-types?vc=short") == pai.get("/v2/virtual-clusters/short/sku-types") == {}


def test_storages_are_shared_folders(pai: Pai, root: str) -> None:
    made = pai.server.ask("POST", "/v1/shared", {"name": "demo", "writers": ["default"]}, token=pai.server.root)
    assert made.status == 201, made.data
    made = pai.server.ask("POST", "/v1/shared", {"name": "closed", "readers": ["admin"]}, token=pai.server.root)
    assert made.status == 201, made.data
    listed = pai.get("/v2/storages")["storages"]
    assert listed == [{"name": "demo", "share": True, "volumeName": "/pfs/local/shared/demo", "default": False}]
    assert [one["name"] for one in pai.get("/v2/storages", root)["storages"]] == ["closed", "demo"]
    assert pai.get("/v2/storages?default=true") == {"storages": []}
    demo = pai.get("/v2/storages/demo")
    assert (demo["type"], demo["readOnly"], demo["data"]) == ("other", False, {"path": "/pfs/local/shared/demo"})
    assert pai.refused("GET", "/v2/storages/closed") == (404, "NoStorageError")
    assert pai.get("/v2/storages/closed", root)["readOnly"], "an admin who may only read"
    assert pai.get("/v2/users/ann")["storageConfig"] == ["demo"]
    assert pai.get("/v2/groups/default")["extension"]["acls"]["storageConfigs"] == ["demo"]
