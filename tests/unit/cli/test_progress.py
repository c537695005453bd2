"""Progress of long work, as a person sees it."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console
from rich.progress import Progress

from paddlecloud.cli.bar import Bar, columns
from paddlecloud.cli.progress import progress


def drawn(total: int, done: int) -> str:
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=120, color_system=None)
    with Progress(*columns("uploading"), console=console) as shown:
        bar = Bar(shown, "uploading")
        bar.total(total)
        for _ in range(2):
            bar.advance(done // 2)
    return out.getvalue()


def test_a_bar_counts_in_one_family_of_units() -> None:
    text = drawn(3 * 2**20, 3 * 2**20)
    assert "3.0 MiB of 3.0 MiB" in text
    assert "iB/s" in text
    assert " MB" not in text
    assert " GB" not in text


def test_nothing_is_drawn_of_nothing() -> None:
    assert "0 B" not in drawn(0, 0)


def test_who_breaks_off_is_told_that_the_same_again_goes_on_where_it_stopped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(KeyboardInterrupt), progress("uploading"):
        raise KeyboardInterrupt
    assert "uploading was stopped: type the same again and it goes on where it stopped" in capsys.readouterr().err


def test_a_download_that_was_broken_off_is_gone_on_with_by_cp(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), progress("downloading", again="paddlecloud cp job-1 out"):
        raise KeyboardInterrupt
    assert "paddlecloud cp job-1 out" in capsys.readouterr().err
