"""The real command in a real process, with an empty HOME and its own data folder."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

SRC = Path(__file__).parents[3] / "src"


@dataclass
class Command:
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder / "home"),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(SRC),
            "PADDLECLOUD_DATA": str(self.folder / "data"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            **self.variables,
        }

    def begin(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "paddlecloud", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment,
        )

    def type(self, *words: str, code: int = 0, stdin: str = "") -> subprocess.CompletedProcess[str]:
        begun = self.begin(*words)
        out, err = begun.communicate(stdin, timeout=60)
        assert begun.returncode == code, f"{words}: {begun.returncode}\n{out}\n{err}"
        assert "Traceback" not in err
        return subprocess.CompletedProcess(words, code, out, err)

    def out(self, *words: str) -> str:
        return self.type(*words).stdout
