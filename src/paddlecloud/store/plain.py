"""Encodes lists and mappings of simple values as text for a column, and decodes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec


def text_of(value: Mapping[str, Any] | Collection[str]) -> str:
    return msgspec.json.encode(value).decode()


def mapping_of(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])


def names_of(text: str) -> tuple[str, ...]:
    return msgspec.json.decode(text, type=tuple[str, ...])
