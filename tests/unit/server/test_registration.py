"""gen_token over HTTP: who may ask, what each gets, and that a stranger learns and changes nothing by asking."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.model.errors import ConfigError
from paddlecloud.model.user import Role
from paddlecloud.server.app import utc_now
from paddlecloud.server.registration import MOST_KEYS
from paddlecloud.server.settings import DOMAINS, AccountSettings
from tests.mailbox import Mailbox, key_in, served
from tests.unit.server.running import Running, running
from tests.waiting import wait_until

CLUSTERS = {"local": {"policy": "open"}}
OPEN = {"accounts": {"gen_token": "open"}, "rates": {"mails_an_hour": 0}, "clusters": CLUSTERS}


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    with served(Mailbox(answers={"gone@lab.example": "550 no such mailbox"})) as made:
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, mailbox: Mailbox) -> Iterator[Running]:
    mail = {"mail": {"smtp": f"smtp://127.0.0.1:{mailbox.port}", "sender": "pc@lab.example"}}
    with running(tmp_path_factory.mktemp("server") / "data", OPEN | mail) as made:
        yield made


def ask(server: Running, email: str) -> tuple[int, dict[str, Any]]:
    answer = server.ask("POST", "/v1/registrations", {"email": email}, token="none")
    return answer.status, answer.json()


def text_for(mailbox: Mailbox, email: str, number: int = 1) -> str:
    """The newest of so many letters to an address."""

    def arrived() -> list[str]:
        return [letter.get_content() for letter in mailbox.letters if letter["To"] == email]

    wait_until(lambda: len(arrived()) >= number, f"{number} letters for {email}")
    return arrived()[-1]


def told(server: Running, action: str, target: str) -> list[str]:
    """What the record says of an action and its target."""
    items = server.get(f"/v1/audit?action={action}&limit=1000", server.root)["items"]
    return [item["detail"] for item in items if item["target"] == target and item["action"] == action]


def test_a_new_user_gets_a_key_that_works(server: Running, mailbox: Mailbox) -> None:
    assert ask(server, "张三@163.com") == (202, {"user": "张三@163.com", "mailed": True})
    ak, sk = key_in(text_for(mailbox, "张三@163.com"))
    user, secret = server.users.key_secret(ak)
    assert (user.name, user.role, secret) == ("张三@163.com", Role.USER, sk)
    assert told(server, "gen_token", "张三@163.com") == [""]
    assert told(server, "user.add", "张三@163.com") == ["by mail"]
    assert told(server, "key.create", ak) == ["of 张三@163.com, by mail"]
    wait_until(lambda: told(server, "mail.sent", "张三@163.com") == [f"brings {ak}"], "it is told that it was sent")
    assert sk not in str(server.get("/v1/audit?limit=1000", server.root))


def test_asking_again_makes_another_key_and_voids_none(server: Running, mailbox: Mailbox) -> None:
    server.users.add("twice@lab.example", Role.USER, "a password", utc_now())
    key, sk = server.users.add_key("twice@lab.example", utc_now())
    ask(server, "TWICE@Lab.Example")
    ak, _ = key_in(text_for(mailbox, "twice@lab.example"))
    assert {ak, key.ak} == {one.ak for one in server.users.keys("twice@lab.example")}
    assert server.users.key_secret(key.ak)[1] == sk
    assert server.users.check_password("twice@lab.example", "a password").name == "twice@lab.example"


def test_however_often_a_stranger_asks_the_keys_are_bounded_and_all_of_them_work(
    server: Running, mailbox: Mailbox
) -> None:
    for _ in range(MOST_KEYS + 2):
        assert ask(server, "flood@lab.example")[0] == 202
    last = text_for(mailbox, "flood@lab.example", MOST_KEYS + 2)
    assert f"There are {MOST_KEYS} keys" in last
    assert "paddlecloud key revoke" in last
    letters = [one.get_content() for one in mailbox.letters if one["To"] == "flood@lab.example"]
    keys = [key_in(text) for text in letters if "sk: " in text]
    assert len(keys) == MOST_KEYS
    for ak, sk in keys:
        assert server.users.key_secret(ak)[1] == sk
    assert told(server, "gen_token.refused", "flood@lab.example") == [f"has {MOST_KEYS} keys"] * 2


def test_the_answer_is_the_same_for_a_new_a_known_a_disabled_user_and_an_admin(
    server: Running, mailbox: Mailbox
) -> None:
    server.users.add("known@lab.example", Role.USER, None, utc_now())
    server.users.add("out@lab.example", Role.USER, None, utc_now())
    server.users.change("out@lab.example", disabled=True)
    server.users.add("chief@lab.example", Role.ADMIN, None, utc_now())
    for name in ("new", "known", "out", "chief"):
        assert ask(server, f"{name}@lab.example") == (202, {"user": f"{name}@lab.example", "mailed": True})
    assert "an admin" in text_for(mailbox, "chief@lab.example")
    assert "sk:" not in text_for(mailbox, "chief@lab.example")
    wait_until(lambda: told(server, "gen_token.refused", "out@lab.example"), "the disabled one is refused")
    assert told(server, "gen_token.refused", "out@lab.example") == ["disabled"]
    assert told(server, "gen_token.refused", "chief@lab.example") == ["an admin"]
    for name in ("out", "chief"):
        assert server.users.keys(f"{name}@lab.example") == []
    assert "out@lab.example" not in [letter["To"] for letter in mailbox.letters]


def test_a_mailbox_that_there_is_not_leaves_no_key(server: Running) -> None:
    assert ask(server, "gone@lab.example")[0] == 202
    wait_until(lambda: told(server, "mail.refused", "gone@lab.example"), "it is told that it was refused")
    assert told(server, "mail.refused", "gone@lab.example") == ["550 no such mailbox"]
    wait_until(lambda: server.users.keys("gone@lab.example") == [], "the key is revoked")


@pytest.mark.parametrize(
    "email", ["", "nobody", "ann@lab.example\r\nBcc: eve@evil.example", "a b@lab.example", "ann@lab.example,eve@x.y"]
)
def test_what_is_no_address_is_refused_and_reaches_nobody(server: Running, mailbox: Mailbox, email: str) -> None:
    before = len(mailbox.envelopes)
    status, problem = ask(server, email)
    assert (status, problem["code"], problem["field"]) == (422, "invalid", "email")
    ask(server, "after@lab.example")
    text_for(mailbox, "after@lab.example")
    assert {address for one in mailbox.envelopes[before:] for address in one.rcpt_tos} <= {"after@lab.example"}


@pytest.mark.parametrize("email", ["ann+1@lab.example", "Ann+@lab.example", "+ann@lab.example"])
def test_an_address_with_a_tag_is_refused_since_one_mailbox_has_any_number_of_them(server: Running, email: str) -> None:
    status, problem = ask(server, email)
    assert (status, problem["code"], problem["field"]) == (422, "invalid", "email")
    assert "write it without the + and what follows it" in problem["detail"]
    assert told(server, "gen_token", email.lower()) == []


def test_a_body_that_is_wrong_is_refused(server: Running) -> None:
    for body in (b"", b"[]", b'{"email": 1}', b'{"mail": "a@b.c"}', b'{"email": "a@b.c", "role": "admin"}'):
        assert server.ask("POST", "/v1/registrations", body, token="none").status == 422


def test_a_closed_server_says_whom_to_ask_and_keeps_nothing(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server:
        status, problem = ask(server, "ann@lab.example")
        assert (status, problem["code"]) == (403, "forbidden")
        assert "paddlecloud key create --user NAME" in problem["detail"]
        assert list((tmp_path / "data" / "outbox").iterdir()) == []
        assert told(server, "gen_token", "ann@lab.example") == []


def test_only_addresses_of_exactly_these_domains_get_a_key(tmp_path: Path) -> None:
    accounts = {"gen_token": "domains", "mail_domains": ["Lab.Example", "例子.中国"]}
    with running(tmp_path / "data", OPEN | {"accounts": accounts}) as server:
        for email in ("ann@lab.example", "ann@LAB.EXAMPLE", "bob@例子.中国", "eva@xn--fsqu00a.xn--fiqs8s"):
            assert ask(server, email)[0] == 202, email
        for email in (
            "ann@evil-lab.example",
            "ann@lab.example.evil.example",
            "ann@sub.lab.example",
            "ann@example",
            "ann@lab.exampl",
            "lab.example@evil.example",
        ):
            status, problem = ask(server, email)
            assert (status, problem["code"]) == (403, "forbidden"), email
            assert "Lab.Example, 例子.中国" in problem["detail"]


def test_without_a_mail_server_the_key_lies_in_the_outbox_and_the_answer_says_so(tmp_path: Path) -> None:
    with running(tmp_path / "data", OPEN) as server:
        assert ask(server, "ann@lab.example") == (202, {"user": "ann@lab.example", "mailed": False})
        outbox = tmp_path / "data" / "outbox"
        wait_until(lambda: [file.suffix for file in outbox.iterdir()] == [".eml"], "the letter lies there")
        ak, sk = key_in(next(outbox.iterdir()).read_text())
        assert server.users.key_secret(ak)[1] == sk


def test_a_mailbox_is_not_flooded_and_a_machine_asks_for_ten_times_as_many(tmp_path: Path) -> None:
    with running(tmp_path / "data", OPEN | {"rates": {"mails_an_hour": 2}}) as server:
        for _ in range(2):
            assert ask(server, "ann@lab.example")[0] == 202
        refused = server.ask("POST", "/v1/registrations", {"email": "Ann@lab.example"}, token="none")
        assert (refused.status, refused.json()["code"]) == (429, "rate")
        assert refused.json()["detail"] == (
            "too often: 2 mails an hour to one address are allowed; try again in 30 min"
        )
        assert 1790 <= int(refused.headers["Retry-After"]) <= 1800
        for number in range(18):
            assert ask(server, f"user-{number}@lab.example")[0] == 202
        assert ask(server, "one-more@lab.example")[0] == 429


@pytest.mark.parametrize(
    "settings",
    [
        AccountSettings(gen_token=DOMAINS),
        AccountSettings(gen_token=DOMAINS, mail_domains=("lab..example",)),
    ],
)
def test_domains_that_are_none_are_named_at_the_start(tmp_path: Path, settings: AccountSettings) -> None:
    plain = {"gen_token": settings.gen_token, "mail_domains": list(settings.mail_domains)}
    with pytest.raises(ConfigError, match="mail_domains"), running(tmp_path / "data", OPEN | {"accounts": plain}):
        pass
