"""Forms with brackets: what the VS Code client sends, and what nobody should."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.model.errors import InvalidError
from paddlecloud.server.dialects.openpai import forms
from paddlecloud.server.dialects.openpai.forms import DEPTH, FIELDS, parse_form

# As the extension sent it (spec, section 1.2), with ports and variables.
RECORDED = (
    b"jobName=train_couplet_demo_c7869957&image=vzich%2Fpoet%3Atensorflow"
    b"&codeDir=%24PAI_DEFAULT_FS_URI%2Falice%2Ftrain_couplet_demo_c7869957"
    b"&taskRoles%5B0%5D%5Bname%5D=demo_001&taskRoles%5B0%5D%5BtaskNumber%5D=1"
    b"&taskRoles%5B0%5D%5BportList%5D%5B0%5D%5Blabel%5D=web&taskRoles%5B0%5D%5BportList%5D%5B0%5D%5BbeginAt%5D=0"
    b"&taskRoles%5B0%5D%5Bcommand%5D=pip3%20--quiet%20install%20future%20%26%26%20cd%20a%2Bb"
    b"&jobEnvs%5BisDebug%5D=true&virtualCluster="
)


def test_the_recorded_form_is_the_job_that_it_was_made_of() -> None:
    assert parse_form(RECORDED) == {
        "jobName": "train_couplet_demo_c7869957",
        "image": "vzich/poet:tensorflow",
        "codeDir": "$PAI_DEFAULT_FS_URI/alice/train_couplet_demo_c7869957",
        "taskRoles": [
            {
                "name": "demo_001",
                "taskNumber": "1",
                "portList": [{"label": "web", "beginAt": "0"}],
                "command": "pip3 --quiet install future && cd a+b",
            }
        ],
        "jobEnvs": {"isDebug": "true"},
        "virtualCluster": "",
    }


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"", {}),
        (b"&&a=1&", {"a": "1"}),
        (b"a", {"a": ""}),
        (b"a=b+c", {"a": "b c"}),
        (b"a[]=1&a[]=2", {"a": ["1", "2"]}),
        (b"a[2]=c&a[0]=a", {"a": ["a", "c"]}),
        (b"a[10]=k&a[9]=j", {"a": ["j", "k"]}),
        (b"a[b][c]=1&a[b][d]=2", {"a": {"b": {"c": "1", "d": "2"}}}),
        (b"a[0]=1&a[x]=2", {"a": {"0": "1", "x": "2"}}),
        ("ü=%C3%BC".encode(), {"ü": "ü"}),
        (b"__proto__[x]=1", {"__proto__": {"x": "1"}}),
    ],
)
def test_brackets_nest(body: bytes, value: dict[str, Any]) -> None:
    assert parse_form(body) == value


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"a=1&a=2", "twice"),
        (b"a=1&a[b]=2", "fields of its own"),
        (b"a[b]=1&a=2", "twice"),
        (b"a[b=1", "odd name"),
        (b"[a]=1", "odd name"),
        (b"=1", "odd name"),
        (b"a" + b"[b]" * DEPTH + b"=1", "levels deep"),
        (b"a" * 600 + b"=1", "odd name"),
        (b"a=%FF", "UTF-8"),
        (b"&".join(b"a%d=1" % number for number in range(FIELDS + 1)), "more than"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_form_that_could_be_read_in_two_ways_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(InvalidError, match=words):
        parse_form(body)


@given(st.binary(max_size=300) | st.text("ab[]=&%0159", max_size=200).map(str.encode))
def test_no_form_does_harm(body: bytes) -> None:
    try:
        parsed = forms.parse_form(body)
    except InvalidError:
        return
    assert _depth(parsed) <= DEPTH


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, (dict, list)) else 0
