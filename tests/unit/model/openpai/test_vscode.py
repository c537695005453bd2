"""What the VS Code client does with a job before it sends it, done alike."""

from __future__ import annotations

import pytest

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.openpai import vscode
from paddlecloud.model.openpai.vscode import Settings

SEED = """
{
    "pai.job.upload.enabled": true, // as the seed has it
    "pai.job.upload.exclude": [],
    /* what goes along */
    "pai.job.upload.include": [
        "**/*.py",
        "**/*.sh",
    ],
    "pai.job.generateJobName.enabled": true,
    "other": "http://not/a/comment"
}
"""


def test_the_settings_of_seed_004_are_read_with_their_comments() -> None:
    found = vscode.read_settings(SEED)
    assert found == Settings(upload=True, include=("**/*.py", "**/*.sh"), exclude=(), generate_name=True)
    sent = ["train.sh", "pkg/m.py", "new_job.pai.json", "data/x.txt", ".git/hooks/x.py", "pkg/__pycache__/m.py"]
    assert [path for path in sent if found.sends(path)] == ["train.sh", "pkg/m.py"]


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"pai.job.upload.enabled": 1}', '{"pai.job.upload.include": "x"}', "[" * 9000]
)
def test_settings_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidError, match="settings.json"):
        vscode.read_settings(text)


def test_the_first_of_each_variable_is_replaced_as_the_client_does() -> None:
    job = {
        "jobName": "x",
        "codeDir": "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_JOB_NAME",
        "taskRoles": [{"command": "cd $PAI_JOB_NAME && echo $PAI_JOB_NAME"}, {"name": "b"}],
    }
    assert vscode.prepared(job, user="alice", name="x_1") == {
        "jobName": "x_1",
        "codeDir": "$PAI_DEFAULT_FS_URI/alice/x_1",
        "taskRoles": [{"command": "cd x_1 && echo $PAI_JOB_NAME"}, {"name": "b"}],
    }


@pytest.mark.parametrize(
    ("code_dir", "path"),
    [
        ("$PAI_DEFAULT_FS_URI/alice/x", "/alice/x"),
        ("hdfs://box:9000/alice/x", ""),
        ("/alice/x", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_code_is_sent_where_the_client_would_send_it(code_dir: object, path: str) -> None:
    assert vscode.code_path(code_dir) == path


@pytest.mark.parametrize(
    ("glob", "path", "is_meant"),
    [
        ("**/*.py", "a.py", True),
        ("**/*.py", "a/b/c.py", True),
        ("*.py", "a/b.py", False),
        ("a/**", "a/b/c", True),
        ("**/{a,b}.txt", "x/b.txt", True),
        ("**/{a,b}.txt", "x/c.txt", False),
        ("?.sh", "a.sh", True),
        ("[!a].sh", "a.sh", False),
        ("[ab].sh", "a.sh", True),
        ("a.c", "abc", False),
        ("./x", "x", True),
    ],
)
def test_globs_mean_what_they_mean_there(glob: str, path: str, is_meant: bool) -> None:
    assert vscode.matches(path, glob) is is_meant
