"""Folders in buckets of one's own, as the manual writes them; nothing else becomes an address that a key is sent to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.model.bos import Place, StorageKeyRequest, StorageLogin, check_storage_key, parse_bos_url
from paddlecloud.model.errors import InvalidError

ASKED = StorageKeyRequest(url="lab.bj.bcebos.com/d", key_id="an-ak", secret="s3cret")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("lab.bj.bcebos.com", Place(bucket="lab", region="bj")),
        ("lab.bj.bcebos.com/", Place(bucket="lab", region="bj")),
        ("https://lab-1.fwh.bcebos.com/your/dir/", Place(bucket="lab-1", region="fwh", folder="your/dir")),
        ("http://lab.gz.bcebos.com/数据/a b", Place(bucket="lab", region="gz", folder="数据/a b")),
        ("lab.bj.bcebos.com/output", Place(bucket="lab", region="bj", folder="output")),
    ],
)
def test_a_folder_in_a_bucket_is_understood(text: str, place: Place) -> None:
    assert parse_bos_url(text) == place
    assert parse_bos_url(str(place)) == place


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "lab",
            "lab.bj",
            "bj.bcebos.com",
            "/lab.bj.bcebos.com",
            "s3://lab.bj.bcebos.com/d",
            "lab.bj.bcebos.com:80/d",
        ),
        *("lab.bj.bcebos.com.evil.example/d", "me:pw@lab.bj.bcebos.com", "lab.b_j.bcebos.com", "Lab.bj.bcebos.com"),
        *("a.b.bj.bcebos.com", "-lab.bj.bcebos.com", "lab.bj.bcebos.com?x", "lab.bj.bcebos.com#x", "https://https://x"),
        *("lab.bj.bcebos.com//d", "lab.bj.bcebos.com/d//", "lab.bj.bcebos.com/../d", "lab.bj.bcebos.com/d/./e"),
        *("lab.bj.bcebos.com/d?x=1", "lab.bj.bcebos.com/d#e", "lab.bj.bcebos.com/d\\e", "lab.bj.bcebos.com/d\n"),
        *("lab.bj.bcebos.com/\ud800", f"lab.bj.bcebos.com/{'d/' * 300}d", f"{'b' * 64}.bj.bcebos.com"),
    ],
)
def test_odd_forms_are_refused_in_words(text: str) -> None:
    with pytest.raises(InvalidError, match=r"^bos_url") as refused:
        parse_bos_url(text)
    assert refused.value.field == "bos_url"


@given(st.text(max_size=60))
def test_whatever_is_a_region_can_stand_in_an_address(text: str) -> None:
    try:
        place = parse_bos_url(f"lab.{text}.bcebos.com/d")
    except InvalidError:
        return
    assert set(place.region) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert place.region[0].isalpha()


@pytest.mark.parametrize(("field", "text"), [("secret", ""), ("secret", "a b"), ("key_id", "é"), ("key_id", "k" * 256)])
def test_a_key_that_can_be_none_is_refused_without_being_told(field: str, text: str) -> None:
    values = {"key_id": ASKED.key_id, "secret": ASKED.secret} | {field: text}
    with pytest.raises(InvalidError) as refused:
        check_storage_key(StorageKeyRequest(url=ASKED.url, **values))
    assert refused.value.field == field
    assert not text or text not in refused.value.message


def test_no_repr_shows_a_key() -> None:
    for shown in (ASKED, StorageLogin(key_id="an-ak", secret="s3cret")):
        assert "s3cret" not in repr(shown)
        assert "an-ak" not in repr(shown)
