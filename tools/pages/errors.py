"""docs/reference/errors.md: every error that a user can meet, from model/errors.py."""

from __future__ import annotations

import inspect

from paddlecloud.model import errors
from tools.pages.markdown import code, document, table

INTRODUCTION = """
The server answers with `application/problem+json` (RFC 9457); `code` names the class, and the SDK raises it: `from
paddlecloud.model.errors import NotFoundError`. `field` names the part of the request that is wrong. A message says
what happened, to what, and what to do.
"""


def page() -> str:
    tree = (inspect.getdoc(errors) or "").partition("\n\n")[2]
    rows = [(code(error.code), str(error.status), code(error.__name__)) for error in errors.BY_CODE.values()]
    return document(
        "Errors",
        "src/paddlecloud/model/errors.py",
        INTRODUCTION,
        table(("code", "HTTP status", "class"), rows),
        "## The tree",
        f"```\n{tree}\n```",
    )
