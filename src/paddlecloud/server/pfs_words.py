"""Errors of stores in the words of who asked: a store knows its own paths alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from paddlecloud.model.errors import NotFoundError, PaddleCloudError
from paddlecloud.model.pfs import Area, Place


@contextmanager
def in_its_words(place: Place) -> Iterator[None]:
    """Let errors name the path as the caller knows it, not as a store does."""
    try:
        yield
    except NotFoundError:
        raise NotFoundError(f"{place.path}: no such file or directory", field="path") from None
    except PaddleCloudError as error:
        raise type(error)(_as_named(error.message, place), field=error.field) from None


@contextmanager
def naming(place: Place) -> Iterator[None]:
    """The same for a second place, which may well not be there."""
    try:
        yield
    except PaddleCloudError as error:
        raise type(error)(_as_named(error.message, place), field=error.field) from None


def _as_named(message: str, place: Place) -> str:
    """A message in which a store quotes paths of its own, such as 'home/you/data', with what callers call them."""
    above = "" if place.area is Area.OUTPUT else "(?:[^'\"]*?/)??"  # a store in a bucket may be in a folder of it
    quoted = rf"(['\"]){above}{re.escape(place.root)}((?:/(?:\\.|(?!\1).)*)?)\1"
    return re.sub(quoted, lambda found: place.top + found[2], message)
