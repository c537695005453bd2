"""docs/reference/causes.md: every cause of a failure that is recognised, from model/causes.py."""

from __future__ import annotations

from paddlecloud.model import causes
from tools.pages.markdown import code, document, table

INTRODUCTION = """
`paddlecloud show JOB` says of a failed job what it seems to be and what to do; OpenPAI's clients get the same as the
exit specification of a task. It is recognised from the exit code, the signal, the reason and the last lines of the log
of the task that failed first. The class counts for [jobs of OpenPAI](../from-openpai.md): what is permanent is not
started again, what is transient does not count.
"""


def page() -> str:
    rows = [
        (code(cause.name), f"{cause.what}.", "; ".join(cause.remedies), cause.class_.value, cause.by)
        for cause in causes.ALL
    ]
    return document(
        "Causes of failures",
        "src/paddlecloud/model/causes.py",
        INTRODUCTION,
        table(("cause", "what", "what to do", "class", "whose doing"), rows),
    )
