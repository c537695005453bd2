"""Of several servers the first that answers is taken, whatever it answers, and nothing is sent twice."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from paddlecloud.model.errors import ConfigError, InvalidError, UnreachableError
from paddlecloud.sdk import ownconfig
from paddlecloud.sdk import profile as profiles
from paddlecloud.sdk.addresses import server_list
from paddlecloud.sdk.http import Http
from paddlecloud.sdk.profile import Profile, load
from tests.ports import free_ports
from tests.unit.sdk.answering import Answer, Asked, web
from tests.unit.sdk.test_profile import around, own_config

SEED = """\
yq01-idl-gpu-offline14.yq01.baidu.com:9290
yq01-idl-gpu-offline14.yq01.baidu.com:9291   # the second
"http://10.0.0.1:9292/",

"""


def several(*servers: str, **more: str) -> Profile:
    return Profile(server=servers[0], servers=servers, sources={"servers": "here"}, ak="ak", sk="sk", **more)  # type: ignore[arg-type]


def refused(_: Asked) -> Answer:
    return Answer(422, b'{"detail": "no", "code": "invalid"}')


def broken(_: Asked) -> None:
    return None


def test_one_that_does_not_answer_is_passed_over_and_the_next_is_kept() -> None:
    silent = [f"http://127.0.0.1:{port}" for port in free_ports(2)]
    with web(lambda _: Answer()) as second, web(lambda _: Answer()) as third:
        http = Http(several(*silent, second.url, third.url))
        for _ in range(3):
            http.request("POST", "/x", body=b"{}")
        assert (len(second.asked), len(third.asked)) == (3, 0)
        assert http.profile.server == second.url
        assert http.profile.servers == ()
        http.close()


@pytest.mark.parametrize(("respond", "error"), [(refused, InvalidError), (broken, UnreachableError)])
def test_whatever_one_does_that_was_reached_counts_and_is_asked_of_no_other(
    respond: type, error: type[Exception]
) -> None:
    with web(respond) as first, web(lambda _: Answer()) as second:
        http = Http(several(first.url, second.url))
        with pytest.raises(error):
            http.request("POST", "/v1/jobs", body=b"{}")
        assert (len(first.asked), len(second.asked)) == (1, 0)
        http.close()


def test_one_whose_connections_wait_for_ever_is_passed_over() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, web(lambda _: Answer()) as second:
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())  # so many that no other is let in
        http = Http(several(f"http://127.0.0.1:{full.getsockname()[1]}", second.url))
        http.request("GET", "/x")
        assert len(second.asked) == 1
        http.close()
        for one in waiting:
            one.close()


def test_one_with_a_wrong_certificate_is_not_passed_over(tmp_path: Path) -> None:
    with web(lambda _: Answer()) as plain, web(lambda _: Answer()) as second:
        http = Http(several(plain.url.replace("http:", "https:"), second.url))
        with pytest.raises(UnreachableError, match="cannot be spoken to: it does not speak TLS"):
            http.request("GET", "/x")
        assert not second.asked


def test_where_none_answers_each_is_named() -> None:
    first, second = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    with pytest.raises(UnreachableError) as error:
        Http(several(first, second)).request("GET", "/x")
    for words in ("none of 2 servers answers", f"{first} (connection refused)", second, "named by here"):
        assert words in error.value.message


def test_seed_003s_list_of_receivers_is_read(tmp_path: Path) -> None:
    (tmp_path / "local_config.py").write_text(SEED)
    wanted = (
        "http://yq01-idl-gpu-offline14.yq01.baidu.com:9290",
        "http://yq01-idl-gpu-offline14.yq01.baidu.com:9291",
        "http://10.0.0.1:9292",
    )
    assert server_list(str(tmp_path / "local_config.py"), "x") == wanted
    found = load(around(tmp_path, PADDLECLOUD_SERVERS=str(tmp_path / "local_config.py"), PADDLECLOUD_TOKEN="t"))
    assert (found.server, found.servers, found.token) == (wanted[0], wanted, "t")
    own_config(tmp_path, 'servers = "local_config.py"\ntoken = "t"\n').with_name("local_config.py").write_text(SEED)
    found = load(around(tmp_path))
    assert (found.servers, found.token) == (wanted, "t")
    assert found.sources["servers"].endswith("config.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [("a:1, b:x", "no address"), ("/missing/list", "cannot be read: No such file"), (" , ", "names no server")],
)
def test_a_list_that_cannot_be_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        server_list(text, "PADDLECLOUD_SERVERS")
    assert error.value.message.startswith("PADDLECLOUD_SERVERS")


def test_one_that_is_named_alone_comes_before_a_list(tmp_path: Path) -> None:
    found = load(around(tmp_path, PADDLECLOUD_SERVER="a:1", PADDLECLOUD_SERVERS="b:1,c:1"))
    assert (found.server, found.servers) == ("http://a:1", ())
    own_config(tmp_path, 'server = "http://c:1"\nservers = ["http://b:1", "c:1"]\nak = "x"\nsk = "y"\n')
    assert load(around(tmp_path)).servers == ("http://c:1", "http://b:1")
    assert load(around(tmp_path, PADDLECLOUD_SERVERS="b:1")).servers == ()


def test_a_token_is_sent_only_to_servers_that_its_file_names(tmp_path: Path) -> None:
    own_config(tmp_path, 'servers = ["a:1", "b:1"]\ntoken = "t"\n')
    assert load(around(tmp_path, PADDLECLOUD_SERVERS="b:1,a:1")).token == "t"
    assert load(around(tmp_path, PADDLECLOUD_SERVERS="a:1,evil:1")).token == ""


def test_a_login_to_one_of_a_list_keeps_the_list(tmp_path: Path) -> None:
    file = own_config(tmp_path, 'servers = ["a:1", "b:1"]\n')
    profiles.save(around(tmp_path), {"server": "http://b:1", "token": "t"})
    assert load(around(tmp_path)).servers == ("http://b:1", "http://a:1")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    profiles.save(around(tmp_path), {"server": "http://c:1", "token": "t"})
    assert load(around(tmp_path)).servers == ()
    assert "servers" not in ownconfig.read(file).values
