"""Refuses changes that break an expectation, in projects with that setting.

Registered with `flagadmin.core.change_checks`, which calls it before and after a project changes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record_all
from flagadmin.core.change_checks import BrokenExpectations, KnownChange, Watch
from flagadmin.core.errors import MAX_DETAILS, Problem
from groups.access import Caller, Permission
from playground.comparison.compare import MISSING
from playground.engine.snapshot import Snapshot
from playground.models import SavedContext
from playground.saved_contexts.checks import change_document
from playground.saved_contexts.expectations import (
    ChangedExpectation,
    Checked,
    Expectation,
    compare_expectations,
    compile_flags,
    read_stored_flags,
)
from projects.definitions import Definitions, find_parents, find_unlike_flags, find_used_segments
from projects.revision import read_revisions

OVERRIDE = Permission.UPDATE_FEATURE_ENVIRONMENT
"""Required to break an expectation: users who may turn the flag off must be able to in an emergency."""


def guard(project_id: str, caller: Caller) -> Watch | None:
    """The watch of the project's expectations, if there are any."""
    expectations = _list_enforced(project_id)
    return _ExpectationWatch(project_id, expectations, caller) if expectations else None


class _ExpectationWatch(Watch):
    """Reads the project's flags with expectations before and after a change.

    Only the project's own answers count: a flag moved to another project is off here, like a deleted one. Two
    queries, and four to eight for each environment with expectations. The check needs one query if no flag of the
    project evaluates differently, otherwise as many again; it evaluates only the differences.
    """

    def __init__(self, project_id: str, expectations: Sequence[Expectation], caller: Caller) -> None:
        self.project_id, self.expectations, self.caller = project_id, expectations, caller
        self.now = timezone.now()
        self.revision, self.before = read_revisions([project_id]), _read(project_id, expectations)

    def foresee(self, known: KnownChange) -> BrokenExpectations | None:
        """None also if a flag would use a segment or a parent that has not been read."""
        named = _group_flags(self.expectations)
        after = {
            name: read.after(known, name).select(named[name] | read.by_name().keys())
            for name, read in self.before.items()
        }
        is_read = all(
            find_used_segments(read.flags) <= read.segments.keys()
            and find_parents(read.flags) <= read.by_name().keys()
            for read in after.values()
        )
        if not is_read or not known.keeps_expectations or self.caller.breaks_expectations:
            return None
        return self._judge(after)

    def __call__(self) -> BrokenExpectations | None:
        if read_revisions([self.project_id]) == self.revision:
            return None
        return self._judge(_read(self.project_id, self.expectations))

    def _judge(self, after: Mapping[str, Definitions]) -> BrokenExpectations | None:
        changed_flags = {name: find_unlike_flags(self.before[name], after[name]) for name in self.before}
        differing = [
            expectation
            for expectation in self.expectations
            if expectation.flag in changed_flags[expectation.environment]
        ]
        snapshots = (_compile(differing, state) for state in (self.before, after))
        changed = compare_expectations(differing, *snapshots, now=self.now)
        broken = [
            _explain_in_project(change)
            for change in _drop_removed(change for change in changed if change.is_broken)
        ]
        return _refuse(self.project_id, broken, self.caller) if broken else None


def _list_enforced(project_id: str) -> list[Expectation]:
    """The expectations that the project enforces, also for flags that it does not have: they may be moved
    here, or created.
    """
    contexts = SavedContext.objects.usable_in(project_id)
    return [
        Expectation(saved=saved, project=project_id, **document)
        for saved in contexts.exclude(expectations=[])
        for document in saved.expectations
        if saved.enforcing_project(document["flag"]) == project_id
    ]


def _read(project_id: str, expectations: Sequence[Expectation]) -> Mapping[str, Definitions]:
    """The project's flags with their parents, by environment."""
    named = _group_flags(expectations)
    return {
        environment: read_stored_flags([project_id], environment, flags)
        for environment, flags in named.items()
    }


def _explain_in_project(broken: ChangedExpectation) -> ChangedExpectation:
    """Gives the change a reason that fits a moved flag: it exists, but not here."""
    return ChangedExpectation(*map(_explain_project, broken))


def _explain_project(check: Checked) -> Checked:
    if check.reason != MISSING:
        return check
    return replace(check, reason=f"Project {check.expectation.project} has no such flag, or it is archived")


def _compile(expectations: Iterable[Expectation], state: Mapping[str, Definitions]) -> dict[str, Snapshot]:
    """The flags of these expectations, with their parents, by environment."""
    return {
        environment: compile_flags(_select_family(state[environment], names), environment)
        for environment, names in _group_flags(expectations).items()
    }


def _group_flags(expectations: Iterable[Expectation]) -> dict[str, set[str]]:
    named: dict[str, set[str]] = {}
    for expectation in expectations:
        named.setdefault(expectation.environment, set()).add(expectation.flag)
    return named


def _select_family(read: Definitions, names: set[str]) -> Definitions:
    return read.select(names | find_parents(read.select(names).flags))


def _drop_removed(broken: Iterable[ChangedExpectation]) -> Iterator[ChangedExpectation]:
    """Drops expectations that the same action has removed: an import may bring flags and expectations."""
    broken = list(broken)
    ids = {change.after.expectation.saved.pk for change in broken}
    stored = (
        {saved.pk: saved.expectations for saved in SavedContext.objects.filter(pk__in=ids)} if ids else {}
    )
    for change in broken:
        expectation = change.after.expectation
        if expectation.document in stored.get(expectation.saved.pk, ()):
            yield change


def _refuse(
    project_id: str, broken: Sequence[ChangedExpectation], caller: Caller
) -> BrokenExpectations | None:
    """The refusal; or None, with an event, if the caller overrides it. Raises NoAccess if they may not."""
    if not caller.breaks_expectations:
        first = broken[:MAX_DETAILS]
        problems = [Problem(change.after.expectation.saved.name, change.sentence) for change in first]
        return BrokenExpectations(
            [project_id], problems, [change_document(*change) for change in first], len(broken)
        )
    for environment in {change.after.expectation.environment for change in broken}:
        caller.check(OVERRIDE, project=project_id, environment=environment)
    record_all((_make_event(project_id, change) for change in broken), actor=caller)
    return None


def _make_event(project_id: str, broken: ChangedExpectation) -> Event:
    expectation = broken.after.expectation
    return Event(
        type=EventType.EXPECTATION_OVERRIDDEN,
        project=project_id,
        environment=expectation.environment,
        feature=expectation.flag,
        subject=expectation.saved.name,
        before={"result": broken.before.actual},
        after={"result": broken.after.actual},
    )
