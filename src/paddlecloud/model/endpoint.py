"""A server's address in two parts, as client.conf has it: `[openapi] host` and `port`."""

from __future__ import annotations

from urllib.parse import urlsplit

_PORTS = {"http": "80", "https": "443"}


def split(url: str) -> tuple[str, str]:
    """Host and port. Port 443 means https and any other http, so what they cannot say stands in the host."""
    parts = urlsplit(url)
    port = str(parts.port or _PORTS[parts.scheme])
    name = parts.netloc.removesuffix(f":{port}")
    if parts.path:
        return url, port
    if (parts.scheme == "https") == (port == _PORTS["https"]):
        return name, port
    return (url if port in _PORTS.values() else f"{parts.scheme}://{name}"), port
