"""What deploy/ has for relays fits their options."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from relay.options import read_options
from tests.support.paths import ROOT
from tests.support.programs import program

pytestmark = pytest.mark.processes

DEPLOY = ROOT / "deploy"


@pytest.mark.parametrize("region", ["eu", "us"])
def test_the_regions_of_compose(monkeypatch: pytest.MonkeyPatch, region: str) -> None:
    services = yaml.safe_load((DEPLOY / "compose.regions.yaml").read_text())["services"]
    service = services[f"relay-{region}"]
    for name, value in service["environment"].items():
        monkeypatch.setenv(name, value.replace("${RELAY_TOKEN:-}", "*:production.a,*:development.b"))
    command, *arguments = service["command"]
    options = read_options(arguments)
    assert (command, options.upstream, options.region) == ("relay", "http://flagadmin:8000", region)
    assert options.tokens == ("*:production.a", "*:development.b")
    assert str(options.data) == service["volumes"][0].partition(":")[2]


def test_flagadmin_answers_to_the_names_that_are_asked_beside_relays() -> None:
    """A host that is not allowed gets 400: for its own health check, it would be unhealthy."""
    beside = yaml.safe_load((DEPLOY / "compose.regions.yaml").read_text())["services"]["flagadmin"]
    alone = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["flagadmin"]
    [checked] = re.findall(r"http://([^:/]+)", alone["healthcheck"]["test"][1])
    assert {"flagadmin", checked} <= set(beside["environment"]["FLAGADMIN_ALLOWED_HOSTS"].split(","))


def test_the_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAGADMIN_RELAY_UPSTREAM", "https://flags.example.org/api/")
    [start] = [
        line
        for line in (DEPLOY / "flagadmin-relay.service").read_text().splitlines()
        if line.startswith("ExecStart=")
    ]
    options = read_options(start.split(" relay ")[1].split())
    assert options.upstream == "https://flags.example.org"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--upstream", "http://x"],
        ["--upstream", "x", "--data", "d"],
        ["--upstream", "http://x", "--data", "d", "--poll-seconds", "0"],
        ["--upstream", "http://x", "--data", "d", "--port", "http"],
        ["--upstream", "http://x", "--data", "d", "--unknown"],
        ["--upstream", "http://x", "--data", "d", "--strict"],
    ],
)
def test_options_that_are_missing_or_wrong(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_options(arguments)
    assert ended.value.code == 2
    assert "flagadmin relay: error:" in capsys.readouterr().err


def test_nginx_accepts_its_file(tmp_path: Path) -> None:
    text = (DEPLOY / "nginx-relay.conf").read_text()
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    command = ["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", "-subj", "/CN=x", "-days", "1"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    text = text.replace("/etc/ssl/flags.eu.example.org.pem", str(certificate))
    text = text.replace("/etc/ssl/private/flags.eu.example.org.key", str(key))
    text = text.replace("listen 443", "listen 8443")  # below 1024, only root may
    whole = f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{text}}}\n"
    (tmp_path / "nginx.conf").write_text(whole)
    checked = subprocess.run(
        [program("nginx"), "-t", "-c", tmp_path / "nginx.conf", "-p", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
