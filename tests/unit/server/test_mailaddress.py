"""One mailbox, one user: however its address is typed, and nothing else than an address."""

from __future__ import annotations

import pytest

from paddlecloud.model.errors import InvalidError
from paddlecloud.server import mailaddress


@pytest.mark.parametrize(
    ("typed", "user", "sent_to"),
    [
        ("zhangsan@163.com", "zhangsan@163.com", "zhangsan@163.com"),
        ("张三@163.com", "张三@163.com", "张三@163.com"),
        (" Zhang.San@LAB.Example ", "zhang.san@lab.example", "zhang.san@lab.example"),
        ("ann+ci@lab.example.", "ann+ci@lab.example", "ann+ci@lab.example"),
        ("ann@例子.中国", "ann@例子.中国", "ann@xn--fsqu00a.xn--fiqs8s"),
        ("ann@XN--FSQU00A.xn--fiqs8s", "ann@例子.中国", "ann@xn--fsqu00a.xn--fiqs8s"),
        ("ann@ｌab。example", "ann@lab.example", "ann@lab.example"),
        ("zoe\u0308@lab.example", "zo\u00eb@lab.example", "zo\u00eb@lab.example"),
        ("ann@localhost", "ann@localhost", "ann@localhost"),
    ],
)
def test_an_address_has_one_spelling(typed: str, user: str, sent_to: str) -> None:
    found = mailaddress.parse(typed)
    assert (found.user, str(found)) == (user, sent_to)
    assert mailaddress.parse(found.user) == mailaddress.parse(str(found)) == found


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "ann",
        "@lab.example",
        "ann@",
        "ann@lab@example",
        "ann@lab..example",
        "ann@-lab.example",
        "ann@lab_box.example",
        "ann@[192.0.2.1]",
        "ann@lab.example\r\nBcc: eve@evil.example",
        "ann\r\nBcc: eve@lab.example",
        "ann\0@lab.example",
        "ann@lab.example, eve@evil.example",
        "Ann <ann@lab.example>",
        '"ann smith"@lab.example',
        "ann smith@lab.example",
        ".ann@lab.example",
        "a..nn@lab.example",
        "ann.@lab.example",
        "-ann@lab.example",
        "ann/../eve@lab.example",
        "a\ud800@lab.example",
        "ann@lab\ud800.example",
        "x" * 65 + "@a.b",
        "x" * 40 + "@" + "y" * 30 + ".example",
        "ann@xn--99999999.example",
    ],
)
def test_what_is_no_address_or_could_be_no_name_is_refused(typed: str) -> None:
    with pytest.raises(InvalidError) as refused:
        mailaddress.parse(typed)
    assert refused.value.field == "email"
