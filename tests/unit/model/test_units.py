"""Sizes and times as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.model import units
from paddlecloud.model.errors import InvalidError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("00:30:00", 1800), ("99:59:59", 359999), ("2h", 7200), ("1h30m", 5400), ("90s", 90), ("45", 45), ("1d", 86400)],
)
def test_times_are_read(text: str, seconds: int) -> None:
    assert units.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["25:61:00", "00:00:60", "", "h", "-1", "1.5h", "30:00", "٣", "1h 30m", "00:30:00\n1"])
def test_what_is_no_time_is_refused_with_the_field_named(text: str) -> None:
    with pytest.raises(InvalidError, match="wall_time") as caught:
        units.parse_duration(text, "wall_time")
    assert caught.value.field == "wall_time"


def test_where_a_unit_is_needed_a_bare_number_is_answered_with_how_to_write_it() -> None:
    with pytest.raises(InvalidError, match="--time-limit 2 has no unit: write 2s, 2m or 00:30:00"):
        units.parse_duration("2", "--time-limit", needs_unit=True)
    assert units.parse_duration("2m", "--time-limit", needs_unit=True) == 120


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"trainer": 1}, "1 trainer"),
        ({"pserver": 5, "trainer": 5}, "5 pservers and 5 trainers"),
        ({"pserver": 2, "trainer": 1, "evaluator": 3}, "2 pservers, 1 trainer and 3 evaluators"),
        ({}, ""),
    ],
)
def test_counts_are_said_in_a_sentence(counts: dict[str, int], text: str) -> None:
    assert units.describe_counts(counts) == text


@given(st.integers(0, 359999))
def test_a_written_time_reads_back(seconds: int) -> None:
    assert units.parse_duration(units.format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("1Ki", 1024),
        ("1k", 1000),
        ("1Gi", 2**30),
        ("1GiB", 2**30),
        ("10GB", 10**10),
        ("1.5g", 15 * 10**8),
    ],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert units.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "Gi", "-1", "1X", "1e9", "one"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidError):
        units.parse_size(text)


def test_sizes_and_times_are_said_in_few_words() -> None:
    assert [units.format_size(n) for n in (0, 1023, 1024, 3 * 2**30, 2**52)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "3.0 GiB",
        "4096.0 TiB",
    ]
    assert [units.describe_duration(n) for n in (0.2, 89, 720, 3 * 3600, 2 * 86400)] == [
        "1 s",
        "89 s",
        "12 min",
        "3 h",
        "2 days",
    ]


@pytest.mark.parametrize("text", ["9" * 5000, "9" * 5000 + "d", "1h" + "9" * 5000 + "m"])
def test_a_number_of_any_length_is_refused_and_no_fault(text: str) -> None:
    with pytest.raises(InvalidError, match="not a time"):
        units.parse_duration(text)
    with pytest.raises(InvalidError, match="not a size"):
        units.parse_size(text)
