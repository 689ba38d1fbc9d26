"""The installation that is attacked: a data directory, a server and keys of its own."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.live_server import started

WORKERS = 2


@dataclass(frozen=True, slots=True)
class Installation:
    port: int
    group: int  # of the server's processes
    folder: Path
    keys: dict[str, str]  # admin, editor, viewer, backend, frontend
    sessions: dict[str, str]  # of administrators' browsers, each with an account of its own

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def worker_megabytes(self) -> float:
        """What the largest of the server's processes holds now."""
        return max((_megabytes(pid) for pid in self.processes()), default=0.0)

    def processes(self) -> list[int]:
        """The server's own processes; the database's are in another group."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.getpgid(int(entry.name)) == self.group:
                    found.append(int(entry.name))
            except OSError:
                continue  # gone meanwhile
        return found


def _megabytes(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next(
        (int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS")), 0.0
    )


@contextmanager
def installation(
    workers: int = WORKERS, prepare: Callable[[Path], None] | None = None, **environment: str
) -> Iterator[Installation]:
    """``prepare`` is given the empty data directory; ``environment`` adds to the variables that the server gets."""
    with tempfile.TemporaryDirectory(prefix="flagadmin-attack-") as folder:
        if prepare:
            prepare(Path(folder))
        variables = {
            "DJANGO_SETTINGS_MODULE": "flagadmin.settings",
            "FLAGADMIN_DATA_DIR": folder,
            "FLAGADMIN_LOG_LEVEL": "CRITICAL",
        } | environment
        keys, sessions = _filled(variables)
        with started(workers, **variables) as (port, group):
            yield Installation(port, group, Path(folder), keys, sessions)


def _filled(variables: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """In a process of its own: this one may be a test's, with another database."""
    variables = os.environ | {"DJANGO_SETTINGS_MODULE": "flagadmin.settings"} | variables
    script = "from tests.attack import installation; installation.fill()"
    done = subprocess.run(
        [sys.executable, "-c", script], env=variables, capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout.strip().splitlines()[-1])
    return told["keys"], told["sessions"]


def fill() -> None:
    """Migrates, makes what is looked at, and prints the keys."""
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    from groups.models import Grant
    from groups.permissions import BuiltIn
    from tests.support.cast import make_token, make_user
    from tests.support.scenery import make_scenery

    make_scenery()
    roots = {"admin": BuiltIn.ADMIN, "editor": BuiltIn.EDITOR, "viewer": BuiltIn.VIEWER}
    people = {name: make_user(f"attacker-{name}", root_role=role) for name, role in roots.items()}
    Grant.objects.create(role_id=BuiltIn.MEMBER, project_id="legacy-portal", user=people["editor"])
    sessions = {}
    for face in ("console", "admin site"):
        browser = Client()
        browser.force_login(make_user(f"attacker of the {face}", root_role=BuiltIn.ADMIN))
        sessions[face] = browser.cookies["sessionid"].value
    keys = {name: make_token("personal", user=user) for name, user in people.items()} | {
        "backend": make_token("backend", environment="production"),
        "frontend": make_token("frontend", environment="production"),
    }
    print(json.dumps({"keys": keys, "sessions": sessions}))
