"""docs/reference/variables.md: what a task finds in its environment, from runtime/variables.py."""

from __future__ import annotations

from paddlecloud.runtime.openpai import NAMED
from paddlecloud.runtime.variables import VARIABLES
from tools.pages.markdown import code, document, table

INTRODUCTION = """
A task's environment is built from this table and the job's own variables (`--env`) alone, never from the server's. A
variable of the job's own wins, except where the table says that it cannot. The first fourteen are those of the
manual's table, the fifteenth is in its FAQ. What scripts of OpenPAI read comes in a table of its own.
"""
OPENPAI = """
## OpenPAI's
Set for every task. Where the name of a role has other characters than small letters and digits, its variables are there
once more, with those alone.
"""


def page() -> str:
    rows = [(code(variable.name), variable.who, variable.meaning) for variable in VARIABLES]
    return document(
        "Variables of a task",
        "src/paddlecloud/runtime/variables.py",
        INTRODUCTION,
        table(("variable", "set for", "meaning"), rows),
        OPENPAI,
        table(("variable", "meaning"), [(code(named.name), named.meaning) for named in NAMED]),
    )
