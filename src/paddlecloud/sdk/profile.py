"""Which server, and who am I: the profile a client works with, and where each of its values came from.

Order: the environment, our own config, client.conf, ~/.paddle/config; with none of them the embedded server.
A token is a secret that travels, so one that a file holds is only ever sent to the server that the same file names;
so is a CA only believed there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from paddlecloud.model import endpoint
from paddlecloud.model.errors import ConfigError, UnreachableError
from paddlecloud.sdk import ownconfig
from paddlecloud.sdk.addresses import server_list, server_url
from paddlecloud.sdk.clientconf import Sections, read_client_conf, read_paddle_config, write_client_conf

KEYS = ("server", "servers", "ca", "user", "ak", "sk", "token", "password")
SECRETS = frozenset({"sk", "token", "password"})
_CLIENT_CONFS = ("bin/paddlecloud/conf/client.conf", "bin/paddlecloud/client.conf")
_ENVIRONMENT = "the environment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a profile is found from: variables of the shell and the folders they lead to."""

    variables: Mapping[str, str]
    home: Path

    @property
    def config_file(self) -> Path:
        """Our own config, mode 0600."""
        folder = self.variables.get("XDG_CONFIG_HOME") or self.home / ".config"
        return Path(folder) / "paddlecloud" / "config.toml"

    @property
    def tokens_file(self) -> Path:
        """Beside it, what passwords were exchanged for."""
        return self.config_file.with_name("tokens.json")

    @property
    def client_conf(self) -> Path:
        """Seed 002's config: the first of both documented paths that is there, else the first."""
        files = [self.home / name for name in _CLIENT_CONFS]
        return next((file for file in files if file.is_file()), files[0])

    @property
    def data_folder(self) -> Path:
        """Where the embedded server of this user keeps its data."""
        if given := self.variables.get("PADDLECLOUD_DATA"):
            return _checked_folder(Path(given).absolute(), "PADDLECLOUD_DATA: ")
        folder = self.variables.get("XDG_DATA_HOME") or self.home / ".local" / "share"
        return _checked_folder(Path(folder) / "paddlecloud", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A server and an identity there: `ak` and `sk`, a `token`, or `user` and `password`.

    `server` is "" where nothing names one and no embedded server runs, or where the identity is for another server.
    Where several were named it is the first of `servers`, of which the first that answers is taken.
    Its certificate is checked with the file `ca`, or, on this machine, by the `fingerprint` that it announced.
    `sources` says where each value came from; `private` are the sections [bcc] and [bos] of `client_conf`, for
    resources of one's own. What the password is exchanged for is kept in `tokens_file`; "": not beyond this program.
    """

    server: str = ""
    servers: tuple[str, ...] = ()
    ca: str = ""
    fingerprint: str = ""
    user: str = ""
    ak: str = ""
    sk: str = ""
    token: str = ""
    password: str = ""
    datacenter: str = ""
    embedded: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)
    private: Sections = field(default_factory=dict)
    client_conf: str = ""
    tokens_file: str = ""

    @property
    def identified(self) -> bool:
        return bool(self.token or (self.ak and self.sk) or (self.user and self.password))


def _checked_folder(folder: Path, named: str) -> Path:
    """The folder, where nothing is in the way of making it."""
    there = next((place for place in (folder, *folder.parents) if os.path.exists(place)), None)
    if there is not None and not os.path.isdir(there):
        raise ConfigError(f"{named}{there} is a file, and data is kept in a folder: name one", field="data")
    return folder


def surroundings() -> Surroundings:
    """This process's own: the one place of the SDK that reads the environment."""
    return Surroundings(variables=dict(os.environ), home=Path.home())


def load(around: Surroundings | None = None) -> Profile:
    """The effective profile."""
    around = around or surroundings()
    sources, sections = _sources(around)
    server = next((source for source in sources if source.values.get("server")), None)
    identity = next((source for source in sources if source.gives_identity_at(server)), None)
    if server is not None:
        profile = _trusting(_joined(server, identity), sources)
        profile = replace(profile, tokens_file=str(around.tokens_file) if profile.password else "")
        return replace(profile, private=sections, client_conf=str(around.client_conf))
    running = _embedded(around)
    if identity is not None and identity.values.get("ak") not in (None, "", running.values["ak"]):
        # The key of a server that nothing names: another one, here and unasked for, could only refuse it.
        return replace(_joined(_NOWHERE, identity), private=sections, client_conf=str(around.client_conf))
    profile = _joined(running, identity or running)
    return replace(profile, embedded=True, private=sections, client_conf=str(around.client_conf))


def of_server(around: Surroundings, server: str) -> Profile:
    """A profile without an identity: the server alone, and the CA that is known for it."""
    return _trusting(Profile(server=server), _sources(around)[0])


def load_embedded(around: Surroundings) -> Profile:
    """The profile of this user's embedded server, whatever other one is configured."""
    running = _embedded(around)
    return replace(_joined(running, running), embedded=True)


def save(around: Surroundings, values: Mapping[str, str]) -> None:
    """Name another server and identity in our own config; an embedded server's key stays in it."""
    config = ownconfig.read(around.config_file)
    if values.get("server") in _own(around).servers:
        values = {"servers": config.values.get("servers", ""), **values}  # one of a list, which is still one
    ownconfig.write(around.config_file, replace(config, values=values))


def save_client_conf(around: Surroundings, profile: Profile) -> None:
    """Name the profile's server and access key in client.conf, where the manual's users look for them."""
    file = around.client_conf
    found = read_client_conf(file) if file.is_file() else {}
    names = [name for name in ("user_id", "userid") if name in found.get("main", {})] or ["user_id"]
    main = {} if "main" in found else {"debug": "0"}
    main |= {**dict.fromkeys(names, profile.user), "ak": profile.ak, "sk": profile.sk}
    host, port = endpoint.split(profile.server)
    openapi = {"host": host, "port": port}
    if profile.ca or "ca" in found.get("openapi", {}):
        openapi["ca"] = profile.ca
    write_client_conf(file, {"main": main, "openapi": openapi})


def save_embedded(around: Surroundings) -> None:
    """Keep the embedded server's access key in our own config, beside what it says of another server."""
    values = _embedded(around).values
    key = {name: values[name] for name in ("user", "ak", "sk") if values[name]}
    config = ownconfig.read(around.config_file)
    if key and key != config.embedded:
        ownconfig.write(around.config_file, replace(config, embedded=key))


def no_server(profile: Profile) -> ConfigError | UnreachableError:
    """Why a profile without a server will not do."""
    if file := profile.sources.get("ak"):
        return ConfigError(
            f"{file} has an access key but names no server: add its [openapi] host and port, or take ak and sk out of "
            "it to use a server of your own on this machine"
        )
    return UnreachableError("no server is configured and none runs here; start one with: paddlecloud up")


@dataclass(frozen=True, slots=True)
class _Source:
    """`servers` are all that it names, the first of which is in `values` too."""

    name: str
    values: Mapping[str, str]
    servers: tuple[str, ...] = ()

    def gives_identity_at(self, server: _Source | None) -> bool:
        has = self.values.get
        if has("ak") and has("sk"):
            return True
        at_home = server is None or server is self or set(server.all_servers) <= set(self.all_servers)
        return bool(has("token") or (has("user") and has("password"))) and (at_home or self.name == _ENVIRONMENT)

    @property
    def all_servers(self) -> tuple[str, ...]:
        return self.servers or (self.values.get("server", ""),)


_NOWHERE = _Source("", {})


def _environment(around: Surroundings) -> _Source:
    has = around.variables.get
    server, listed = has("PADDLECLOUD_SERVER", ""), has("PADDLECLOUD_SERVERS", "")
    servers = server_list(listed, "PADDLECLOUD_SERVERS") if listed and not server else ()
    values = {
        "server": server_url(server, "PADDLECLOUD_SERVER") if server else next(iter(servers), ""),
        "token": has("PADDLECLOUD_TOKEN", ""),
        "ca": has("PADDLECLOUD_CA", ""),
    }
    return _Source(_ENVIRONMENT, values, servers)


def _own(around: Surroundings) -> _Source:
    file = around.config_file
    values = dict(ownconfig.read(file).values)
    first = [server_url(values["server"], str(file))] if values.get("server") else []
    listed = values.pop("servers", "")
    servers = tuple(dict.fromkeys([*first, *(server_list(listed, str(file), file.parent) if listed else ())]))
    return _Source(str(file), {**values, "server": next(iter(servers), "")}, servers)


def _client_conf(around: Surroundings) -> tuple[_Source | None, Sections]:
    file = around.client_conf
    if not file.is_file():
        return None, {}
    sections = read_client_conf(file)
    main, openapi = sections.get("main", {}), sections.get("openapi", {})
    values = {
        "server": _from_host(openapi.get("host", ""), openapi.get("port", ""), str(file)),
        "ca": openapi.get("ca", ""),
        "user": main.get("user_id") or main.get("userid", ""),
        "ak": main.get("ak", ""),
        "sk": main.get("sk", ""),
    }
    return _Source(str(file), values), {name: sections[name] for name in ("bcc", "bos") if name in sections}


def _paddle_config(around: Surroundings) -> _Source | None:
    file = around.home / ".paddle" / "config"
    if not file.is_file():
        return None
    values = dict(read_paddle_config(file))
    if values.get("server"):
        values["server"] = server_url(values["server"], str(file))
    return _Source(str(file), values)


def _embedded(around: Surroundings) -> _Source:
    folder = around.data_folder
    running = _json(folder / "server.json")
    key = _json(folder / "embedded.json") or ownconfig.read(around.config_file).embedded
    values = {
        "server": str(running.get("url", "")).rstrip("/"),
        "fingerprint": str(running.get("fingerprint", "")),
    }
    values |= {name: str(key.get(name, "")) for name in ("user", "ak", "sk")}
    return _Source(f"the embedded server in {folder}", values)


def _sources(around: Surroundings) -> tuple[list[_Source], Sections]:
    """The places that may name a server or an identity, in their order; sections for resources of one's own."""
    conf, sections = _client_conf(around)
    places = (_environment(around), _own(around), conf, _paddle_config(around))
    return [source for source in places if source], sections


def _trusting(profile: Profile, sources: Sequence[_Source]) -> Profile:
    """The profile with the CA that the environment names, or a place that names the same server."""
    for source in sources:
        ca = source.values.get("ca", "")
        if ca and (source.name == _ENVIRONMENT or profile.server in source.all_servers):
            ca = os.path.expanduser(ca)
            return replace(profile, ca=ca, sources={**profile.sources, "ca": source.name})
    return profile


def _joined(server: _Source, identity: _Source | None) -> Profile:
    def value(key: str) -> str:
        source = server if key in ("server", "fingerprint", "datacenter") else identity
        return source.values.get(key, "") if source else ""

    def origin(key: str) -> str:
        source = server if key == "server" else identity
        return source.name if source else ""

    servers = server.servers if len(server.servers) > 1 else ()
    sources = {key: origin(key) for key in KEYS if key not in ("ca", "servers") and value(key)}
    return Profile(
        server=value("server"),
        servers=servers,
        fingerprint=value("fingerprint"),
        user=value("user"),
        ak=value("ak"),
        sk=value("sk"),
        token=value("token"),
        password=value("password"),
        datacenter=value("datacenter"),
        sources={**sources, **({"servers": server.name} if servers else {})},
    )


def _from_host(host: str, port: str, where: str) -> str:
    if not host:
        return ""
    scheme, _, host = host.rpartition("://")
    scheme = scheme or ("https" if port == "443" else "http")
    given = urlsplit(f"//{host}").netloc.rpartition(":")[2]
    plain = given.isdigit() or port in ("", "80", "443")
    return server_url(f"{scheme}://{host}" if plain else f"{scheme}://{host.rstrip('/')}:{port}", where)


def _json(file: Path) -> Mapping[str, object]:
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
