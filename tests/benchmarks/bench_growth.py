"""How the cost of requests grows with flags, projects, environments, tokens and events, as a picture for the docs.

``python -m tests.benchmarks.bench_growth [PICTURE]`` (default: docs/growth.svg): CPU of the worker and of PostgreSQL in
rounds of the calibration loop, the least of some requests. Each number grows in an installation of its own.
"""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from tests.benchmarks.bench_change_in_large_project import PROJECT, Requests, change_a_flag, cpu
from tests.benchmarks.bench_playground import load
from tests.support.cpu import Calibration
from tests.support.live_server import data_directory

TIMES = 7
FLAGS = 1_000
PICTURE = "docs/growth.svg"
FLAG = f"/api/admin/projects/{PROJECT}/features/{PROJECT}-00500"
POLL, DELTA, FRONTEND = "poll after a change", "delta poll after a change", "frontend after a change"
SIZES = {
    "flags": (1_000, 5_000, 10_000, 20_000),
    "projects": (10, 100, 300, 1_000),
    "environments": (2, 4, 8, 16, 32),
    "tokens": (10, 100, 500, 2_000),
    "events": (1_000, 10_000, 100_000, 1_000_000),
}

Ask = Callable[[], Any]
numbers = count(1)


class Growing:
    """What grows, and the requests that it may make slower."""

    def __init__(self) -> None:
        from django.test import Client

        from tests.support.cast import make_token

        self._admin = Client(headers={"Authorization": make_token("admin")})
        self._sdk = Requests()
        self._tokens: list[int] = []

    def get(self, path: str) -> Ask:
        def ask() -> None:
            answer = self._admin.get(path)
            assert answer.status_code == 200, answer.content[:300]

        return ask

    def kinds(self, axis: str) -> dict[str, Ask]:
        sdk = self._sdk
        polls: dict[str, Ask] = {POLL: sdk.poll, DELTA: sdk.poll_delta}
        more: dict[str, dict[str, Ask]] = {
            "flags": {**polls, FRONTEND: sdk.ask_frontend},
            "projects": {**polls, "list of projects": self.get("/api/admin/projects")},
            "environments": {
                **polls,
                "one flag": self.get(FLAG),
                "list of environments": self.get("/api/admin/environments"),
            },
            "tokens": {POLL: sdk.poll, "a worker looks for changes": self._look},
            "events": {
                POLL: sdk.poll,
                "newest events": self.get("/api/admin/events?limit=10"),
                "events of a flag": self.get(f"/api/admin/events/{PROJECT}-00500"),
            },
        }
        return more[axis]

    def grow(self, axis: str, size: int) -> None:
        getattr(self, f"_add_{axis}")(size)
        _execute("ANALYZE")

    def _add_flags(self, size: int) -> None:
        load(f"flags{size}", size - _count("projects_flag"))

    def _add_projects(self, size: int) -> None:
        for _ in range(size - _count("projects_project")):
            load(f"small{next(numbers)}", 10)

    def _add_environments(self, size: int) -> None:
        from projects.models import Environment, Flag, FlagEnvironment, ProjectEnvironment

        for _ in range(size - _count("projects_environment")):
            made = Environment.objects.create(name=f"environment{next(numbers)}")
            ProjectEnvironment.objects.create(project_id=PROJECT, environment=made)
            flags = Flag.objects.filter(project=PROJECT)
            FlagEnvironment.objects.bulk_create(
                FlagEnvironment(flag=flag, environment=made) for flag in flags
            )

    def _add_tokens(self, size: int) -> None:
        from groups.models import ApiToken
        from tests.support.cast import make_token

        while len(self._tokens) < size:
            make_token("backend", projects=[PROJECT], environment="production", name=f"{next(numbers)}")
            self._tokens.append(ApiToken.objects.latest("pk").pk)

    def _add_events(self, size: int) -> None:
        _execute(
            "INSERT INTO audit_auditevent (type, actor_name, project, feature, environment, created_at, request_id)"
            f" SELECT 'feature-updated', 'admin', '{PROJECT}', '{PROJECT}-' || to_char(n %% 1000, 'FM00000'), NULL,"
            " now() - make_interval(mins => n), '' FROM generate_series(1, %s) n",
            size - _count("audit_auditevent"),
        )

    def _look(self) -> None:
        """Like a worker that a notification wakes, besides the connection."""
        from sdk.watcher import state, watcher
        from tests.support.event_loop import run

        async def read() -> None:
            async with watcher._connected() as primary:
                await state.read_state(primary, state.ReplicaReader(), self._tokens)

        run(read)


def _execute(statement: str, *values: Any) -> Any:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else None


def _count(table: str) -> int:
    found: int = _execute(f"SELECT count(*) FROM {table}")[0][0]
    return found


def measure(axis: str) -> dict[str, list[float]]:
    """Rounds by the kind of request, for each size."""
    with data_directory():
        from django.test import override_settings

        load(PROJECT, FLAGS)
        with override_settings(ALLOWED_HOSTS=["*"]):
            growing, loop = Growing(), Calibration().seconds_of_a_round()
            kinds = growing.kinds(axis)
            found: dict[str, list[float]] = {name: [] for name in kinds}
            for size in SIZES[axis]:
                growing.grow(axis, size)
                for name, ask in kinds.items():
                    ask()
                    ask()
                    took = []
                    for _ in range(TIMES):
                        if name.endswith("after a change"):
                            change_a_flag()
                        took.append(cpu(ask) / loop)
                    found[name].append(round(min(took), 2))
    return found


WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 150, 40, 30, 70
COLORS = ("#2563eb", "#c2410c", "#15803d", "#7e22ce")
STYLE = """text{font:12px sans-serif;fill:#333}.axis{stroke:#999;fill:none}polyline{fill:none;stroke-width:2}
@media(prefers-color-scheme:dark){text{fill:#ddd}.axis{stroke:#777}}"""


def draw(found: dict[str, dict[str, list[float]]]) -> str:
    """A panel for each number that grows, in two columns; sizes are on a logarithmic scale."""
    panels = [draw_panel(axis, lines, number) for number, (axis, lines) in enumerate(found.items())]
    rows = (len(panels) + 1) // 2
    width, height = 2 * (WIDTH + GAP), rows * (HEIGHT + TOP + GAP)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    return f"{head}\n<style>{STYLE}</style>\n" + "\n".join(panels) + "\n</svg>\n"


def draw_panel(axis: str, lines: dict[str, list[float]], number: int) -> str:
    sizes = SIZES[axis]
    low, high = math.log(sizes[0]), math.log(sizes[-1])
    top = math.ceil(max(map(max, lines.values())))
    left, base = LEFT + number % 2 * (WIDTH + GAP), TOP + HEIGHT + number // 2 * (HEIGHT + TOP + GAP)

    def x(size: int) -> float:
        return round(left + WIDTH * (math.log(size) - low) / (high - low), 1)

    def y(rounds: float) -> float:
        return round(base - HEIGHT * rounds / top, 1)

    parts = [
        f'<text x="{left}" y="{base - HEIGHT - 12}" font-weight="bold">Rounds by number of {axis}</text>',
        f'<path class="axis" d="M{left} {base - HEIGHT}V{base}H{left + WIDTH}"/>',
        f'<text x="{left - 6}" y="{base}" text-anchor="end">0</text>',
        f'<text x="{left - 6}" y="{base - HEIGHT + 8}" text-anchor="end">{top}</text>',
    ]
    parts += [f'<text x="{x(size)}" y="{base + 16}" text-anchor="middle">{size:,}</text>' for size in sizes]
    for place, ((name, rounds), color) in enumerate(zip(lines.items(), COLORS, strict=False)):
        points = " ".join(f"{x(size)},{y(each)}" for size, each in zip(sizes, rounds, strict=True))
        parts.append(
            f'<polyline points="{points}" stroke="{color}"><title>{name}: {rounds}</title></polyline>'
        )
        parts.append(
            f'<text x="{left + 8 + place % 2 * 150}" y="{base + 34 + place // 2 * 16}" style="fill:{color}">{name}</text>'
        )
    return "\n".join(parts)


def main(picture: str = PICTURE) -> None:
    found = {}
    for axis in SIZES:
        command = [sys.executable, "-m", "tests.benchmarks.bench_growth", f"--{axis}"]
        said = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
        found[axis] = json.loads(said.splitlines()[-1])
        print(axis, SIZES[axis], found[axis], flush=True)
    Path(picture).write_text(draw(found))


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].startswith("--"):
        print(json.dumps(measure(sys.argv[1][2:])))
    else:
        main(*sys.argv[1:])
