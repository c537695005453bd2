"""Letters reach a real mail server, whatever it can and however it is spoken to; what is wrong is told at the start."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

import pytest

from paddlecloud.model.errors import ConfigError
from paddlecloud.server import mail, mailaddress
from paddlecloud.server.letters import Letters
from paddlecloud.server.mail import LaterError, RefusedError, Smtp
from paddlecloud.server.outbox import Ask, Outbox
from paddlecloud.server.postman import Postman
from paddlecloud.server.settings import MailSettings
from tests.certificates import Authority
from tests.mailbox import Mailbox, served
from tests.waiting import wait_until

NOW = datetime(2026, 11, 16, 8, tzinfo=UTC)
LETTERS = Letters(sender="paddlecloud@lab.example", url="http://box:8642")


def a_letter(to: str = "ann@lab.example") -> EmailMessage:
    return LETTERS.key(mailaddress.parse(to), "the-ak", "the-sk", NOW)


def plain(port: int) -> Smtp:
    return Smtp(scheme="smtp", host="127.0.0.1", port=port)


def test_a_letter_says_who_which_server_and_what_to_do_in_two_languages() -> None:
    with served(Mailbox()) as mailbox:
        plain(mailbox.port).send(a_letter())
    (envelope,), (letter,), (text,) = mailbox.envelopes, mailbox.letters, mailbox.texts
    assert (envelope.mail_from, envelope.rcpt_tos) == ("paddlecloud@lab.example", ["ann@lab.example"])
    assert (letter["From"], letter["To"]) == ("paddlecloud@lab.example", "ann@lab.example")
    assert letter["Subject"] == "PaddleCloud: your access key"
    assert letter["Date"].datetime == NOW
    assert letter["Message-ID"].endswith("@lab.example>")
    assert letter["Auto-Submitted"] == "auto-generated"
    for line in ("user id: ann@lab.example", "ak: the-ak", "sk: the-sk", "user_id = ann@lab.example", "host = box"):
        assert line in text.splitlines()
    assert "paddlecloud key revoke the-ak" in text
    assert "请依次粘贴 ak 和 sk" in text


@pytest.mark.parametrize("to", ["张三@163.com", "ann@例子.中国"])
def test_addresses_of_any_script_are_reached(to: str) -> None:
    with served(Mailbox()) as mailbox:
        plain(mailbox.port).send(a_letter(to))
    sent_to = str(mailaddress.parse(to))
    assert mailbox.envelopes[0].rcpt_tos == [sent_to]
    assert mailbox.letters[0]["To"] == sent_to
    assert f"user id: {to}" in mailbox.texts[0]


def test_a_mail_server_of_ascii_alone_gets_what_it_can_take_and_the_rest_stays() -> None:
    with served(Mailbox(), utf8=False) as mailbox:
        plain(mailbox.port).send(a_letter("ann@例子.中国"))
        with pytest.raises(
            LaterError, match="no address such as 张三@163.com .it has no SMTPUTF8.: hand the letter over"
        ):
            plain(mailbox.port).send(a_letter("张三@163.com"))
    assert "user id: ann@例子.中国" in mailbox.texts[0]


def test_a_password_is_given_only_after_the_connection_is_encrypted_and_checked(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    (tmp_path / "password").write_text("two words\n")
    trusting = ssl.create_default_context(cafile=str(authority.file))
    for scheme in ("starttls", "smtps"):
        mailbox = Mailbox(login=("robot", "two words"))
        with served(mailbox, tls=context(authority), tls_at_once=scheme == "smtps"):
            server = Smtp(
                scheme=scheme,
                host="127.0.0.1",
                port=mailbox.port,
                user="robot",
                password_file=tmp_path / "password",
                context=trusting,
            )
            server.send(a_letter())
            assert len(mailbox.letters) == 1
            with pytest.raises(LaterError, match="certificate verify failed"):
                replace(server, context=None).send(a_letter())
            (tmp_path / "wrong").write_text("wrong")
            with pytest.raises(LaterError, match="535"):
                replace(server, password_file=tmp_path / "wrong").send(a_letter())
            assert len(mailbox.letters) == 1


def test_a_mail_server_that_offers_no_encryption_gets_no_password(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("x")
    with served(Mailbox()) as mailbox:
        server = replace(plain(mailbox.port), scheme="starttls", user="robot", password_file=tmp_path / "password")
        with pytest.raises(LaterError, match="STARTTLS"):
            server.send(a_letter())
    assert mailbox.letters == []


def test_what_will_never_be_taken_is_told_from_what_may_be_later() -> None:
    mailbox = Mailbox(answers={"gone@lab.example": "550 no such mailbox", "full@lab.example": "452 mailbox full"})
    with served(mailbox):
        with pytest.raises(RefusedError, match="550 no such mailbox"):
            plain(mailbox.port).send(a_letter("gone@lab.example"))
        with pytest.raises(LaterError, match="452 mailbox full"):
            plain(mailbox.port).send(a_letter("full@lab.example"))
    with pytest.raises(LaterError, match="refused"):
        plain(mailbox.port).send(a_letter())


def context(authority: Authority) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files = authority.issue()
    made.load_cert_chain(files.chain, files.key)
    return made


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        (MailSettings(smtp="mail.lab.example"), "mail.smtp"),
        (MailSettings(smtp="http://mail.lab.example"), "mail.smtp"),
        (MailSettings(smtp="smtp://mail.lab.example:99999"), "mail.smtp"),
        (MailSettings(smtp="smtps://robot:secret@mail.lab.example"), "mail.smtp"),
        (MailSettings(smtp="smtp://mail.lab.example", user="robot"), "unencrypted"),
        (MailSettings(smtp="starttls://mail.lab.example", user="robot"), "mail.password_file"),
        (
            MailSettings(smtp="smtps://mail.lab.example", user="robot", password_file=Path("/no/such/file")),
            "No such file",
        ),
    ],
)
def test_a_wrong_setting_is_named_at_the_start(settings: MailSettings, wrong: str) -> None:
    with pytest.raises(ConfigError, match=wrong):
        mail.configured(settings)


def test_a_password_that_cannot_be_sent_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("密码")
    settings = MailSettings(smtp="smtps://mail.lab.example", user="robot", password_file=tmp_path / "password")
    with pytest.raises(ConfigError, match="ASCII"):
        mail.configured(settings)


@pytest.mark.parametrize("sender", ["", "nobody", "a@b.c, d@e.f", "a@b.c\nBcc: x@y.z", "a@", "Ann <>"])
def test_a_sender_that_is_no_address_is_named_at_the_start(sender: str) -> None:
    with pytest.raises(ConfigError, match="mail.sender"):
        Letters(sender=sender, url="http://box:8642")


def test_each_kind_of_server_has_its_usual_port() -> None:
    urls = ("smtp://mail.lab.example", "starttls://mail.lab.example", "smtps://mail.lab.example", "smtp://[::1]:2525")
    found = [mail.configured(MailSettings(smtp=url)) for url in urls]
    assert [(one.host, one.port) for one in found if one] == [
        ("mail.lab.example", 25),
        ("mail.lab.example", 587),
        ("mail.lab.example", 465),
        ("::1", 2525),
    ]
    assert mail.configured(MailSettings()) is None


class Desk:
    """What stands around a postman: an outbox, and what he tells of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outbox = Outbox(folder)
        self.written: list[str] = []
        self.sent: list[str] = []
        self.refused: list[tuple[str, str]] = []
        self.failing = threading.Event()

    def ask(self, email: str = "ann@lab.example") -> None:
        self.outbox.ask(Ask(email=email, address="192.0.2.1", request_id="r"), NOW)

    def write(self, ask: Ask) -> EmailMessage | None:
        if self.failing.is_set():
            raise OSError("no space left")
        self.written.append(ask.email)
        return None if ask.email.startswith("disabled") else a_letter(ask.email)

    def files(self) -> list[str]:
        return sorted(file.suffix for file in self.folder.iterdir())

    @contextmanager
    def postman(self, smtp: Smtp | None) -> Iterator[Postman]:
        made = Postman(
            self.outbox,
            smtp,
            write=self.write,
            on_sent=lambda letter: self.sent.append(letter["To"]),
            on_refused=lambda letter, why: self.refused.append((letter["To"], why)),
        )
        made.start()
        try:
            yield made
        finally:
            made.stop()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "outbox")


def test_a_wish_becomes_a_letter_that_is_gone_when_it_is_sent(desk: Desk) -> None:
    with served(Mailbox()) as mailbox, desk.postman(plain(mailbox.port)):
        desk.ask()
        desk.ask("disabled@lab.example")
        wait_until(lambda: desk.files() == [], "the outbox is empty")
    assert [letter["To"] for letter in mailbox.letters] == desk.sent == ["ann@lab.example"]


def test_a_mail_server_that_is_down_only_delays(desk: Desk) -> None:
    mailbox = Mailbox(port=unused())
    with desk.postman(plain(mailbox.port)):
        desk.ask()
        wait_until(lambda: desk.files() == [".eml"], "the letter lies there")
        with served(mailbox):
            wait_until(lambda: desk.files() == [], "the letter is sent", seconds=30.0)
    assert len(mailbox.letters) == 1


def test_one_letter_that_is_not_taken_holds_no_other_back(desk: Desk) -> None:
    answers = {"full@lab.example": "452 mailbox full", "gone@lab.example": "550 no such mailbox"}
    with served(Mailbox(answers=answers)) as mailbox, desk.postman(plain(mailbox.port)):
        for name in ("full", "gone", "ann"):
            desk.ask(f"{name}@lab.example")
        wait_until(lambda: desk.sent and desk.refused, "two are done with")
        assert desk.sent == ["ann@lab.example"]
        assert desk.refused == [("gone@lab.example", "550 no such mailbox")]
        assert desk.files() == [".eml"]
        mailbox.answers.clear()
        wait_until(lambda: desk.files() == [], "the third is sent too")
    assert desk.sent == ["ann@lab.example", "full@lab.example"]


def test_a_wish_that_cannot_be_answered_now_is_answered_later(desk: Desk) -> None:
    desk.failing.set()
    with served(Mailbox()) as mailbox, desk.postman(plain(mailbox.port)):
        desk.ask()
        wait_until(lambda: desk.files() == [".ask"], "it is kept")
        desk.failing.clear()
        wait_until(lambda: desk.files() == [], "it is answered")
    assert desk.sent == ["ann@lab.example"]


def test_a_wish_and_a_letter_from_before_a_crash_are_taken_up_once(desk: Desk) -> None:
    desk.ask()
    (ask,) = desk.folder.glob("*.ask")
    ask.with_suffix(".eml").write_bytes(a_letter().as_bytes())
    desk.ask("bob@lab.example")
    (desk.folder / ".new-0123").write_text("half a let")
    again = Desk(desk.folder)
    with served(Mailbox()) as mailbox, again.postman(plain(mailbox.port)):
        wait_until(lambda: again.files() == [], "the outbox is empty")
    assert again.written == ["bob@lab.example"]
    assert sorted(again.sent) == ["ann@lab.example", "bob@lab.example"]
    assert len(mailbox.letters) == 2


def test_without_a_mail_server_letters_lie_where_their_owner_alone_can_read_them(desk: Desk) -> None:
    with desk.postman(None):
        desk.ask("张三@163.com")
        wait_until(lambda: desk.files() == [".eml"], "the letter lies there")
    (letter,) = desk.folder.iterdir()
    assert (desk.folder.stat().st_mode & 0o777, letter.stat().st_mode & 0o777) == (0o700, 0o600)
    text = letter.read_text()
    for line in ("To: 张三@163.com", "user id: 张三@163.com", "sk: the-sk", "您好："):
        assert line in text.splitlines()


def test_what_nobody_can_read_in_the_outbox_stops_nothing(desk: Desk) -> None:
    (desk.folder / "0.ask").write_text("not a wish")
    with served(Mailbox()) as mailbox, desk.postman(plain(mailbox.port)):
        desk.ask()
        wait_until(lambda: desk.sent, "the other is sent")


def unused() -> int:
    mailbox = Mailbox()
    with served(mailbox):
        return mailbox.port
