"""A real HDFS for tests: a NameNode and two DataNodes with WebHDFS, in a folder of their own, on loopback only.

It is Hadoop 2.7.3 as `make engines` puts it together in .venv/hdfs; whatever kills the tests ends it.
"""

from __future__ import annotations

import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from paddlecloud.files.hdfs import HdfsStore
from paddlecloud.files.webhdfs import WebHdfs
from tests.absent import absent
from tests.ports import free_ports
from tests.waiting import wait_until

JARS = Path(sys.prefix) / "hdfs"
USER = "pc"  # an account of HDFS that may not do everything
DATANODES = 2

_JAVAS = ("java-17-*", "java-21-*", "java-11-*")  # Hadoop 2.7 runs on none that is newer
_OPENED = (
    "java.base/java.lang",
    "java.base/java.nio",
    "java.base/sun.nio.ch",
    "java.base/java.util",
    "java.base/java.net",
    "java.base/sun.net.dns",
    "java.security.jgss/sun.security.krb5",
)
_SMALL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_ALIVE = "jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
_LOG = """log4j.rootLogger=WARN,c
log4j.appender.c=org.apache.log4j.ConsoleAppender
log4j.appender.c.layout=org.apache.log4j.PatternLayout
log4j.appender.c.layout.ConversionPattern=%d %p %c: %m%n
"""
_WEB = '<web-app xmlns="http://java.sun.com/xml/ns/javaee" version="2.5"></web-app>'


class Hdfs:
    """One file system, in which each test has a folder of its own."""

    def __init__(self, folder: Path, java: Path) -> None:
        self.folder = folder
        self._java = java
        self._rpc, self._http, *self._ports = free_ports(2 + 3 * DATANODES)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """Of its WebHDFS."""
        return f"http://127.0.0.1:{self._http}"

    @property
    def name(self) -> str:
        """What Hadoop's own programs call it, as in hdfs://<name>/…"""
        return f"127.0.0.1:{self._rpc}"

    def store(self, folder: str | None = None, *, user: str = USER) -> HdfsStore:
        """A store in a folder, a new one unless it is named."""
        return HdfsStore(self.url, f"/stores/{secrets.token_hex(6)}" if folder is None else folder, user=user)

    def start(self) -> None:
        self._configure()
        self._run("format", _NAMENODE, "-format", "-force", "-nonInteractive").wait(timeout=100)
        self._processes["namenode"] = self._run("namenode", _NAMENODE)
        for number in range(DATANODES):
            self.start_datanode(number)
        self.wait_for_datanodes()
        WebHdfs(self.url, self._superuser).make_folder("/stores")
        self.permit("/stores")

    def permit(self, path: str) -> None:
        """Let every account of HDFS write there."""
        self._put(f"{path}?op=SETPERMISSION&permission=777&user.name={self._superuser}")

    @property
    def _superuser(self) -> str:
        return pwd.getpwuid(os.geteuid()).pw_name

    def start_datanode(self, number: int) -> None:
        self._processes[f"datanode-{number}"] = self._run(f"datanode-{number}", _DATANODE)

    def wait_for_datanodes(self) -> None:
        wait_until(self._answers, f"HDFS answers; {self.folder}/log says why not", seconds=100)

    def kill(self, name: str) -> None:
        self._processes[name].send_signal(signal.SIGKILL)
        self._processes.pop(name).wait(timeout=60)

    def stop(self) -> None:
        for name in list(self._processes):
            self.kill(name)

    def _put(self, words: str) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/webhdfs/v1{words}", method="PUT"), timeout=60)

    def _answers(self) -> bool:
        for name, process in self._processes.items():
            assert process.poll() is None, (self.folder / "log" / name).read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/{_ALIVE}", timeout=10) as answer:
                return bool(json.load(answer)["beans"][0]["NumLiveDataNodes"] == DATANODES)
        except (urllib.error.URLError, IndexError, OSError):
            return False

    def _run(self, name: str, program: str, *words: str) -> subprocess.Popen[bytes]:
        conf = self.folder / ("namenode" if name == "format" else name)
        where = ":".join([str(conf), str(self.folder / "conf"), f"{JARS}/*"])
        opened = [f"--add-{how}={package}=ALL-UNNAMED" for package in _OPENED for how in ("opens", "exports")]
        folders = [f"-Dhadoop.log.dir={self.folder}/log", f"-Dhadoop.home.dir={self.folder}"]
        with (self.folder / "log" / name).open("ab") as log:
            return subprocess.Popen(
                [
                    "setpriv",
                    "--pdeathsig=KILL",
                    str(self._java),
                    *opened,
                    *_SMALL,
                    *folders,
                    "-cp",
                    where,
                    program,
                    *words,
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={"HOME": str(self.folder), "PATH": "/usr/bin:/bin"},
            )

    def _configure(self) -> None:
        conf = self.folder / "conf"
        for name in ("hdfs", "datanode", "static", "secondary"):
            web = conf / "webapps" / name / "WEB-INF"
            web.mkdir(parents=True)
            (web / "web.xml").write_text(_WEB)
        (self.folder / "log").mkdir()
        (conf / "log4j.properties").write_text(_LOG)
        _write(conf / "core-site.xml", {"fs.defaultFS": f"hdfs://{self.name}"})
        _write(self.folder / "namenode" / "hdfs-site.xml", self._site())
        for number in range(DATANODES):
            at = self.folder / f"datanode-{number}"
            address, web_address, ipc = (f"127.0.0.1:{port}" for port in self._ports[3 * number : 3 * number + 3])
            own = {
                "dfs.datanode.data.dir": f"file://{at}/data",
                "dfs.datanode.address": address,
                "dfs.datanode.http.address": web_address,
                "dfs.datanode.ipc.address": ipc,
            }
            _write(at / "hdfs-site.xml", {**self._site(), **own})

    def _site(self) -> Mapping[str, str]:
        return {
            "dfs.namenode.name.dir": f"file://{self.folder}/namenode/data",
            "dfs.namenode.rpc-address": self.name,
            "dfs.namenode.http-address": f"127.0.0.1:{self._http}",
            "dfs.namenode.edits.noeditlogchannelflush": "true",
            "dfs.namenode.safemode.extension": "0",
            "dfs.namenode.heartbeat.recheck-interval": "2000",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.datanode.hostname": "127.0.0.1",
            "dfs.datanode.du.reserved": "0",
            "dfs.namenode.avoid.read.stale.datanode": "true",
            "dfs.namenode.avoid.write.stale.datanode": "true",
            "dfs.namenode.stale.datanode.interval": "3000",
            "dfs.heartbeat.interval": "1",
            "dfs.replication": str(DATANODES),
            "dfs.webhdfs.enabled": "true",
            "dfs.permissions.enabled": "true",
            "dfs.namenode.acls.enabled": "true",
            "dfs.checksum.type": "CRC32",
        }


@contextmanager
def running() -> Iterator[Hdfs]:
    """A file system that runs, or what tests/absent.py makes of there being none."""
    java = _java()
    if java is None or not (JARS / ".made").exists():
        missing = f"Hadoop is not in {JARS}" if java is not None else "there is no Java 17 in /usr/lib/jvm"
        absent(f"no HDFS: {missing}: make engines")
    folder = Path(tempfile.mkdtemp(prefix="pc-hdfs-", dir="/tmp"))
    made = Hdfs(folder, java)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder)


def _java() -> Path | None:
    found: Sequence[Path] = [path for name in _JAVAS for path in Path("/usr/lib/jvm").glob(f"{name}/bin/java")]
    return next(iter(found), None)


def _write(path: Path, values: Mapping[str, str]) -> None:
    path.parent.mkdir(exist_ok=True)
    lines = [f"<property><name>{name}</name><value>{value}</value></property>" for name, value in values.items()]
    path.write_text(f"<configuration>{''.join(lines)}</configuration>")
