"""An account's range of user ids, and what this process is inside its namespace."""

from __future__ import annotations

import os

import pytest

from paddlecloud.runtime import rootless
from paddlecloud.runtime.rootless import Range

SUBUID = "ann:100000:65536\nbob:200000:1000\nbob:300000:65536\n1003:400000:65536\nodd line\neve:x:65536\n"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("ann", "1001"), Range(100000, 65536)),
        (("bob", "1002"), Range(300000, 65536)),
        (("carol", "1003"), Range(400000, 65536)),
        (("dan", "1004"), None),
        (("eve", "1005"), None),
    ],
)
def test_a_range_is_found_by_name_or_number_if_it_is_large_enough(
    names: tuple[str, str], expected: Range | None
) -> None:
    assert rootless.range_of(SUBUID, names) == expected


def test_outside_of_a_namespace_this_process_is_who_it_is() -> None:
    assert rootless.own_uid() == os.getuid()
    assert rootless.maps(range(1000, 65000))
