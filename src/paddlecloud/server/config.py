"""The config file: read into the settings of settings.py, refused where it says what they cannot be, and shown."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import tomllib
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from paddlecloud.model.errors import ConfigError
from paddlecloud.model.job import DEFAULT
from paddlecloud.model.pfs import PUBLIC
from paddlecloud.model.units import format_duration
from paddlecloud.model.wire import nearest
from paddlecloud.server.agreement import check, check_datacenter
from paddlecloud.server.cluster_settings import ClusterSettings, QueueSettings
from paddlecloud.server.kinds import WrongError, without_password
from paddlecloud.server.settings import LOCAL, SECTIONS, DatacenterSettings, HdfsSettings, ServerSettings, Settings

T = TypeVar("T")

_CLUSTERS, _QUEUES, _DATACENTERS, _HDFS = "clusters", "queues", "datacenters", "hdfs"
_SECRETS_OF_DATABASE = ("passfile", "sslkey")  # options of libpq that name files
_SECRETS_AT_HOME = (
    "bin/paddlecloud/conf/client.conf",
    "bin/paddlecloud/client.conf",
    ".paddle/config",
    ".postgresql/postgresql.key",
)
_OF_SLURM = ("PATH", "HOME", "SLURM_CONF")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_CLUSTER_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_QUEUE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DATACENTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One setting with its value, as the reference and `config --server` show it."""

    section: str
    name: str
    value: object
    default: object
    help: str


def load(config: Path | None = None, *, data: Path | None = None, embedded: bool = False) -> Settings:
    """The settings of a server: the file named, else server.toml in its data folder if there is one, else defaults."""
    data = data or _environment("PADDLECLOUD_DATA")
    if config is None:
        config = (data or default_data_folder()) / "server.toml"
        plain = _read(config) if config.exists() else {}
    else:
        plain = _read(config)
    settings = parse(plain, source=str(config), data=data, embedded=embedded)
    return dataclasses.replace(settings, source=config.absolute())


def parse(
    plain: Mapping[str, object], *, source: str = "the config", data: Path | None = None, embedded: bool = False
) -> Settings:
    """Settings from TOML's tables, refusing what it does not know; `data` wins over what they say."""
    for name in plain:
        if name not in (known := [*SECTIONS, _CLUSTERS, _QUEUES, _DATACENTERS, _HDFS]):
            raise ConfigError(f"{source}: [{name}] is not a known section{nearest(name, known)}", field=name)
    sections: dict[str, Any] = {
        name: _section(kind, name, plain.get(name, {}), source) for name, kind in SECTIONS.items()
    }
    server: ServerSettings = sections.pop("server")
    named = server.data if server.data != ServerSettings().data else default_data_folder()
    settings = Settings(
        server=dataclasses.replace(server, data=(data or named).absolute()),
        clusters=_clusters(plain.get(_CLUSTERS, {}), source),
        queues=_queues(plain.get(_QUEUES, {}), source),
        datacenters=_datacenters(plain.get(_DATACENTERS, {}), source),
        hdfs=_hdfs(plain.get(_HDFS, {}), source),
        embedded=embedded,
        **sections,
    )
    check(settings, source)
    return settings


def lines(settings: Settings) -> Iterator[Line]:
    """Every setting with its effective value, section by section."""
    for section in SECTIONS:
        yield from _lines_of(section, getattr(settings, section))
    for name, cluster in settings.clusters.items():
        yield from _lines_of(f"clusters.{name}", cluster)
    for name, queue in settings.queues.items():
        yield from _lines_of(f"{_QUEUES}.{_key(name)}", queue)
    for name, datacenter in settings.datacenters.items():
        yield from _lines_of(f"datacenters.{name}", datacenter)
    for name, known in settings.hdfs.items():
        yield from _lines_of(f"hdfs.{_quote(name)}", known)


def reference() -> Iterator[Line]:
    """Every setting that there is, with its default, for the docs."""
    for section, kind in SECTIONS.items():
        yield from _lines_of(section, kind())
    yield from _lines_of("clusters.<name>", ClusterSettings())
    yield from _lines_of("queues.<name>", QueueSettings())
    yield from _lines_of("datacenters.<name>", DatacenterSettings())
    yield from _lines_of('hdfs."<host:port>"', HdfsSettings())


def render(settings: Settings) -> str:
    """The effective settings as the TOML file that would give them."""
    return _toml(lines(settings), lambda line: line.value is not None)


def template(policy: str) -> str:
    """A config file to begin with: the policy, and every other setting as a comment with its default."""
    settings = parse({"server": {"policy": policy}})
    return _toml(lines(settings), lambda line: (line.section, line.name) == ("server", "policy"))


def _toml(found: Iterable[Line], counts: Callable[[Line], bool]) -> str:
    """The lines as TOML, those that do not count as comments."""
    out: list[str] = []
    section = ""
    for line in found:
        if line.section != section:
            out += [""] if section else []
            out.append(f"[{line.section}]")
            section = line.section
        out.append(f"# {line.help}")
        out.append(f"{'' if counts(line) else '# '}{line.name} = {show(line.value)}")
    return "\n".join(out) + "\n"


def show(value: object) -> str:
    """A value of a setting as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return f'"{format_duration(value.total_seconds())}"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(name)} = {show(one)}" for name, one in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(show(part) for part in value) + "]"
    if isinstance(value, range):
        return f'"{value.start}-{value.stop - 1}"'
    if isinstance(value, str | Path):
        return _quote(without_password(str(value)))
    return "" if value is None else str(value)


def default_data_folder() -> Path:
    """Where this user's data goes: what PADDLECLOUD_DATA names, else a folder of our own where XDG puts data."""
    return _environment("PADDLECLOUD_DATA") or (
        (_environment("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "paddlecloud"
    )


def client_config_folder() -> Path:
    """Where the commands of this account keep their access key."""
    return (_environment("XDG_CONFIG_HOME") or Path.home() / ".config") / "paddlecloud"


def kept_from_tasks(settings: Settings) -> tuple[Path, ...]:
    """The folders and files with secrets of the server's account, which tasks run as; some may not be there."""
    folders = (settings.server.data, client_config_folder(), *_pfs_folders(settings))
    hidden = [folder.resolve() for folder in folders]
    files = dict.fromkeys(path.absolute() for path in _secret_files(settings))
    # What is in a folder that is hidden cannot be hidden once more: it is not there any more.
    return (*folders, *(file for file in files if not any(file.resolve().is_relative_to(one) for one in hidden)))


def slurm_environment() -> dict[str, str]:
    """What Slurm's commands need of this process's environment."""
    return {name: value for name in _OF_SLURM if (value := os.environ.get(name))}


def _pfs_folders(settings: Settings) -> Iterator[Path]:
    """Those outside the data folder: a task is shown its user's home of them, and no more."""
    for datacenter in settings.datacenters.values():
        if datacenter.store != LOCAL:
            continue
        if datacenter.path is not None and not datacenter.path.resolve().is_relative_to(settings.server.data.resolve()):
            yield datacenter.path


def _secret_files(settings: Settings) -> Iterator[Path]:
    for named in (settings.source, settings.mail.password_file, settings.server.certificate_key):
        if named is not None:
            yield named
    for cluster in settings.clusters.values():
        named = Path(cluster.token_file)
        yield from named.parent.glob(named.name.replace("{account}", "*")) if cluster.token_file else ()
    for datacenter in settings.datacenters.values():
        if datacenter.secret_file is not None:
            yield datacenter.secret_file
    for name, value in parse_qsl(urlsplit(settings.server.database).query):
        if name in _SECRETS_OF_DATABASE:
            yield Path(value).expanduser()
    yield _environment("PGPASSFILE") or Path.home() / ".pgpass"
    yield _environment("PGSERVICEFILE") or Path.home() / ".pg_service.conf"
    for name in _SECRETS_AT_HOME:
        yield Path.home() / name


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
        except WrongError as wanted:
            shown = without_password(repr(value))
            raise ConfigError(
                f"{source}: {full} = {shown} must be {wanted}. {full}: {metadata['help']}", field=full
            ) from None
    return kind(**values)


def _clusters(plain: object, source: str) -> dict[str, ClusterSettings]:
    if not isinstance(plain, Mapping):
        raise ConfigError(f"{source}: clusters must be tables: write [clusters.<name>]", field="clusters")
    for name in plain:
        if not _CLUSTER_NAME.fullmatch(name) or name == DEFAULT:
            raise ConfigError(
                f"{source}: a cluster cannot be called {name!r}: use small letters, digits and -, and not "
                f"{DEFAULT!r}, which stands for the list server.default_clusters",
                field="clusters",
            )
    configured = {name: _section(ClusterSettings, f"clusters.{name}", table, source) for name, table in plain.items()}
    return configured or {"local": ClusterSettings()}


def _queues(plain: object, source: str) -> dict[str, QueueSettings]:
    if not isinstance(plain, Mapping):
        raise ConfigError(f"{source}: queues must be tables: write [queues.<name>]", field=_QUEUES)
    for name in plain:
        if not _QUEUE_NAME.fullmatch(name):
            raise ConfigError(
                f"{source}: a queue cannot be called {name!r}: use letters, digits and . _ -, and a letter or digit "
                'first; a name with a . is written [queues."a.b"]',
                field=_QUEUES,
            )
    return {name: _section(QueueSettings, f"{_QUEUES}.{name}", table, source) for name, table in plain.items()}


def _datacenters(plain: object, source: str) -> dict[str, DatacenterSettings]:
    """They keep the order of the file: the first has the results of jobs, and is what /pfs/public means."""
    if not isinstance(plain, Mapping):
        raise ConfigError(f"{source}: datacenters must be tables: write [datacenters.<name>]", field=_DATACENTERS)
    for name in plain:
        if not _DATACENTER_NAME.fullmatch(name) or name == PUBLIC:
            raise ConfigError(
                f"{source}: a datacenter cannot be called {name!r}: its name stands in paths, so use letters, digits "
                f"and . _ -, and not {PUBLIC!r}",
                field=_DATACENTERS,
            )
    found = {
        name: _section(DatacenterSettings, f"{_DATACENTERS}.{name}", table, source) for name, table in plain.items()
    }
    for name, datacenter in found.items():
        check_datacenter(name, datacenter, source)
    return found or {"local": DatacenterSettings()}


def _hdfs(plain: object, source: str) -> dict[str, HdfsSettings]:
    """By the names that stand in hdfs://<name>/…"""
    if not isinstance(plain, Mapping):
        raise ConfigError(f'{source}: hdfs must be tables: write [hdfs."<host>:<port>"]', field=_HDFS)
    found = {name: _section(HdfsSettings, f"{_HDFS}.{_quote(name)}", table, source) for name, table in plain.items()}
    for name, known in found.items():
        full = f"{_HDFS}.{_quote(name)}"
        if not name or "/" in name:
            raise ConfigError(
                f"{source}: [{full}] is no name of a file system: write it as it stands between hdfs:// and the path, "
                'such as "namenode:54310"',
                field=full,
            )
        if not known.url:
            raise ConfigError(f"{source}: {full}.url is missing: name the address of its WebHDFS", field=f"{full}.url")
    return found


def _lines_of(section: str, values: Any) -> Iterator[Line]:
    for one in dataclasses.fields(values):
        value = getattr(values, one.name)
        yield Line(section=section, name=one.name, value=value, default=one.default, help=one.metadata["help"])


def _key(name: str) -> str:
    """A name as TOML has it."""
    return name if _BARE_KEY.fullmatch(name) else _quote(name)


def _quote(text: str) -> str:
    # A JSON string is a TOML string, except that TOML wants DEL escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
