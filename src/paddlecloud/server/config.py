"""Every setting of the server, each on one line: its name, type, default and help all come from here.

Parsing, `paddlecloud config --server` and the reference in docs/ read the same lines, so they cannot disagree.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import os
import re
import tomllib
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from paddlecloud.model.errors import ConfigError, InvalidError
from paddlecloud.model.units import format_duration, parse_duration, parse_size
from paddlecloud.model.wire import nearest

DEFAULT_CLUSTER = "default"
DEFAULT_PORT = 8642
LOG_LEVELS = ("debug", "info", "warning", "error")
OPEN, FREE = "open", "free"

T = TypeVar("T")

_CLUSTER_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


class _Wrong(Exception):
    """A value that a setting cannot take; the message says what it takes."""


def _line(parse: Callable[[object], object], text: str) -> dict[str, Any]:
    return {"parse": parse, "help": text}


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise _Wrong("a text")
    return value


def _choice(*choices: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if value not in choices:
            raise _Wrong("one of " + ", ".join(choices))
        return str(value)

    return parse


def _whole(least: int, most: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise _Wrong(f"a whole number from {least} to {most}")
        return value

    return parse


def _yes_or_no(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("true or false")
    return value


def _cpus(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1_000_000:
        raise _Wrong("a number of CPUs above 0")
    return float(value)


def _size(value: object) -> int:
    try:
        found = parse_size(value) if isinstance(value, str) else _whole(1, 2**60)(value)
    except (InvalidError, _Wrong):
        found = 0
    if found <= 0:
        raise _Wrong('a size such as "512Mi", "10GB" or a number of bytes')
    return found


def _duration(least: int) -> Callable[[object], timedelta]:
    def parse(value: object) -> timedelta:
        try:
            seconds = parse_duration(value) if isinstance(value, str) else _whole(0, 2**31)(value)
        except (InvalidError, _Wrong):
            seconds = -1
        if not least <= seconds <= 2**31:
            raise _Wrong(f'a time such as "00:30:00", "2h" or a number of seconds, at least {least} s')
        return timedelta(seconds=seconds)

    return parse


def _program(value: object) -> str:
    path = _text(value)
    if path and not (Path(path).is_absolute() and os.access(path, os.X_OK)):
        raise _Wrong("the full path of a program that is there")
    return path


def _folder(value: object) -> Path:
    return Path(_text(value)).expanduser()


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _Wrong("a list of names")
    return tuple(value)


def _timezone(value: object) -> str:
    try:
        return ZoneInfo(_text(value)).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise _Wrong('a time zone such as "UTC" or "Asia/Shanghai"') from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    host: str = field(
        default="127.0.0.1",
        metadata=_line(_text, "Address to listen on; beyond this machine it needs insecure = true."),
    )
    port: int = field(default=DEFAULT_PORT, metadata=_line(_whole(0, 65535), "Port to listen on; 0 takes a free one."))
    insecure: bool = field(
        default=False, metadata=_line(_yes_or_no, "Listen beyond this machine although nothing is encrypted yet.")
    )
    data: Path = field(
        default=Path("~/.local/share/paddlecloud"),
        metadata=_line(_folder, "Folder of all records and files (PADDLECLOUD_DATA overrides it)."),
    )
    timezone: str = field(default="UTC", metadata=_line(_timezone, "Where the server's days begin and end."))
    log_level: str = field(
        default="info", metadata=_line(_choice(*LOG_LEVELS), "How much it says: debug, info, warning, error.")
    )
    default_clusters: tuple[str, ...] = field(
        default=(), metadata=_line(_names, "What cluster=default tries, in order; empty: all.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    wall_time: timedelta = field(
        default=timedelta(minutes=30), metadata=_line(_duration(1), "How long a job may run that asks for no time.")
    )
    schedule_limit: timedelta = field(
        default=timedelta(days=7), metadata=_line(_duration(1), "How long a job may wait for its turn.")
    )
    grace: timedelta = field(
        default=timedelta(seconds=10), metadata=_line(_duration(0), "Time between SIGTERM and SIGKILL at a job's end.")
    )
    attempts: int = field(default=3, metadata=_line(_whole(1, 100), "How often a job is started that loses its node."))
    tasks_limit: int = field(default=1000, metadata=_line(_whole(1, 100_000), "Most tasks that one job may have."))
    upload_limit: int = field(default=20 * 2**30, metadata=_line(_size, "Largest folder that a job may bring."))
    python: str = field(
        default="",
        metadata=_line(
            _program, "Full path of what tasks find as python and python3; empty: the one behind this server's."
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    backend: str = field(default="local", metadata=_line(_choice("local"), "What runs its tasks: local."))
    cpus: float | None = field(default=None, metadata=_line(_cpus, "CPUs to give out; left out: all there are."))
    memory: int | None = field(default=None, metadata=_line(_size, "Memory to give out; left out: all there is."))
    gpus: int | None = field(
        default=None, metadata=_line(_whole(0, 100_000), "GPUs to give out; left out: all there are.")
    )
    policy: str = field(
        default=OPEN, metadata=_line(_choice(OPEN, FREE), "open; or free: one instance and 30 minutes for every job.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    server: ServerSettings
    jobs: JobSettings = JobSettings()
    clusters: Mapping[str, ClusterSettings] = field(default_factory=dict)

    @property
    def default_clusters(self) -> tuple[str, ...]:
        return self.server.default_clusters or tuple(self.clusters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One setting with its value, as the reference and `config --server` show it."""

    section: str
    name: str
    value: object
    default: object
    help: str


def load(config: Path | None = None, *, data: Path | None = None) -> Settings:
    """The settings of a server: the file named, else server.toml in its data folder if there is one, else defaults."""
    data = data or _environment("PADDLECLOUD_DATA")
    if config is None:
        config = (data or default_data_folder()) / "server.toml"
        plain = _read(config) if config.exists() else {}
    else:
        plain = _read(config)
    return parse(plain, source=str(config), data=data)


def parse(plain: Mapping[str, object], *, source: str = "the config", data: Path | None = None) -> Settings:
    """Settings from TOML's tables, refusing what it does not know; `data` wins over what they say."""
    for name in plain:
        if name not in _SECTIONS:
            raise ConfigError(f"{source}: [{name}] is not a known section{nearest(name, list(_SECTIONS))}", field=name)
    server = _section(ServerSettings, "server", plain.get("server", {}), source)
    named = server.data if server.data != ServerSettings().data else default_data_folder()
    settings = Settings(
        server=dataclasses.replace(server, data=(data or named).absolute()),
        jobs=_section(JobSettings, "jobs", plain.get("jobs", {}), source),
        clusters=_clusters(plain.get("clusters", {}), source),
    )
    _check(settings, source)
    return settings


def lines(settings: Settings) -> Iterator[Line]:
    """Every setting with its effective value, section by section."""
    yield from _lines_of("server", settings.server)
    yield from _lines_of("jobs", settings.jobs)
    for name, cluster in settings.clusters.items():
        yield from _lines_of(f"clusters.{name}", cluster)


def reference() -> Iterator[Line]:
    """Every setting that there is, with its default, for the docs."""
    yield from _lines_of("server", ServerSettings())
    yield from _lines_of("jobs", JobSettings())
    yield from _lines_of("clusters.<name>", ClusterSettings())


def render(settings: Settings) -> str:
    """The effective settings as the TOML file that would give them."""
    out: list[str] = []
    section = ""
    for line in lines(settings):
        if line.section != section:
            out += [""] if section else []
            out.append(f"[{line.section}]")
            section = line.section
        out.append(f"# {line.help}")
        out.append(f"{'# ' if line.value is None else ''}{line.name} = {show(line.value)}")
    return "\n".join(out) + "\n"


def show(value: object) -> str:
    """A value of a setting as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return f'"{format_duration(value.total_seconds())}"'
    if isinstance(value, tuple):
        return "[" + ", ".join(show(part) for part in value) + "]"
    if isinstance(value, str | Path):
        return _quote(str(value))
    return "" if value is None else str(value)


def default_data_folder() -> Path:
    """Where this user's data goes: what PADDLECLOUD_DATA names, else a folder of our own where XDG puts data."""
    return _environment("PADDLECLOUD_DATA") or (
        (_environment("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "paddlecloud"
    )


def client_config_folder() -> Path:
    """Where the commands of this account keep their access key."""
    return (_environment("XDG_CONFIG_HOME") or Path.home() / ".config") / "paddlecloud"


def _environment(name: str) -> Path | None:
    value = os.environ.get(name, "")
    return Path(value).expanduser() if value else None


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the config {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None


def _section(kind: type[T], section: str, plain: object, source: str) -> T:
    if not isinstance(plain, Mapping):
        raise ConfigError(f"{source}: {section} must be a table: write [{section}]", field=section)
    known = {one.name: one for one in dataclasses.fields(typing.cast(Any, kind))}
    values: dict[str, object] = {}
    for name, value in plain.items():
        full = f"{section}.{name}"
        if name not in known:
            raise ConfigError(f"{source}: {full} is not a known setting{nearest(name, list(known))}", field=full)
        metadata = known[name].metadata
        try:
            values[name] = metadata["parse"](value)
        except _Wrong as wanted:
            raise ConfigError(
                f"{source}: {full} = {value!r} must be {wanted}. {full}: {metadata['help']}", field=full
            ) from None
    return kind(**values)


def _clusters(plain: object, source: str) -> dict[str, ClusterSettings]:
    if not isinstance(plain, Mapping):
        raise ConfigError(f"{source}: clusters must be tables: write [clusters.<name>]", field="clusters")
    for name in plain:
        if not _CLUSTER_NAME.fullmatch(name) or name == DEFAULT_CLUSTER:
            raise ConfigError(
                f"{source}: a cluster cannot be called {name!r}: use small letters, digits and -, and not "
                f"{DEFAULT_CLUSTER!r}, which stands for the list server.default_clusters",
                field="clusters",
            )
    configured = {name: _section(ClusterSettings, f"clusters.{name}", table, source) for name, table in plain.items()}
    return configured or {"local": ClusterSettings()}


def _check(settings: Settings, source: str) -> None:
    server = settings.server
    for name in server.default_clusters:
        if name not in settings.clusters:
            raise ConfigError(
                f"{source}: server.default_clusters names {name!r}, which is not configured"
                + nearest(name, list(settings.clusters)),
                field="server.default_clusters",
            )
    if not server.insecure and not _is_loopback(server.host):
        raise ConfigError(
            f"{source}: server.host = {server.host!r} is reached from other machines, and nothing is encrypted yet: "
            "set server.insecure = true to allow it, or keep 127.0.0.1 and use a tunnel",
            field="server.host",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _lines_of(section: str, values: Any) -> Iterator[Line]:
    for one in dataclasses.fields(values):
        value = getattr(values, one.name)
        yield Line(section=section, name=one.name, value=value, default=one.default, help=one.metadata["help"])


def _quote(text: str) -> str:
    # A JSON string is a TOML string, except that TOML wants DEL escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


_SECTIONS = ("server", "jobs", "clusters")
