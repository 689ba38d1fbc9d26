"""The container image, built and run with Debian's buildah.

The base image is made with debootstrap, so that no registry of images is needed; FLAGADMIN_BASE_IMAGE names another.
deploy/compose.yaml is run with podman-compose, with an image in place of the official one of PostgreSQL.
Without these programs, or without root, these tests are skipped and say so.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.live_server import (
    PATIENCE,
    Client,
    descendants,
    is_ready,
    reserved_port,
    wait_until,
    wait_until_ready,
)

ROOT = Path(__file__).resolve().parents[3]
USER = 10001
NEEDED = ("buildah", "debootstrap")
# What Podman needs for containers that find each other by name, beside iptables, and for `init: true`.
NAME_SERVERS = ("/usr/lib/podman/aardvark-dns", "/usr/libexec/podman/aardvark-dns")
INITS = ("/usr/bin/catatonit", "/usr/libexec/podman/catatonit")
# Limits that any machine can set. Healthy or not is asked by hand: Podman needs systemd to ask regularly.
SETTINGS = """
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
init_path = "{init}"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
static_dir = "{folder}/libpod"
tmp_dir = "{folder}/tmp"
volume_path = "{folder}/volumes"
"""

pytestmark = [
    pytest.mark.machines,
    pytest.mark.processes,
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(map(shutil.which, NEEDED)),
        reason="The container image is not tested: it needs root, buildah and debootstrap.",
    ),
]


def find(paths: Iterable[str]) -> str | None:
    return next((path for path in paths if Path(path).exists()), None)


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE * 2)
    assert done.returncode == 0, f"{command}: {done.stderr[-3000:]}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where images, containers and dist/ are; the image is built."""
    folder = tmp_path_factory.mktemp("images")
    patch = pytest.MonkeyPatch()
    patch.setenv("STORAGE_DRIVER", "vfs")
    patch.setenv("BUILDAH_ISOLATION", "chroot")
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
    )
    patch.setenv("CONTAINERS_STORAGE_CONF", str(folder / "storage.conf"))
    (folder / "containers.conf").write_text(SETTINGS.format(folder=folder, init=find(INITS) or ""))
    patch.setenv("CONTAINERS_CONF", str(folder / "containers.conf"))
    try:
        run("sh", ROOT / "deploy/release.sh", folder / "dist")
        base = os.environ.get("FLAGADMIN_BASE_IMAGE") or base_image(folder / "root")
        # This machine's certificates, for a registry of packages behind a proxy of its own.
        trusted = ("--volume", "/etc/ssl/certs:/etc/ssl/certs:ro")
        options = ("--format", "docker", "--build-arg", f"BASE={base}", "--tag", "flagadmin")
        run("buildah", "bud", *options, *trusted, folder / "dist")
        yield folder
    finally:
        subprocess.run(["buildah", "rm", "--all"], capture_output=True)
        subprocess.run(["buildah", "rmi", "--all", "--force"], capture_output=True)
        patch.undo()


@pytest.fixture(scope="module")
def container(folder):
    return run("buildah", "from", "localhost/flagadmin")


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
            servers = list(filter(is_python, descendants(b"flagadmin\0serve", os.getpid())))
            assert {Path(f"/proc/{pid}").stat().st_uid for pid in servers} == {USER}
            os.kill(min(servers), signal.SIGTERM)
            assert runner.wait(PATIENCE) == 0, runner.stdout.read().decode()
            runner.stdout.close()


def is_python(pid: int) -> bool:
    """Also buildah's own processes name the command that they run."""
    return b"python" in Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = not all(map(shutil.which, programs))
    return pytest.mark.skipif(missing, reason=f"Not tried: it needs {', '.join(programs)}.")


@needs("podman", "runc")
def test_the_image_has_a_health_check_that_its_server_passes(folder):
    name = f"{folder.name}-health"
    try:
        run("podman", "run", "--detach", "--name", name, "--network", "none", "localhost/flagadmin")
        wait_until(lambda: is_healthy(name))
        ask = "import urllib.request as r; print(r.urlopen('http://localhost:8000/').read().decode())"
        assert "No account exists yet" in run("podman", "exec", name, "python", "-c", ask)
        run("podman", "exec", name, "sh", "-c", "kill -STOP -1")  # all but the first
        assert not is_healthy(name)
    finally:
        subprocess.run(["podman", "rm", "--force", "--volumes", name], capture_output=True)


def is_healthy(name: str) -> bool:
    checked = subprocess.run(["podman", "healthcheck", "run", name], capture_output=True, timeout=PATIENCE)
    return checked.returncode == 0


@needs("podman", "podman-compose", "runc", "iptables")
@pytest.mark.skipif(
    not (find(NAME_SERVERS) and find(INITS)),
    reason="compose.yaml is not tried: it needs the packages netavark, aardvark-dns and catatonit.",
)
def test_compose_serves_with_postgresql_and_keeps_its_data(folder, monkeypatch):
    run(
        "buildah",
        "bud",
        "--format",
        "docker",
        "--tag",
        "postgres:17",
        Path(__file__).with_name("postgres_image"),
    )
    with reserved_port() as port:
        monkeypatch.setenv("PORT", str(port))
        monkeypatch.setenv("FLAGADMIN_PUBLIC_URL", f"http://localhost:{port}")
        for name in ("SECRET_KEY", "DATABASE_PASSWORD"):
            monkeypatch.setenv(name, "for-all-starts-of-this-test" * 2)
        compose = ("podman-compose", "--project-name", folder.name, "--file", folder / "dist/compose.yaml")
        try:
            run(*compose, "up", "--detach")
            wait_until(lambda: is_ready(port))
            for service in ("flagadmin", "postgres"):
                run("podman", "healthcheck", "run", f"{folder.name}_{service}_1")
            create = ("flagadmin", "token", "create", "--kind", "admin", "--name", "kept")
            token = run("podman", "exec", f"{folder.name}_flagadmin_1", *create).split()[-1]
            run(*compose, "down")

            run(*compose, "up", "--detach")
            wait_until(lambda: is_ready(port))
            with closing(Client(port, token)) as client:
                assert client.call("GET", "/api/admin/projects")[0] == 200

            backup = f"{folder.name}_backup_1"
            wait_until(lambda: run("podman", "exec", backup, "ls", "/backups").startswith("flagadmin-"))
            run("podman", "healthcheck", "run", backup)
            # The first start may have written one as well.
            newest = "pg_restore --list $(ls /backups/flagadmin-*.dump | tail -n 1)"
            listed = run("podman", "exec", backup, "sh", "-c", newest)
            assert "TABLE DATA public projects_flag" in listed
        finally:
            subprocess.run([*compose, "down", "--volumes"], capture_output=True)
