"""Our own config file: one small TOML, which holds secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paddlecloud.model.errors import ConfigError
from paddlecloud.sdk import privatefile

KEYS = ("server", "servers", "ca", "user", "ak", "sk", "token")
_EMBEDDED_KEYS = ("user", "ak", "sk")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnConfig:
    """`values` name a server and an identity there; `embedded` is the access key of this user's embedded server."""

    values: Mapping[str, str] = field(default_factory=dict)
    embedded: Mapping[str, str] = field(default_factory=dict)


def read(file: Path) -> OwnConfig:
    if not file.exists():
        return OwnConfig()
    # Imported here, as most people have no such file.
    import tomllib

    try:
        whole = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not TOML: {error}; correct it, or remove it and log in again") from None
    embedded = whole.pop("embedded", {})
    if not isinstance(embedded, dict):
        raise ConfigError(f"{file}: embedded must be a table, [embedded]", field="embedded")
    if isinstance(servers := whole.get("servers"), list) and all(isinstance(server, str) for server in servers):
        whole["servers"] = ", ".join(servers)
    _check(file, whole, KEYS)
    _check(file, embedded, _EMBEDDED_KEYS)
    return OwnConfig(values=whole, embedded=embedded)


def write(file: Path, config: OwnConfig) -> None:
    lines = [_line(name, config.values[name]) for name in KEYS if config.values.get(name)]
    if config.embedded:
        lines += ["", "[embedded]"]
        lines += [_line(name, config.embedded[name]) for name in _EMBEDDED_KEYS if config.embedded.get(name)]
    privatefile.write(file, ("\n".join(lines).lstrip("\n") + "\n").encode())


def _check(file: Path, values: Mapping[str, object], known: tuple[str, ...]) -> None:
    for name, value in values.items():
        if name not in known:
            # Imported here, as msgspec comes with it and most commands never meet this.
            from paddlecloud.model.wire import nearest

            raise ConfigError(f"{file}: {name} is not a setting{nearest(name, known)}", field=name)
        if not isinstance(value, str):
            raise ConfigError(f"{file}: {name} must be a string in quotes", field=name)


def _line(name: str, value: str) -> str:
    # A JSON string is a TOML basic string, but for DEL, which no value of ours holds.
    return f"{name} = {json.dumps(value, ensure_ascii=False)}"
