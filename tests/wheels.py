"""Small Python packages to install in tests, from a folder instead of the network."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path


def wheel(
    folder: Path, name: str, source: str, *, version: str = "1.0", needs: Sequence[str] = (), script: str = ""
) -> Path:
    """A wheel of one module; `script` is a command that calls its `main`."""
    about = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        f"{name}.py": source,
        f"{about}/METADATA": metadata + "".join(f"Requires-Dist: {one}\n" for one in needs),
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if script:
        files[f"{about}/entry_points.txt"] = f"[console_scripts]\n{script} = {name}:main\n"
    record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items())
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in {**files, f"{about}/RECORD": f"{record}{about}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return made


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
