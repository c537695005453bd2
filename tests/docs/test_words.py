"""Every state, setting, variable, error and exit code has its line in the docs."""

from __future__ import annotations

from paddlecloud.cli import exits
from paddlecloud.model.errors import BY_CODE
from paddlecloud.model.state import JobState, StopReason
from paddlecloud.runtime.variables import VARIABLES
from paddlecloud.server import config
from tests.docs.pages import ROOT

SEED_002 = """POD_IP PADDLE_TRAINER_ID PADDLE_TRAINERS_NUM PADDLE_USE_CUDA PADDLE_IS_LOCAL DISTRIBUTE_JOB_TYPE
PADDLE_PSERVERS_IP_PORT_LIST PADDLE_TRAINER_ENDPOINTS PADDLE_CURRENT_ENDPOINT TRAINING_ROLE OUTPUT_PATH LOCAL_LOG_PATH
LOCAL_MOUNT_PATH JOB_ID PADDLE_PORT""".split()


def test_every_state_and_reason_is_told() -> None:
    page = _read("lifecycle.md")
    assert [state for state in JobState if f"| `{state.label}` |" not in page] == []
    assert [reason for reason in StopReason if f"| `{reason}` |" not in page] == []


def test_every_setting_is_told() -> None:
    page = _read("reference/settings.md")
    assert [line.name for line in config.reference() if f"| `{line.name}` |" not in page or not line.help] == []


def test_every_variable_is_told_and_the_manuals_fifteen_come_first() -> None:
    page = _read("reference/variables.md")
    assert [variable.name for variable in VARIABLES if f"| `{variable.name}` |" not in page] == []
    assert [variable.name for variable in VARIABLES[:15]] == SEED_002


def test_every_error_code_is_told() -> None:
    page = _read("reference/errors.md")
    assert [code for code in BY_CODE if f"| `{code}` |" not in page] == []


def test_every_exit_code_is_told() -> None:
    page = _read("use.md")
    codes = [value for name, value in vars(exits).items() if name.isupper() and type(value) is int]
    assert codes
    assert [code for code in codes if f"| {code} |" not in page] == []


def test_every_decision_is_listed() -> None:
    listed = _read("decisions/README.md")
    pages = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    assert pages
    assert [page.name for page in pages if f"]({page.name})" not in listed] == []


def _read(name: str) -> str:
    return (ROOT / "docs" / name).read_text()
