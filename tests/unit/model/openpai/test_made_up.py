"""Both protocols, their forms and their YAML, on what a machine made up: a job or an InvalidError, nothing else."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paddlecloud import yamltext
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.openpai import template, v1, v2
from paddlecloud.server.dialects.openpai.forms import parse_form
from tests.unit.model.openpai.test_v1 import SEED

V2 = {
    "protocolVersion": 2,
    "name": "job",
    "type": "job",
    "prerequisites": [
        {"name": "image", "type": "dockerimage", "uri": "i", "auth": {"username": "a", "password": "b"}},
        {
            "name": "code",
            "type": "script",
            "uri": "u",
            "plugin": "com.microsoft.pai.runtimeplugin.cmd",
            "callbacks": [{"event": "taskStarts", "commands": ["a"]}],
            "require": ["set"],
        },
        {"name": "set", "type": "data", "uri": ["x"]},
    ],
    "parameters": {"a": {"b": [1, 2.5, None, True]}},
    "secrets": {"s": "t"},
    "jobRetryCount": 1,
    "taskRoles": {
        "worker": {
            "instances": 2,
            "completion": {"minFailedInstances": 1, "minSucceededInstances": -1},
            "taskRetryCount": 1,
            "prerequisites": ["code"],
            "dockerImage": "image",
            "data": "set",
            "extraContainerOptions": {"shmMB": 64, "infiniband": False},
            "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": 0, "ports": {"web": 1}},
            "commands": ["<% $parameters.a.b[0] %> <% $secrets.s %> <% $data.uri[0] %>"],
        }
    },
    "deployments": [{"name": "d", "taskRoles": {"worker": {"preCommands": ["p"], "postCommands": []}}}],
    "defaults": {"virtualCluster": "default", "deployment": "d"},
    "extras": {
        "gangAllocation": False,
        "hivedScheduler": {"jobPriorityClass": "prod"},
        "storages": [{"name": "s", "mountPath": "/m"}],
        "com.microsoft.pai.runtimeplugin": [{"plugin": "cmd", "parameters": {"preCommands": ["x"]}}],
    },
}
texts = st.text(max_size=12) | st.sampled_from(["", "\0", "\ud800", "<% $secrets.s %>", "-1", "true", "x" * 300, "<%"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts | st.just(10**400) | st.just(object())
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | st.integers(), inner, max_size=3)
)


def bent(whole: Any, data: st.DataObject) -> Any:
    """The whole with one place in it changed, taken away or renamed."""
    whole = copy.deepcopy(whole)
    at = whole
    while True:
        keys = list(at) if isinstance(at, Mapping) else list(range(len(at))) if isinstance(at, list) else []
        if not keys:
            return whole
        key = data.draw(st.sampled_from(keys))
        inner = at[key]
        if isinstance(inner, (dict, list)) and inner and data.draw(st.booleans()):
            at = inner
            continue
        match data.draw(st.integers(0, 2)):
            case 0:
                at[key] = data.draw(values)
            case 1:
                del at[key]
            case _ if isinstance(at, dict):
                at[data.draw(texts)] = at.pop(key)
        return whole


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_bent_job_of_the_first_protocol_is_a_job_or_refused(data: st.DataObject) -> None:
    with contextlib.suppress(InvalidError):
        v1.job(bent(SEED, data), user="alice", form=data.draw(st.booleans()))


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_bent_job_of_the_second_protocol_is_a_job_or_refused(data: st.DataObject) -> None:
    with contextlib.suppress(InvalidError):
        found = v2.job(bent(bent(V2, data), data))
        assert "secrets" not in found.config or found.config["secrets"] == "******"
        json.dumps(found.secrets)


def test_what_is_bent_is_a_job_before() -> None:
    assert v2.job(V2).spec.roles[0].command
    assert v1.job(SEED, user="alice").spec.roles


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(values)
def test_anything_is_a_job_or_refused(value: object) -> None:
    with contextlib.suppress(InvalidError):
        v1.job(value, user="u")
    with contextlib.suppress(InvalidError):
        v2.job(value)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.from_regex(r"[a-z\[\]0-9]{0,12}", fullmatch=True) | texts, texts), max_size=6))
def test_any_form_is_a_job_or_refused(pairs: list[tuple[str, str]]) -> None:
    with contextlib.suppress(InvalidError, UnicodeEncodeError):
        v1.job(parse_form("&".join(f"{key}={text}" for key, text in pairs).encode()), user="u", form=True)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet="ab:-[]{}&*!|>\n\t '\"#?%@`,<=.0123", max_size=60) | st.text(max_size=30))
def test_any_text_is_yaml_or_refused(text: str) -> None:
    for read in (yamltext.read, lambda whole: yamltext.replaced(f"a: {whole}\nsecrets: {whole}\n", "secrets", "x")):
        with contextlib.suppress(InvalidError):
            read(text)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet="<%$ab.[]0 {}&>\n", max_size=60), values)
def test_any_text_is_a_template(text: str, value: object) -> None:
    template.render(text, {"$a": value, "b": {"a": "b"}} if value != 10**400 else {})


@pytest.mark.parametrize(
    "text",
    [
        "secrets: {a: b}\nx: 1\n",
        "x: 1\nsecrets:\n  a: b\n  c: |\n    d\n\n",
        "secrets: &s {a: b}\ny: *s\n",
        "{secrets: {a: b}, x: 1}",
        '"secrets": [1, 2]\nx: "secrets: {a: b}"\n',
        "x:\n  secrets: inner\nsecrets: a\n",
    ],
)
def test_secrets_are_taken_out_of_a_text_and_all_else_stays(text: str) -> None:
    whole = yamltext.read(text)
    assert isinstance(whole, dict)
    assert yamltext.read(yamltext.replaced(text, "secrets", "******")) == {**whole, "secrets": "******"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: yes", {"a": "yes"}),
        ("a: 2020-01-01", {"a": "2020-01-01"}),
        ("a: 1:30", {"a": "1:30"}),
        ("a: true", {"a": True}),
        ("a: 007", {"a": 7}),
        ("a: 0x10", {"a": 16}),
        ("a: 1e3", {"a": 1000.0}),
        ("a:", {"a": None}),
        ("a: ~", {"a": None}),
        ("a: 1234567890123456789012", {"a": 1.2345678901234568e21}),
    ],
)
def test_yaml_is_read_as_javascript_reads_it(text: str, value: object) -> None:
    assert yamltext.read(text) == value


def test_a_yaml_of_merges_of_merges_is_refused() -> None:
    lines = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 30))]
    with pytest.raises(InvalidError):
        yamltext.read("\n".join(lines))


def laughs(levels: int) -> str:
    """Nine of nine of nine …: a short text that stands for 9 to the power of `levels` values."""
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels))]
    return "\n".join(lines)


def test_what_the_aliases_of_a_yaml_grow_to_is_bounded_before_it_is_made() -> None:
    long = "x" * 50_000
    for text in (
        laughs(30),
        f"name: n\n{laughs(30)}",
        "a: &a [*a]",
        "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 3000))]),
        f"a: &a {long}\nb: [{', '.join(['*a'] * 1000)}]",
    ):
        with pytest.raises(InvalidError):
            yamltext.read(text)
        with pytest.raises(InvalidError):
            yamltext.replaced(text, "name", "other")


def test_what_a_comment_says_of_secrets_goes_with_them() -> None:
    text = "x: 1\nsecrets:\n  # was hunter1\n  a: hunter2  # and hunter3\n  # not hunter4\ny: 2 # stays\n"
    assert yamltext.replaced(text, "secrets", "******") == 'x: 1\nsecrets: "******"\ny: 2 # stays\n'
