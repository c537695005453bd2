"""What is escaped before it reaches a terminal, and what is not."""

from __future__ import annotations

import json

import pytest

from paddlecloud.cli.printable import is_unsafe, log_line, printable, printable_json, printable_line
from paddlecloud.cli.show import Column, fields, table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("model.bin", "model.bin"),
        ("模型 é 🎉", "模型 é 🎉"),
        ("a\u3000b\xa0c", "a\u3000b\xa0c"),  # spaces that are no controls
        (r"a\nb", r"a\nb"),
        ("\x00\x07\x1b[2J", r"\x00\x07\x1b[2J"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x7f\x80\x85\x9b2J\x9f", r"\x7f\x80\x85\x9b2J\x9f"),
        ("\u202a\u202b\u202c\u202d\u202e", r"\u202a\u202b\u202c\u202d\u202e"),
        ("\u2066\u2067\u2068\u2069\u2028\u2029", r"\u2066\u2067\u2068\u2069\u2028\u2029"),
        ("\udc80\ud800", r"\udc80\ud800"),
    ],
)
def test_what_a_terminal_would_act_on_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert is_unsafe(text) is (text != shown)
    assert printable(shown) == shown


def test_a_line_may_have_tabs_and_on_a_terminal_colours_and_nothing_else() -> None:
    line = "a\tb\n\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J"
    assert printable_line(line) == r"a" + "\t" + r"b\n\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J"
    assert printable_line(line, coloured=True) == "a\tb\\n\x1b[31mred\x1b[0m" + r"\x1b]0;title\x07\x1b[2J"


def test_json_means_the_same_when_it_is_escaped() -> None:
    text = "a\x1b\x7f\x9b\u202e\u2066\udc80\n模"
    made = printable_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(made) == text
    assert printable(made) == made
    assert "模" in made


def test_a_line_of_a_log_loses_its_colours() -> None:
    assert log_line("\x1b[1;31mError:\x1b[0m\tno\x1b]0;x\x07") == r"Error:  no\x1b]0;x\x07"


def test_a_name_in_a_table_or_a_field_is_one_line_without_colours_of_its_own() -> None:
    names = ["a\n\x1b[31mb"]
    made = table(names, [Column("NAME", lambda name: name, colour=lambda _: "32")], coloured=True)
    assert made == "NAME\n\x1b[32ma\\n\\x1b[31mb\x1b[0m"
    assert fields([("name", "a\nstate  success\x1b[8m")]) == "name  a\n      state  success\\x1b[8m"
