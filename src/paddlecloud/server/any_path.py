"""A part of an address that is a path of files: `/v1/files/{path:any_path}`."""

from __future__ import annotations

from starlette.convertors import PathConvertor, register_url_convertor

ANY_PATH = "any_path"


class _AnyPath(PathConvertor):
    """Starlette's own stops at a newline, which a file's name may hold."""

    regex = r"[\s\S]*"


register_url_convertor(ANY_PATH, _AnyPath())
