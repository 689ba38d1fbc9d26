"""The installation that is attacked: a data directory, a server and keys of its own."""

import http.client
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.live_server import Client, started

WORKERS = 2
MARKER = "kept-from-others-8c1f"  # in the project "sealed": an answer that has it told too much
PASSWORD = "correct horse battery"  # of "attacked", who has an authenticator app
SEALED = "/api/admin/projects/sealed"


class Question(NamedTuple):
    """What somebody asks who has nothing to do with the attack. ``key`` names a key of the installation."""

    key: str
    method: str
    path: str
    body: Any = None


PLAYGROUND = Question(
    "viewer",
    "POST",
    "/api/admin/playground",
    {"environment": "production", "projects": ["checkout"], "context": {"userId": "42"}},
)


@dataclass(frozen=True, slots=True)
class Installation:
    """A server, or a relay before it."""

    port: int
    group: int  # of the server's processes
    folder: Path
    # admin, editor, viewer, backend, frontend; outsider and portal have only the project legacy-portal
    keys: dict[str, str]
    sessions: dict[str, str]  # of administrators' browsers, each with an account of its own
    links: dict[str, str]  # login and invite: tokens of links; app: the secret of an authenticator app
    question: Question = PLAYGROUND
    ready: str = "/readyz"
    waits: list[float] = field(default_factory=list)  # of bystanders of attacks, in seconds

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def call(self, key: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        """The answer to one request on a connection of its own; the status 599 if there is none."""
        try:
            with closing(Client(self.port, self.keys.get(key, ""))) as client:
                return client.call(method, path, body, **headers)
        except (OSError, http.client.HTTPException) as error:
            return 599, repr(error).encode()

    def worker_megabytes(self) -> float:
        """What the largest of the server's processes holds now."""
        return max((_megabytes(pid) for pid in self.processes()), default=0.0)

    def cpu_seconds(self) -> float:
        """The processor time of the server's processes until now, without the database's, whatever else runs here."""
        return sum(map(_cpu_seconds, self.processes()))

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


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
            "FLAGADMIN_LOG_LEVEL": "ERROR",
        } | environment
        made = _filled(variables)
        with (
            (Path(folder) / "server.log").open("wb") as log,
            started(workers, log=log, **variables) as (
                port,
                group,
            ),
        ):
            yield Installation(port, group, Path(folder), **made)


def _filled(variables: dict[str, str]) -> dict[str, dict[str, str]]:
    """In a process of its own: this one may be a test's, with another database."""
    variables = os.environ | {"DJANGO_SETTINGS_MODULE": "flagadmin.settings"} | variables
    script = "from tests.attack import installation; installation.fill()"
    done = subprocess.run(
        [sys.executable, "-c", script], env=variables, stdout=subprocess.PIPE, text=True, check=True
    )
    made: dict[str, dict[str, str]] = json.loads(done.stdout.strip().splitlines()[-1])
    return made


def fill() -> None:
    """Migrates, makes what is looked at, and prints the keys."""
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    from groups.access import Caller
    from groups.login.links import create_login_link
    from groups.models import Grant
    from groups.permissions import BuiltIn
    from groups.scim.actions import make_token as make_scim_token
    from groups.scim.actions import set_enabled
    from tests.support.cast import make_token, make_user
    from tests.support.scenery import make_scenery
    from tests.support.second_factor import SECRET, set_up_app

    make_scenery()
    roots = {"admin": BuiltIn.ADMIN, "editor": BuiltIn.EDITOR, "viewer": BuiltIn.VIEWER}
    people = {name: make_user(f"attacker-{name}", root_role=role) for name, role in roots.items()}
    people["outsider"] = make_user("attacker-outsider")
    for name in ("editor", "outsider"):
        Grant.objects.create(role_id=BuiltIn.MEMBER, project_id="legacy-portal", user=people[name])
    set_up_app(make_user("attacked", root_role=BuiltIn.VIEWER, password=PASSWORD))
    newcomer = create_login_link(make_user("newcomer", root_role=BuiltIn.VIEWER))
    sessions = {}
    for face in ("console", "admin site"):
        browser = Client()
        browser.force_login(make_user(f"attacker of the {face}", root_role=BuiltIn.ADMIN))
        sessions[face] = browser.cookies["sessionid"].value
    keys = {name: make_token("personal", user=user) for name, user in people.items()} | {
        "backend": make_token("backend", environment="production"),
        "frontend": make_token("frontend", environment="production"),
        "portal": make_token("backend", projects=["legacy-portal"], environment="production"),
        "scim": make_scim_token(caller=Caller.system()),
    }
    set_enabled(True, caller=Caller.system())
    invite = seal(keys["admin"])["secret"]
    links = {"login": newcomer.split("/")[-2], "invite": invite, "app": SECRET}
    print(json.dumps({"keys": keys, "sessions": sessions, "links": links}))


def seal(secret: str) -> dict[str, Any]:
    """Makes what the keys of the other project must never read, through the API, so that it has a past.

    Returns the answer of the last call: an invite link.
    """
    from tests.support.cast import client

    admin, place = client(secret), f"{SEALED}/features/sealed-flag/environments/production"
    only = [{"contextName": "region", "operator": "IN", "values": [MARKER]}]
    payload = {"payload": {"type": "string", "value": MARKER}, "stickiness": "default"}
    variant = {"name": "a", "weight": 1000, "weightType": "variable", **payload}
    expected = [{"flag": "sealed-flag", "environment": "production", "enabled": False}]
    saved = {"name": "Sealed", "project": "sealed", "note": MARKER, "context": {}, "expectations": expected}
    for method, path, body in (
        ("post", "/api/admin/projects", {"id": "sealed", "name": "Sealed", "description": MARKER}),
        ("post", f"{SEALED}/features", {"name": "sealed-flag", "description": MARKER}),
        ("post", f"{place}/strategies", {"name": "default", "constraints": only, "variants": [variant]}),
        ("post", f"{place}/on", {}),
        ("post", "/api/admin/playground/contexts", saved),
        ("post", "/api/admin/invite-link/tokens", {"name": "Team", "expiresAt": next_month()}),
    ):
        answer = getattr(admin, method)(path, body, format="json", SERVER_NAME="localhost")
        assert answer.status_code < 300, (path, answer.content)
    made: dict[str, Any] = answer.json()
    return made


def next_month() -> str:
    return (datetime.now(UTC) + timedelta(days=30)).isoformat()
