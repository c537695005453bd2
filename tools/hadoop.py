"""Puts the HDFS that tests use into the folder named: its jars out of PySpark's source package, and Debian's Jersey.

PySpark 2.4.8 was the last with the server side of Hadoop in it, and pip cannot fetch it without building it: so pip is
only asked where the configured index has it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from pathlib import Path
from typing import IO

_ASK = [sys.executable, "-m", "pip", "-vv", "index", "versions", "--no-binary", ":all:", "pyspark"]
_LINK = re.compile(r"Found link (\S+/pyspark-2\.4\.8\.tar\.gz)[#\s]")
_SHA256 = "3a19b71b8dc8dd91ebc943604a05e1ab01bce052456d42937035632d852d78dc"
_DEBIAN = Path("/usr/share/java")
_OF_DEBIAN = ("jersey1-core.jar", "jersey1-server.jar", "jersey1-servlet.jar", "jsr311-api.jar")
_OF_PYSPARK = frozenset(
    """
activation-1.1.1 apacheds-i18n-2.0.0-M15 apacheds-kerberos-codec-2.0.0-M15 api-asn1-api-1.0.0-M20
api-util-1.0.0-M20 avro-1.8.2 commons-beanutils-1.9.4 commons-cli-1.2 commons-codec-1.10
commons-collections-3.2.2 commons-compress-1.20 commons-configuration-1.6 commons-digester-1.8
commons-httpclient-3.1 commons-io-2.4 commons-lang-2.6 commons-logging-1.1.3 commons-math3-3.4.1
commons-net-3.1 curator-client-2.7.1 curator-framework-2.7.1 curator-recipes-2.7.1 gson-2.2.4 guava-14.0.1
hadoop-annotations-2.7.3 hadoop-auth-2.7.3 hadoop-common-2.7.3 hadoop-hdfs-2.7.3 htrace-core-3.1.0-incubating
httpclient-4.5.6 httpcore-4.4.10 jackson-core-asl-1.9.13 jackson-jaxrs-1.9.13 jackson-mapper-asl-1.9.13
jackson-xc-1.9.13 javax.servlet-api-3.1.0 jaxb-api-2.2.2 jetty-6.1.26 jetty-util-6.1.26 jsp-api-2.1
jsr305-1.3.9 leveldbjni-all-1.8 log4j-1.2.17 netty-3.9.9.Final netty-all-4.1.47.Final paranamer-2.8
protobuf-java-2.5.0 slf4j-api-1.7.16 slf4j-log4j12-1.7.16 snappy-java-1.1.8.2 stax-api-1.0-2 xercesImpl-2.9.1
xmlenc-0.52 xz-1.5 zookeeper-3.4.6
""".split()
)


def main(target: Path) -> None:
    if (target / ".made").exists():
        return
    said = subprocess.run(_ASK, check=False, capture_output=True, text=True, timeout=300)
    found = _LINK.search(said.stdout + said.stderr)
    if found is None:
        sys.exit("the package index has no pyspark-2.4.8.tar.gz")
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="hdfs-", dir=target.parent) as folder:
        part = Path(folder) / "jars"
        part.mkdir()
        with tempfile.TemporaryFile(dir=folder) as whole:
            with urllib.request.urlopen(found[1], timeout=300) as answer:
                shutil.copyfileobj(answer, whole)
            _check(whole)
            _extract(whole, part)
        for name in _OF_DEBIAN:
            shutil.copy(_DEBIAN / name, part / name)
        (part / ".made").touch()
        part.rename(target)


def _check(whole: IO[bytes]) -> None:
    whole.seek(0)
    if hashlib.file_digest(whole, "sha256").hexdigest() != _SHA256:  # type: ignore[arg-type]
        sys.exit("what the package index gave for pyspark-2.4.8.tar.gz is not what it should be")
    whole.seek(0)


def _extract(whole: IO[bytes], target: Path) -> None:
    missing = set(_OF_PYSPARK)
    with tarfile.open(fileobj=whole, mode="r|gz") as archive:
        for member in archive:
            name = Path(member.name)
            if name.suffix != ".jar" or name.stem not in missing or not member.isfile():
                continue
            content = archive.extractfile(member)
            if content is not None:
                with (target / name.name).open("wb") as file:
                    shutil.copyfileobj(content, file)
                missing.discard(name.stem)
    if missing:
        sys.exit(f"not in pyspark-2.4.8.tar.gz: {', '.join(sorted(missing))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
