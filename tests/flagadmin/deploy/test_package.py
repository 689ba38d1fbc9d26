"""The package that `make release` builds: complete, and at work without the checkout."""

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.live_server import PATIENCE, Client, reserved_port, wait_until_ready
from tests.support.paths import APPS, ROOT

pytestmark = [pytest.mark.processes, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def test_the_package_has_every_file_of_the_application(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *APPS, "templates"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    files = listed.stdout.decode().split("\0")[:-1]
    application = {f"flagadmin/{name}" if name.startswith("templates/") else name for name in files}
    assert packed == application | {
        f"projects/connect/docs/{name}.md" for name in ("openfeature", "sdk-languages")
    }


def test_the_installed_package_serves_without_the_checkout(wheel, tmp_path):
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    uv = Path(sys.executable).parent / "uv"
    subprocess.run(
        [
            uv,
            "pip",
            "install",
            "--quiet",
            "--offline",
            "--no-deps",
            "--python",
            environment / "bin/python",
            wheel,
        ],
        check=True,
    )
    # What it depends on is installed beside it in these tests; nothing is fetched.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    variables = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    variables |= {"HOME": str(tmp_path), "FLAGADMIN_LOG_LEVEL": "ERROR"}
    with reserved_port() as port:
        command = [environment / "bin/flagadmin", "serve", "--port", str(port), "--workers", "1"]
        server = subprocess.Popen(command, cwd=tmp_path, env=variables, stdout=subprocess.DEVNULL)
        try:
            wait_until_ready(port, server)
            with closing(Client(port)) as client:
                status, page = client.call("GET", "/login/")
                assert status == 200
                style = re.search(rb'href="(/static/[^"]+\.css)"', page)[1].decode()
                assert client.call("GET", style)[0] == 200
            assert (tmp_path / ".local/share/flagadmin/postgres").is_dir()
            backup = [environment / "bin/flagadmin", "backup", tmp_path / "backup", "--check"]
            done = subprocess.run(backup, cwd=tmp_path, env=variables, capture_output=True, text=True)
            assert "Checked in a scratch database" in done.stdout, done.stderr
        finally:
            server.terminate()
            server.wait(PATIENCE)
