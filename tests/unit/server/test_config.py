"""Every setting has a default and a line of help; what is not known, or cannot be, is refused with what to write."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from paddlecloud.model.errors import ConfigError
from paddlecloud.server import config
from paddlecloud.server.settings import Settings


def parse(text: str) -> Settings:
    return config.parse(tomllib.loads(text), source="server.toml", data=Path("/data"))


def test_an_empty_config_gives_one_local_cluster_and_limits_nobody() -> None:
    settings = parse("")
    assert list(settings.clusters) == ["local"]
    assert settings.default_clusters == ("local",)
    assert settings.jobs.wall_time is None
    assert (settings.server.policy, settings.policy("local")) == ("open", "open")
    assert settings.server.host == "127.0.0.1"


def test_what_is_printed_is_the_file_that_gives_the_same_settings() -> None:
    settings = config.parse(
        tomllib.loads(
            '[server]\nport = 0\ntimezone = "Asia/Shanghai"\ndata = "/a \\"b\\" \\\\ \\u007f 长"\n'
            'default_clusters = ["bcc", "cce"]\n'
            '[jobs]\nwall_time = "2h"\ngrace = 0\nupload_limit = "1Gi"\npython = "/bin/sh"\n'
            '[datacenters.h]\nstore = "hdfs"\nendpoint = "http://nn:9870"\npath = "/pc"\nuser = "pc"\n'
            '[hdfs."nn.example:54310"]\nurl = "http://nn.example:9870"\n'
            '[clusters.cce]\npolicy = "free"\ngpus = 8\n[clusters.bcc]\ncpus = 2.5\nmemory = "8Gi"\n'
        )
    )
    assert config.parse(tomllib.loads(config.render(settings))) == settings


def test_a_slurm_cluster_is_read_and_printed() -> None:
    settings = parse(
        '[clusters.hpc]\nbackend = "slurm"\nurl = "https://box:8642"\npython = "/opt/python3"\n'
        'sbatch = {partition = "a&b", nice = 1, exclusive = true}\njob_options = ["qos", "constraint"]\n'
        'accounts = {"ann@lab.org" = "a123"}\n[clusters.mine]\n'
    )
    hpc = settings.clusters["hpc"]
    assert hpc.sbatch == {"partition": "a&b", "nice": "1", "exclusive": "true"}
    assert (hpc.accounts, hpc.python) == ({"ann@lab.org": "a123"}, "/opt/python3")
    assert (hpc.options_of_jobs, settings.clusters["mine"].options_of_jobs) == (("qos", "constraint"), None)
    assert config.parse(tomllib.loads(config.render(settings))) == settings


def test_every_setting_has_a_line_of_help() -> None:
    for line in config.reference():
        assert line.help.endswith("."), line


def test_what_the_settings_name_is_kept_from_tasks_but_not_twice_what_is_in_a_folder_that_is(tmp_path: Path) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    for folder in (data, outside):
        folder.mkdir()
        for name in ("password", "key.pem", "chain.pem", "passfile", "server.toml"):
            (folder / name).touch()
    (outside / "link").symlink_to(data / "password")

    def kept(folder: Path, password: str = "password") -> set[Path]:
        (folder / "server.toml").write_text(
            f'[mail]\npassword_file = "{folder / password}"\n'
            f'[server]\ncertificate = "{folder}/chain.pem"\ncertificate_key = "{folder}/key.pem"\n'
            f'database = "postgresql://pc@db/pc?passfile={folder}/passfile"\n'
        )
        found = config.kept_from_tasks(config.load(folder / "server.toml", data=data))
        assert found[:2] == (data, config.client_config_folder())
        return {path for path in found if path.is_relative_to(tmp_path)}

    named = {outside / name for name in ("password", "key.pem", "passfile", "server.toml")}
    assert kept(outside) == {data, *named}
    assert kept(outside, "link") == {data, *named} - {outside / "password"}
    assert kept(data) == {data}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[server]\nprot = 1", "did you mean 'port'"),
        ("[sever]\nport = 1", "did you mean 'server'"),
        ("[clusters.local]\ncpu = 1", "did you mean 'cpus'"),
        ('[server]\nport = "80"', "a whole number from 0 to 65535. server.port: Port to listen on"),
        ("[server]\nport = 65536", "a whole number"),
        ("[server]\nport = true", "a whole number"),
        ("[server]\ninsecure = 1", "true or false"),
        ('[server]\nlog_level = "loud"', "one of debug, info, warning, error"),
        ('[server]\ntimezone = "Mars/Olympus"', "a time zone such as"),
        ('[server]\ntimezone = "../../etc/passwd"', "a time zone such as"),
        ('[jobs]\nwall_time = "25:61:00"', 'a time such as "00:30:00"'),
        ("[jobs]\nwall_time = 0", "at least 1 s"),
        ('[jobs]\npython = "python3"', "full path"),
        ('[jobs]\npython = "/no/such/python"', "that is there"),
        ('[jobs]\nupload_limit = "lots"', 'a size such as "512Mi"'),
        ("[jobs]\nattempts = 0", "from 1 to 100"),
        ('[clusters.local]\nbackend = "moon"', "one of local"),
        ("[clusters.local]\ncpus = 0", "a number of CPUs"),
        ("[clusters.local]\ncpus = nan", "a number of CPUs"),
        ("[clusters.Local]\n", "small letters"),
        ("[clusters.default]\n", "server.default_clusters"),
        ("clusters = 1", "[clusters.<name>]"),
        ("server = 1", "[server]"),
        ('[server]\ndefault_clusters = ["bcc"]', "known are local"),
        ('[server]\ndefault_clusters = "local"', "a list of names"),
        ('[server]\nhost = "0.0.0.0"', "server.insecure = true"),
        ('[server]\nhost = "::"', "server.insecure = true"),
        ('[server]\nhost = "::ffff:10.0.0.1"', "server.certificate and server.certificate_key"),
        ('[server]\ncertificate = "/c.pem"', "server.certificate is given without server.certificate_key"),
        ('[server]\ncertificate_key = "/c.key"', "server.certificate_key is given without server.certificate"),
        ('[server]\nhost = "example.com"', "server.insecure = true"),
        ("[datacenters.h]\nstore = 'hdfs'\nendpoint = 'http://nn:9870'\npath = '/pc'", "datacenters.h.user is missing"),
        (
            "[datacenters.h]\nstore = 'hdfs'\nbucket = 'b'\nendpoint = 'e'\npath = '/p'\nuser = 'u'",
            "bucket does not go",
        ),
        ("[datacenters.h]\nuser = 'u'", "user does not go with store = 'local'"),
        ("[hdfs]\nurl = 'http://nn:9870'", 'must be a table: write [hdfs."url"]'),
        ("[hdfs.'nn:54310']\nuser = 'u'", 'hdfs."nn:54310".url is missing'),
        ("[hdfs.'hdfs://nn:54310']\nurl = 'http://nn:9870'", "is no name of a file system"),
        ('[clusters.hpc]\nbackend = "slurm"\nsbatch = {output = "/x"}', "is set by the server itself"),
        ('[clusters.hpc]\nbackend = "slurm"\nsbatch = {Partition = "x"}', "no long option of sbatch"),
        ('[clusters.hpc]\nbackend = "slurm"\nsbatch = {partition = "a\\nb"}', "one line of plain letters"),
        ('[clusters.hpc]\nbackend = "slurm"\nsbatch = {partition = ["a"]}', "a table of texts"),
        ('[clusters.hpc]\nbackend = "slurm"\nsbatch = "partition=a"', "a table of texts"),
        ('[clusters.hpc]\nbackend = "slurm"\njob_options = "constraint"', "a list of names"),
        ('[clusters.hpc]\nbackend = "slurm"\njob_options = ["wrap"]', "is set by the server itself"),
        ('[clusters.hpc]\nbackend = "slurm"\njob_options = ["outp"]', "may be short for 'output'"),
        ('[clusters.hpc]\nbackend = "slurm"\naccounts = {ann = "root"}', "names of Unix accounts"),
        ('[clusters.hpc]\nbackend = "slurm"\naccounts = {ann = "-u root"}', "names of Unix accounts"),
        ('[clusters.hpc]\nbackend = "slurm"\naccounts = {ann = "#0"}', "names of Unix accounts"),
        ('[clusters.hpc]\nbackend = "slurm"\naccounts = {ann = "a123"}', "set clusters.hpc.url"),
        ('[clusters.hpc]\nbackend = "slurm"\npython = 3', "a text"),
        ('[clusters.local]\nsbatch = {partition = "a"}', 'is for a Slurm cluster, and its backend is "local"'),
        ('[clusters.local]\njob_options = ["qos"]', "is for a Slurm cluster"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_to_write(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(text)
    assert says in refused.value.message
    assert "server.toml" in refused.value.message


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://pc:s3cret@db.lab/cloud", "postgresql://pc:…@db.lab/cloud"),
        ("postgresql://pc:s3cr@et/x@db.lab/cloud?sslmode=require", "postgresql://pc:…@db.lab/cloud?sslmode=require"),
        ("postgres://db.lab/cloud?password=s3cret&user=pc", "postgres://db.lab/cloud?password=…&user=pc"),
        ("postgresql://pc@db.lab:5432/cloud", "postgresql://pc@db.lab:5432/cloud"),
    ],
)
def test_a_password_in_a_url_is_used_but_never_shown(url: str, shown: str) -> None:
    settings = parse(f'[server]\ndatabase = "{url}"')
    assert settings.server.database == url
    assert f'database = "{shown}"' in config.render(settings)
    with pytest.raises(ConfigError) as refused:
        parse(f'[server]\ndatabase = "mysql{url}"')
    assert "s3cr" not in refused.value.message + config.render(settings)


def test_a_server_beyond_this_machine_has_to_be_asked_for() -> None:
    assert parse('[server]\nhost = "0.0.0.0"\ninsecure = true').server.host == "0.0.0.0"
    encrypted = parse('[server]\nhost = "0.0.0.0"\ncertificate = "~/c.pem"\ncertificate_key = "/c.key"').server
    assert (encrypted.certificate, encrypted.certificate_key) == (Path("~/c.pem").expanduser(), Path("/c.key"))
    for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost", "::ffff:127.0.0.1"):
        assert parse(f'[server]\nhost = "{host}"').server.host == host


def test_the_file_in_the_data_folder_is_taken_when_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "server.toml").write_text("[server]\nport = 1234\n")
    settings = config.load(data=tmp_path)
    assert settings.server.port == 1234
    assert settings.server.data == tmp_path


def test_the_data_folder_that_a_named_file_says_is_taken_unless_another_is_given(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text('[server]\ndata = "/some/where"\n')
    assert config.load(file, data=tmp_path).server.data == tmp_path
    assert config.parse(tomllib.loads(file.read_text())).server.data == Path("/some/where")


def test_a_file_that_cannot_be_read_or_is_no_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the config .*none\.toml"):
        config.load(tmp_path / "none.toml")
    file = tmp_path / "bad.toml"
    file.write_bytes(b"[server\n")
    with pytest.raises(ConfigError, match=r"bad\.toml is not TOML"):
        config.load(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"bad\.toml is not TOML"):
        config.load(file)
