"""The settings of Unleash Edge are taken over, or refused with what to do instead."""

from pathlib import Path

import pytest

from relay.options import NEEDLESS, REFUSED, TAKEN, Options, read_options
from tests.support.paths import ROOT

FILE = """# of the container
UPSTREAM_URL=https://unleash.example.org
export BACKUP_FOLDER="/edge/data"
TOKENS='*:production.a,*:development.b'
TRUST_PROXY=true
METRICS_INTERVAL_SECONDS=30
CUSTOM_CLIENT_HEADERS=X-Gateway: secret
TLS_ENABLE=false
STRICT=true
RUST_LOG=warn
"""


def read(folder: Path, text: str, *more: str) -> Options:
    file = folder / "edge.env"
    file.write_text(text)
    return read_options(["--edge-settings", str(file), *more])


def test_an_environment_file_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAGADMIN_RELAY_PORT", "4000")
    options = read(tmp_path, FILE + "PORT=3064\n", "--region", "eu")
    assert options == Options(
        upstream="https://unleash.example.org",
        data=Path("/edge/data"),
        upstream_headers=(("X-Gateway", "secret"),),
        tokens=("*:production.a", "*:development.b"),
        host="0.0.0.0",
        port=4000,
        region="eu",
        report=30,
        is_behind_proxy=True,
        is_strict=True,
    )


def test_the_environment_of_a_container_is_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPSTREAM_URL", "http://unleash:4242")
    options = read_options(["--edge-settings", "--data", "/data"])
    assert (options.upstream, options.data) == ("http://unleash:4242", Path("/data"))
    with pytest.raises(SystemExit):
        read_options(["--data", "/data"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("UPSTREAM_URL=http://x\nBACKUP_FOLDER=/d\nSTRICT=true\n", "--strict needs --token"),
        (FILE + "TLS_ENABLE=true\n", "TLS_ENABLE: a proxy in front of the relay does this"),
        (FILE + "TOKEN_HEADER=X-Token\n", "TOKEN_HEADER: SDKs send their token in Authorization"),
        ("environment:\n  UPSTREAM_URL: x\n", "Line 1 must be NAME=value"),
        ("BACKUP_FOLDER=/data\n", "--upstream is required"),
        (FILE + "CUSTOM_CLIENT_HEADERS=Authorization: x\n", "not Authorization"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read(tmp_path, text)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{FILE}  ,*:production.s3cret\n", f"Line {len(FILE.splitlines()) + 1} must be NAME=value"),
        (
            f"{FILE}CUSTOM_CLIENT_HEADERS=X-Team: a,X-Gateway s3cret\n",
            "--upstream-header 2 must be 'NAME: VALUE'",
        ),
    ],
)
def test_what_is_refused_shows_no_secret(
    tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Services have it in their logs."""
    with pytest.raises(SystemExit):
        read(tmp_path, text)
    error = capsys.readouterr().err
    assert said in error
    assert "s3cret" not in error


def test_a_file_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_options(["--edge-settings", "/nowhere/edge.env"])
    assert "/nowhere/edge.env" in capsys.readouterr().err


def test_the_page_names_every_variable() -> None:
    page = (ROOT / "docs/operations/replace-edge.md").read_text()
    assert [name for name in (*TAKEN, *NEEDLESS, *REFUSED) if f"`{name}`" not in page] == []
