"""What the rows of a table had at their times is what the playground of each row's moment answers, and an SDK then."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from yggdrasil_engine.engine import UnleashEngine

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import NotFound
from flagadmin.core.http.responses import iso
from groups.access import Caller
from playground.engine.compilation import compile_snapshot
from playground.engine.context import Context, format_time
from playground.engine.evaluator import evaluate
from playground.engine.outcomes import find_state, find_variant_name
from playground.engine.snapshot import Snapshot
from playground.outcomes.assign import Assigner
from playground.outcomes.history import FlagHistory, Sight, read_histories
from playground.outcomes.partial import RowTable
from projects.history.definitions_at import flags_then
from projects.models import VersionsSince
from projects.models.versions import BEGINNING
from tests.support.cast import make_project
from tests.support.for_each import for_each
from tests.support.random_changes import NAMES, RandomChanges

pytestmark = pytest.mark.django_db
ENVIRONMENT = "production"


class InProduction(RandomChanges):
    """Changes of flags that are mostly on in production."""

    do_enable_more = do_add_more = do_edit_more = RandomChanges.do_enable

    def environment(self) -> str:
        return ENVIRONMENT


class Alone:
    """The playground of each moment, asked for one context after the other."""

    def __init__(self, name: str, moments: list[datetime], start: str = "off") -> None:
        self.name, self.moments, self.start = name, moments, start
        self.projects = {*AuditEvent.objects.exclude(project=None).values_list("project", flat=True)}
        self.snapshots = {moment: self.compile(moment) for moment in moments}
        self.engines = {moment: self.make_engine(moment) for moment in moments}

    def compile(self, at: datetime) -> Snapshot:
        read = flags_then([self.name], self.projects, ENVIRONMENT, at)
        return compile_snapshot(read.flags, read.segments, environment=ENVIRONMENT)

    def ask_sdk(self, values: dict[str, str], time: datetime) -> tuple[str, str]:
        """The answer of the SDKs' engine with the flags of that time."""
        moment = max((each for each in self.moments if each <= time), default=None)
        if moment is None:
            return "off", ""
        sent = values | {"currentTime": format_time(time)}
        engine = self.engines[moment]
        is_on, variant = bool(engine._do_is_enabled(self.name, sent)), engine._do_get_variant(self.name, sent)
        return ("on" if is_on else "off"), (
            "" if variant is None or variant.name == "disabled" else variant.name
        )

    def make_engine(self, at: datetime) -> Any:
        read = flags_then([self.name], self.projects, ENVIRONMENT, at)
        engine = UnleashEngine()
        flags = list(map(as_sent, read.flags))
        state = {"version": 2, "features": flags, "segments": list(read.segments.values())}
        engine.take_state(json.dumps(state, default=str))
        return engine

    def expect(self, values: dict[str, str], time: datetime) -> tuple[str, ...]:
        """The first cells of a row, with one moment after the other."""
        earlier, since = (self.start, ""), ""
        for moment in self.moments:
            if moment > time:
                break
            answer = answer_alone(self.snapshots[moment], self.name, values, time)
            if answer != earlier:
                earlier, since = answer, "" if earlier[0] == "unknown" else iso(moment)
        return (*earlier, since)


def as_sent(flag: Mapping[str, Any]) -> dict[str, Any]:
    """A flag as SDKs get it: without disabled strategies, and off if it has no others."""
    strategies = [strategy for strategy in flag["strategies"] if not strategy["disabled"]]
    enabled = flag["enabled"] and bool(strategies or not flag["strategies"])
    return {**flag, "enabled": enabled, "strategies": strategies}


def answer_alone(snapshot: Snapshot, name: str, values: dict[str, str], now: datetime) -> tuple[str, str]:
    if name not in snapshot.positions:
        return "off", ""
    context = Context.of_texts(values, now=format_time(now))
    flag, outcome = evaluate(snapshot, context, now=now, random=lambda: 0.0).pair(name)
    return find_state(flag, outcome).value, find_variant_name(flag, outcome) or ""


def change(seed: int, steps: int) -> RandomChanges:
    make_project("docs")
    changes = InProduction(seed)
    for _ in range(steps):
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('flagadmin.audited', '', true)")
        changes.step()
    return changes


@for_each(("seed", "before_versions"), [(0, False), (1, True)])
def test_every_row_is_as_evaluated_alone(shop: Any, seed: int, before_versions: bool) -> None:
    """After random changes; the time before versions is unknown."""
    changes = change(seed, 80)
    moments = sorted(set(AuditEvent.objects.values_list("created_at", flat=True)))
    known = moments
    if before_versions:
        known = moments[len(moments) // 3 :]
        VersionsSince.objects.create(since=known[0], kept_since=known[0])
    random = changes.random
    rows = [[str(random.randrange(6))] for _ in range(40)]
    times = [moments[0] + (moments[-1] - moments[0]) * random.uniform(-0.1, 1) for _ in rows]
    times[:10] = random.choices(moments, k=10)  # a moment includes what happened then
    checked, altered = 0, set()
    for name in NAMES:
        try:
            [history] = read_histories(Sight.of(Caller.system(), ENVIRONMENT), ENVIRONMENT, [name])
        except NotFound:
            continue
        alone = Alone(name, known, "unknown" if before_versions else "off")
        cells = Assigner(history, timedelta()).assign(RowTable(["userId"], rows, times))
        for [user], time, row in zip(rows, times, cells, strict=True):
            assert row[:3] == alone.expect({"userId": user}, time), (name, user, time)
            if row[0] in ("on", "off"):
                assert row[:2] == alone.ask_sdk({"userId": user}, time), (name, user, time)
            altered.add(row[2])
            checked += 1
        check_changes(history)
    assert checked >= 100
    assert len(altered) > 5


def check_changes(history: FlagHistory) -> None:
    """Each change is an event of its moment, and no state is as the one before."""
    for moment, event in zip(history.moments, history.changes, strict=True):
        assert moment == BEGINNING or AuditEvent.objects.get(pk=event).created_at == moment
    assert all(first < second for first, second in pairwise(history.moments))
