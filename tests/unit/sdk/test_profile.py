"""Which server and who am I, from every place that may say so."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from paddlecloud.model.errors import ConfigError
from paddlecloud.sdk import profile as profiles
from paddlecloud.sdk.clientconf import read_client_conf
from paddlecloud.sdk.profile import Surroundings, load

SEED_000_MAIN = """\
     // 注：如下内容仅为示例，以自己收到的邮件中的内容为准
     [main]
     debug = 0
     userid: zhangsan
     ak: 0123456789abcdef
     sk: fedcba9876543210
"""

SEED_000_PRIVATE = """\
[bcc]
ak: // 私人的百度云虚拟化计算资源Access Key
sk: // 私人的百度云虚拟化计算资源Secret Key

[bos]:
ak: mine // 私人的百度云虚拟化存储资源Access Key
sk: // 私人的百度云虚拟化存储资源Secret Key
"""

SEED_002 = """\
// 免费使用时需要配置该部分的内容
// user_id：用户id，是用户的唯一身份表示
// ak：Access Key
// sk: Secret Key
[main]
debug = 0
user_id = zhangsan
ak = 0123456789abcdef
sk = fedcba9876543210

[openapi]
host = cloud.example.com
port = 80

// 付费使用时需要配置该部分的内容
[bcc]
host = bcc.bj.baidubce.com
ak =
sk =

[bos]
host = bj.bcebos.com
ak =
sk =
"""


def around(home: Path, **variables: str) -> Surroundings:
    return Surroundings(variables=variables, home=home)


def put(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def client_conf(home: Path, text: str, folder: str = "bin/paddlecloud/conf") -> Path:
    return put(home / folder / "client.conf", text)


def own_config(home: Path, text: str) -> Path:
    return put(home / ".config" / "paddlecloud" / "config.toml", text)


def test_seed_002s_client_conf_is_read_as_printed(tmp_path: Path) -> None:
    file = client_conf(tmp_path, SEED_002)
    found = load(around(tmp_path))
    assert (found.server, found.user) == ("http://cloud.example.com", "zhangsan")
    assert (found.ak, found.sk) == ("0123456789abcdef", "fedcba9876543210")
    assert found.sources["ak"] == found.sources["server"] == str(file)
    assert not found.embedded


def test_seed_000s_client_conf_is_read_as_printed(tmp_path: Path) -> None:
    client_conf(tmp_path, SEED_000_MAIN + SEED_000_PRIVATE, "bin/paddlecloud")
    found = load(around(tmp_path))
    assert (found.user, found.ak) == ("zhangsan", "0123456789abcdef")
    assert found.private["bcc"] == {"ak": "", "sk": ""}
    assert found.private["bos"] == {"ak": "mine", "sk": ""}


def test_a_key_whose_server_nothing_names_is_not_shown_to_the_embedded_one(tmp_path: Path) -> None:
    data = tmp_path / ".local" / "share" / "paddlecloud"
    put(data / "server.json", json.dumps({"url": "http://127.0.0.1:8642", "pid": 1}))
    put(data / "embedded.json", json.dumps({"user": "me", "ak": "a", "sk": "s"}))
    client_conf(tmp_path, SEED_000_MAIN)
    found = load(around(tmp_path))
    assert (found.embedded, found.server, found.ak) == (False, "", "0123456789abcdef")
    put(data / "embedded.json", json.dumps({"user": "me", "ak": "0123456789abcdef", "sk": "s"}))
    assert load(around(tmp_path)).server == "http://127.0.0.1:8642"
    client_conf(tmp_path, "[main]\nak = only\n")
    assert load(around(tmp_path)).embedded


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("ak: // a comment", ""),
        ("ak = //", ""),
        ("ak=a=b:c", "a=b:c"),
        ("AK : x1", "x1"),
        ("ak = xxxxxxxxxxxxxxxx", ""),
        ('ak = "quoted"', "quoted"),
        ("ak = http://host/path // why", "http://host/path"),
        ("\tak\t=\tx1", "x1"),
    ],
)
def test_a_line_of_client_conf_means_what_its_writer_meant(tmp_path: Path, line: str, value: str) -> None:
    assert read_client_conf(put(tmp_path / "c", f"\ufeff[main]:\n{line}\r\n"))["main"] == {"ak": value}


def test_a_line_that_means_nothing_is_named(tmp_path: Path) -> None:
    client_conf(tmp_path, "[main]\nnonsense\n")
    with pytest.raises(ConfigError, match="line 2: 'nonsense'"):
        load(around(tmp_path))


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("h", "80", "http://h"),
        ("h", "443", "https://h"),
        ("h", "8642", "http://h:8642"),
        ("https://h:1/", "80", "https://h:1"),
        ("https://h", "80", "https://h"),
        ("https://h/", "8443", "https://h:8443"),
        ("http://h", "443", "http://h"),
        ("h", "", "http://h"),
    ],
)
def test_host_and_port_make_an_address(tmp_path: Path, host: str, port: str, url: str) -> None:
    client_conf(tmp_path, f"[openapi]\nhost = {host}\nport = {port}\n")
    assert load(around(tmp_path)).server == url


def test_each_place_wins_over_the_next(tmp_path: Path) -> None:
    put(
        tmp_path / ".paddle" / "config",
        "datacenters:\n- name: dc\n  username: old\n  password: secret\n  endpoint: http://fourth\n",
    )
    found = load(around(tmp_path))
    assert (found.server, found.user, found.password) == ("http://fourth", "old", "secret")
    client_conf(tmp_path, SEED_002)
    assert load(around(tmp_path)).server == "http://cloud.example.com"
    own_config(tmp_path, 'server = "http://second:1/"\ntoken = "t"\n')
    found = load(around(tmp_path))
    assert (found.server, found.token, found.ak) == ("http://second:1", "t", "")
    found = load(around(tmp_path, PADDLECLOUD_SERVER="first:2", PADDLECLOUD_TOKEN="mine"))
    assert (found.server, found.token) == ("http://first:2", "mine")
    assert found.sources == {"server": "the environment", "token": "the environment"}


def test_a_token_of_a_file_is_never_sent_to_a_server_that_the_file_does_not_name(tmp_path: Path) -> None:
    own_config(tmp_path, 'server = "http://home:1"\ntoken = "t"\n')
    assert load(around(tmp_path, PADDLECLOUD_SERVER="http://elsewhere:1")).token == ""
    assert load(around(tmp_path, PADDLECLOUD_SERVER="http://home:1")).token == "t"


def test_a_ca_is_believed_at_the_server_of_the_same_file_or_where_the_environment_names_it(tmp_path: Path) -> None:
    own = own_config(tmp_path, 'server = "https://home:1"\nca = "/own.pem"\ntoken = "t"\n')
    found = load(around(tmp_path))
    assert (found.ca, found.sources["ca"]) == ("/own.pem", str(own))
    assert load(around(tmp_path, PADDLECLOUD_SERVER="https://home:1")).ca == "/own.pem"
    assert load(around(tmp_path, PADDLECLOUD_SERVER="https://elsewhere:1")).ca == ""
    found = load(around(tmp_path, PADDLECLOUD_CA="/mine.pem"))
    assert (found.server, found.ca, found.sources["ca"]) == ("https://home:1", "/mine.pem", "the environment")
    assert profiles.of_server(around(tmp_path), "https://home:1").ca == "/own.pem"
    assert profiles.of_server(around(tmp_path), "https://new:1").ca == ""


def test_client_conf_may_name_the_ca_of_its_server(tmp_path: Path) -> None:
    client_conf(tmp_path, "[openapi]\nhost = cloud.example.com\nport = 443\nca = /lab.pem\n")
    found = load(around(tmp_path))
    assert (found.server, found.ca) == ("https://cloud.example.com", "/lab.pem")


def test_the_certificate_that_a_server_of_this_machine_announced_is_known(tmp_path: Path) -> None:
    data = tmp_path / ".local" / "share" / "paddlecloud"
    put(data / "server.json", json.dumps({"url": "https://127.0.0.1:8642", "pid": 1, "fingerprint": "ab12"}))
    put(data / "embedded.json", json.dumps({"user": "me", "ak": "a", "sk": "s"}))
    assert load(around(tmp_path)).fingerprint == "ab12"
    own_config(tmp_path, 'server = "https://home:1"\ntoken = "t"\n')
    assert load(around(tmp_path)).fingerprint == ""


def test_a_placeholder_of_seed_001_is_no_user(tmp_path: Path) -> None:
    put(
        tmp_path / ".paddle" / "config",
        "datacenters:\n- name: datacenter1\n  username: [your user name]\n  password: [secret]\n"
        "  endpoint: http://cloud.example.com\ncurrent-datacenter: datacenter1\n",
    )
    found = load(around(tmp_path))
    assert (found.server, found.user, found.identified) == ("http://cloud.example.com", "", False)


def test_with_nothing_configured_the_embedded_server_is_meant(tmp_path: Path) -> None:
    found = load(around(tmp_path))
    assert (found.embedded, found.server, found.identified) == (True, "", False)
    data = tmp_path / ".local" / "share" / "paddlecloud"
    put(data / "server.json", json.dumps({"url": "http://127.0.0.1:8642", "pid": 1}))
    put(data / "embedded.json", json.dumps({"user": "me", "ak": "a", "sk": "s"}))
    found = load(around(tmp_path))
    assert (found.embedded, found.server, found.user, found.ak, found.sk) == (
        True,
        "http://127.0.0.1:8642",
        "me",
        "a",
        "s",
    )


def test_the_embedded_key_is_kept_in_our_config_and_does_not_hide_another_server(tmp_path: Path) -> None:
    here = around(tmp_path, PADDLECLOUD_DATA=str(tmp_path / "data"))
    put(tmp_path / "data" / "embedded.json", json.dumps({"user": "me", "ak": "a", "sk": "s"}))
    profiles.save_embedded(here)
    assert stat.S_IMODE(here.config_file.stat().st_mode) == 0o600
    (tmp_path / "data" / "embedded.json").unlink()
    assert load(here).ak == "a"
    client_conf(tmp_path, SEED_002)
    assert load(here).server == "http://cloud.example.com"


def test_our_config_is_written_whole_for_its_owner_only_and_read_back(tmp_path: Path) -> None:
    here = around(tmp_path)
    values = {"server": "http://h:1", "user": 'we"ird\\ ü', "token": "t\n"}
    profiles.save(here, values)
    assert stat.S_IMODE(here.config_file.stat().st_mode) == 0o600
    assert [file.name for file in here.config_file.parent.iterdir()] == ["config.toml"]
    found = load(here)
    assert (found.server, found.user, found.token) == ("http://h:1", 'we"ird\\ ü', "t\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('sever = "x"\n', "'server'"),
        ("server = 1\n", "quotes"),
        ("server = \n", "not TOML"),
        ('server = "ftp://x"\n', "http://host:port"),
        ('server = "http://x:port"\n', "http://host:port"),
        ('embedded = "x"\n', "embedded"),
    ],
)
def test_a_wrong_config_is_named_with_its_file(tmp_path: Path, text: str, says: str) -> None:
    file = own_config(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(around(tmp_path))
    assert str(file) in caught.value.message
    assert says in caught.value.message


def test_a_data_folder_in_whose_way_a_file_is_is_named(tmp_path: Path) -> None:
    file = put(tmp_path / "file", "x")
    for data in (file, file / "below" / "it"):
        with pytest.raises(ConfigError, match=rf"^PADDLECLOUD_DATA: {file} is a file, and data is kept in a folder"):
            load(around(tmp_path, PADDLECLOUD_DATA=str(data)))
    with pytest.raises(ConfigError, match=rf"^{file} is a file"):
        load(around(tmp_path, XDG_DATA_HOME=str(file)))
