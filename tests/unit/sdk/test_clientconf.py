"""client.conf is written as carefully as it is read: what is not ours to set stays as its user left it."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.model import endpoint
from paddlecloud.sdk import profile as profiles
from paddlecloud.sdk.clientconf import changed, read_client_conf, write_client_conf
from paddlecloud.sdk.profile import Profile, Surroundings

SEED_002 = """\
// 免费使用时需要配置该部分的内容
// ak：Access Key
[main]
debug = 0
user_id = xxxxxxxxxxxxxxxxxxxxxxxxxxxxx
ak = xxxxxxxxxxxxxxxxxxxxxxxxxxxxx
sk = xxxxxxxxxxxxxxxxxxxxxxxxxxxxx

[openapi]
host = paddlecloud.baidu.com
port = 80

// 付费使用时需要配置该部分的内容
[bcc]
host = bcc.bj.baidubce.com
ak = my own
sk =

[bos]:
ak: // 私人的百度云虚拟化存储资源Access Key
"""

SEED_000 = """\
     // 注：如下内容仅为示例，以自己收到的邮件中的内容为准
     [main]
     debug = 0
     userid: xxx
     ak: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
     sk: // 邮件中的sk
"""

ANN = Profile(server="http://box:8642", user="ann@lab.example", ak="a1", sk="s1")


def in_home(home: Path, text: str | None = None, name: str = "bin/paddlecloud/conf/client.conf") -> Surroundings:
    if text is not None:
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text(text)
    return Surroundings(variables={}, home=home)


def test_a_new_file_is_the_manuals(tmp_path: Path) -> None:
    around = in_home(tmp_path)
    profiles.save_client_conf(around, ANN)
    file = tmp_path / "bin" / "paddlecloud" / "conf" / "client.conf"
    assert file.read_text() == (
        "[main]\ndebug = 0\nuser_id = ann@lab.example\nak = a1\nsk = s1\n\n[openapi]\nhost = box\nport = 8642\n"
    )
    assert file.stat().st_mode & 0o777 == 0o600
    used = profiles.load(around)
    assert (used.server, used.user, used.ak, used.sk) == ("http://box:8642", "ann@lab.example", "a1", "s1")


def test_the_manuals_file_is_filled_in_and_nothing_else_of_it_changes(tmp_path: Path) -> None:
    around = in_home(tmp_path, SEED_002)
    around.client_conf.chmod(0o644)
    profiles.save_client_conf(around, ANN)
    expected = (
        SEED_002.replace("user_id = xxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "user_id = ann@lab.example")
        .replace("ak = xxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "ak = a1")
        .replace("sk = xxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sk = s1")
        .replace("host = paddlecloud.baidu.com\nport = 80", "host = box\nport = 8642")
    )
    assert around.client_conf.read_text() == expected
    assert around.client_conf.stat().st_mode & 0o777 == 0o600


def test_seed_000s_file_keeps_its_form_and_gets_the_section_that_it_lacks(tmp_path: Path) -> None:
    around = in_home(tmp_path, SEED_000, "bin/paddlecloud/client.conf")
    profiles.save_client_conf(around, ANN)
    lines = around.client_conf.read_text().splitlines()
    assert around.client_conf == tmp_path / "bin" / "paddlecloud" / "client.conf"
    assert lines[3:6] == ["     userid: ann@lab.example", "     ak: a1", "     sk: s1 // 邮件中的sk"]
    assert lines[6:] == ["", "[openapi]", "host = box", "port = 8642"]
    assert profiles.load(around).sk == "s1"


def test_a_value_that_is_missing_goes_to_the_end_of_its_section() -> None:
    before = "[main]\ndebug = 0\n\n\n[bcc]\nak = b"
    assert changed(before, {"main": {"ak": "a", "sk": "s"}, "openapi": {"host": "h"}}) == (
        "[main]\ndebug = 0\nak = a\nsk = s\n\n\n[bcc]\nak = b\n\n[openapi]\nhost = h\n"
    )


def test_a_value_that_stands_twice_is_set_twice_since_the_last_one_counts() -> None:
    assert changed("[main]\nak = 1\n[bcc]\n[main]\nak = 2\n", {"main": {"ak": "3"}}) == (
        "[main]\nak = 3\n[bcc]\n[main]\nak = 3\n"
    )


def test_comments_in_another_encoding_and_ends_of_lines_stay(tmp_path: Path) -> None:
    file = tmp_path / "client.conf"
    comment = "// 注释\r\n".encode("gbk")
    file.write_bytes(b"\xef\xbb\xbf" + comment + b"[MAIN]\r\nAK=old\r\n")
    write_client_conf(file, {"main": {"ak": "new"}})
    assert file.read_bytes() == b"\xef\xbb\xbf" + comment + b"[MAIN]\r\nAK= new\r\n"
    assert read_client_conf(file)["main"] == {"ak": "new"}


def test_a_link_to_a_config_that_is_kept_elsewhere_stays_a_link(tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.conf"
    kept.write_text("[main]\n")
    file = tmp_path / "client.conf"
    file.symlink_to(kept)
    write_client_conf(file, {"main": {"ak": "a"}})
    assert file.is_symlink()
    assert kept.read_text() == "[main]\nak = a\n"


def test_the_ca_of_another_server_is_not_kept_for_this_one(tmp_path: Path) -> None:
    around = in_home(tmp_path, "[openapi]\nhost = https://other\nport = 8443\nca = /etc/other.pem\n")
    profiles.save_client_conf(around, ANN)
    assert profiles.load(around).ca == ""


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://box:8642", "box", "8642"),
        ("http://box", "box", "80"),
        ("http://box:8000", "box", "8000"),
        ("https://box", "box", "443"),
        ("https://box:8443", "https://box", "8443"),
        ("http://box:443", "http://box:443", "443"),
        ("http://[::1]:8642", "[::1]", "8642"),
        ("http://box:8642/below", "http://box:8642/below", "8642"),
        ("https://box/below", "https://box/below", "443"),
    ],
)
def test_host_and_port_make_the_same_address_again(tmp_path: Path, url: str, host: str, port: str) -> None:
    assert endpoint.split(url) == (host, port)
    around = in_home(tmp_path)
    profiles.save_client_conf(around, Profile(server=url, user="ann", ak="a", sk="b"))
    assert profiles.load(around).server == url
