"""Whose certificate is believed: the system's authorities', that of a CA file, or, of a server on this machine, the one
that it announced. There is no way to believe just any: a token that a stranger was sent is gone."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime
from urllib.parse import urlsplit

from paddlecloud.model.errors import ConfigError
from paddlecloud.sdk.connections import BrokenError, Connections, OtherCertificateError
from paddlecloud.sdk.profile import Profile

_CONNECT_SECONDS = 5.0
_PROBE_SECONDS = 2.0
_OTHER_CERTIFICATE = "it shows another certificate than it announced here: another program may have taken its port"

# OpenSSL's numbers (x509_vfy.h) of what may be wrong with a certificate.
_NOT_YET_VALID, _EXPIRED = 9, 10
_UNKNOWN_ISSUER = frozenset({18, 19, 20, 21})
_OTHER_NAME = frozenset({62, 64})


def connections(profile: Profile) -> Connections:
    """Connections to the server of a profile."""
    return Connections(profile.server, context(profile), profile.fingerprint)


def context(profile: Profile) -> ssl.SSLContext | None:
    """What connections to the server of a profile are encrypted with; None: they are not."""
    if not profile.server.startswith("https:"):
        return None
    if profile.fingerprint:
        return _unchecked()  # the certificate itself is compared; nobody need have signed it for this address
    try:
        made = ssl.create_default_context(cafile=profile.ca or None)
    except OSError as error:
        named = profile.sources.get("ca", "the program")
        wrong = (
            "holds no certificate in PEM" if isinstance(error, ssl.SSLError) else f"cannot be read: {error.strerror}"
        )
        raise ConfigError(f"the CA file {profile.ca} (named by {named}) {wrong}", field="ca") from None
    if profile.ca:
        made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the file may hold the server's certificate itself
    return made


def complaint(error: BrokenError, profile: Profile) -> str:
    """What about encryption keeps the two from speaking, and what to do; "" where that is not the trouble."""
    if isinstance(error.cause, OtherCertificateError):
        return _OTHER_CERTIFICATE
    if isinstance(error.cause, ssl.SSLCertVerificationError):
        return _about_certificate(error.cause, profile)
    if isinstance(error.cause, ssl.SSLError):
        return _about_tls(error.cause, profile)
    if profile.server.startswith("http:") and _speaks_tls(profile.server):
        return f"it speaks TLS: write https:{profile.server.removeprefix('http:')}"
    return ""


def certificate_end(profile: Profile) -> datetime:
    """When the certificate of an https server ends to be valid."""
    parts, tls = urlsplit(profile.server), context(profile)
    assert tls is not None
    with socket.create_connection((parts.hostname or "", parts.port or 443), _CONNECT_SECONDS) as plain:
        with tls.wrap_socket(plain, server_hostname=parts.hostname) as encrypted:
            shown = encrypted.getpeercert() or {}
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(shown["notAfter"])), UTC)


def _about_tls(cause: ssl.SSLError, profile: Profile) -> str:
    if cause.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return f"it does not speak TLS: write http:{profile.server.removeprefix('https:')}"
    return f"TLS fails: {cause}"


def _about_certificate(cause: ssl.SSLCertVerificationError, profile: Profile) -> str:
    if cause.verify_code in _UNKNOWN_ISSUER:
        known = f"{profile.ca} ({profile.sources.get('ca', 'given')})" if profile.ca else "this machine"
        return (
            f"its certificate comes from nobody that {known} knows. Get the certificate of its CA from its operator, "
            f"and type: paddlecloud login --server {profile.server} --ca FILE (or set PADDLECLOUD_CA=FILE)"
        )
    if cause.verify_code in _OTHER_NAME:
        return f"{cause.verify_message.rstrip('.')}: use the name that its certificate was made for"
    if cause.verify_code == _EXPIRED:
        return "its certificate has expired, or the clock of this machine is wrong: tell its operator"
    if cause.verify_code == _NOT_YET_VALID:
        return "its certificate is not valid yet, or the clock of this machine is wrong: set the clock"
    return f"its certificate is not good: {cause.verify_message}"


def _unchecked() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


def _speaks_tls(server: str) -> bool:
    """Whether it answers a handshake; nothing is sent to it."""
    parts = urlsplit(server)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), _PROBE_SECONDS) as plain:
            with _unchecked().wrap_socket(plain, server_hostname=parts.hostname):
                return True
    except (OSError, ValueError):
        return False
