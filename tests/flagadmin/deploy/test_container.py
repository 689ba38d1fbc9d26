"""The container image, built and run with Debian's buildah.

The base image is made with debootstrap, so that no registry of images is needed; FLAGADMIN_BASE_IMAGE names another.
Without buildah, or without root, these tests are skipped and say so.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.live_server import PATIENCE, descendants, reserved_port, wait_until_ready

ROOT = Path(__file__).resolve().parents[3]
USER = 10001
NEEDED = ("buildah", "debootstrap")

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(map(shutil.which, NEEDED)),
        reason="The container image is not tested: it needs root, buildah and debootstrap.",
    ),
]


def run(*command: str | Path) -> str:
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE * 2)
    assert found.returncode == 0, f"{command}: {found.stderr[-3000:]}"
    return found.stdout.strip()


@pytest.fixture(scope="module")
def container(tmp_path_factory):
    """A container of the image; its file system is kept in a folder of the test."""
    folder = tmp_path_factory.mktemp("images")
    patch = pytest.MonkeyPatch()
    patch.setenv("STORAGE_DRIVER", "vfs")
    patch.setenv("BUILDAH_ISOLATION", "chroot")
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
    )
    patch.setenv("CONTAINERS_STORAGE_CONF", str(folder / "storage.conf"))
    try:
        run("sh", ROOT / "deploy/release.sh", folder / "dist")
        base = os.environ.get("FLAGADMIN_BASE_IMAGE") or base_image(folder / "root")
        # This machine's certificates, for a registry of packages behind a proxy of its own.
        trusted = ("--volume", "/etc/ssl/certs:/etc/ssl/certs:ro")
        given = ("--format", "docker", "--build-arg", f"BASE={base}", "--tag", "flagadmin")
        run("buildah", "bud", *given, *trusted, folder / "dist")
        yield run("buildah", "from", "localhost/flagadmin")
    finally:
        subprocess.run(["buildah", "rm", "--all"], capture_output=True)
        subprocess.run(["buildah", "rmi", "--all", "--force"], capture_output=True)
        patch.undo()


def base_image(root: Path) -> str:
    run(
        "debootstrap", "--variant=minbase", "--include=python3,python3-venv,ca-certificates", "bookworm", root
    )
    empty = run("buildah", "from", "scratch")
    run("buildah", "copy", "--quiet", empty, root, "/")
    run("buildah", "commit", "--quiet", empty, "base")
    shutil.rmtree(root)
    return "localhost/base"


def test_the_container_may_write_its_data_and_nothing_else(container):
    search = "find / -xdev '(' -type d -o -type f ')' -writable -not -path '/proc/*' -not -path '/sys/*' -not -path '/dev/*' 2>/dev/null; true"
    writable = run("buildah", "run", container, "--", "sh", "-c", search).splitlines()
    assert {"/data"} <= set(writable) <= {"/data", "/tmp", "/var/tmp", "/run/lock"}


def test_the_container_serves_as_its_own_user_and_stops_cleanly(container, tmp_path):
    os.chown(tmp_path, USER, USER)
    for folder in tmp_path.parents[:2]:
        folder.chmod(0o711)
    for _ in ("an empty database", "the same one again"):
        with reserved_port() as port:
            serve = ["flagadmin", "serve", "--port", str(port), "--workers", "1"]
            command = ["buildah", "run", "--volume", f"{tmp_path}:/data", container, "--", *serve]
            runner = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            wait_until_ready(port, runner)
            servers = list(filter(is_python, descendants(b"flagadmin\0serve")))
            assert {Path(f"/proc/{pid}").stat().st_uid for pid in servers} == {USER}
            os.kill(min(servers), signal.SIGTERM)
            assert runner.wait(PATIENCE) == 0, runner.stdout.read().decode()
            runner.stdout.close()


def is_python(pid: int) -> bool:
    """Also buildah's own processes name the command that they run."""
    return b"python" in Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]
