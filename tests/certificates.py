"""A certificate authority of a test's own, and the certificates that it signs."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Files:
    """A chain and its key, as a server's config names them."""

    chain: Path
    key: Path

    @property
    def config(self) -> str:
        return f'certificate = "{self.chain}"\ncertificate_key = "{self.key}"\n'


class Authority:
    def __init__(self, folder: Path, name: str = "a lab's CA") -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.KeyUsage(
            **dict.fromkeys(_USAGES, False) | {"key_cert_sign": True, "crl_sign": True, "digital_signature": True}
        )
        built = (
            _builder(self._name, self._name, self._key.public_key(), -_DAY, 30 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / "ca.pem"
        self.file.write_bytes(built.public_bytes(serialization.Encoding.PEM))

    def issue(
        self,
        name: str = "server",
        hosts: Sequence[str] = ("127.0.0.1", "localhost"),
        *,
        begins: timedelta = -_DAY,
        lasts: timedelta = 30 * _DAY,
        passphrase: bytes | None = None,
    ) -> Files:
        """A certificate for these hosts, valid from `begins` on for so long."""
        key = ec.generate_private_key(ec.SECP256R1())
        built = (
            _builder(_name(name), self._name, key.public_key(), begins, lasts)
            .add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        files = Files(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        files.chain.write_bytes(built.public_bytes(serialization.Encoding.PEM))
        files.key.touch(mode=0o600)
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption(),
            )
        )
        return files


_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, begins: timedelta, lasts: timedelta
) -> x509.CertificateBuilder:
    start = datetime.now(UTC) + begins
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + lasts)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
