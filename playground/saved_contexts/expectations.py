"""Checks the expectations of saved contexts: that a flag is on or off for them in an environment, with a variant."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any, NamedTuple

from django.utils import timezone

from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.errors import ValidationError
from groups.access import Caller
from playground.comparison.compare import FlagReasons, describe_payload, is_same_payload
from playground.comparison.results import Answer, Shares, StateResults, drop_payloads
from playground.comparison.table import ContextTable
from playground.engine.compilation import compile_snapshot
from playground.engine.context import Context, PointInTime
from playground.engine.outcomes import State
from playground.engine.snapshot import Snapshot
from playground.models import SavedContext
from playground.saved_contexts.enforcement import read_flag_projects
from playground.saved_contexts.queries import select_visible_expectations
from projects.definitions import Definitions, find_parents, read_definitions
from projects.revision import read_revisions

MAX_CHECKED = 10_000
"""Expectations per check."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected result of a flag for a saved context. Without a variant or a payload, any is accepted."""

    saved: SavedContext
    project: str
    flag: str
    environment: str
    enabled: bool
    variant: str | None
    payload: Mapping[str, str] | None = None
    """The payload with ``type`` and ``value``."""

    @property
    def document(self) -> dict[str, Any]:
        """The document stored with its saved context."""
        members = {name: getattr(self, name) for name in ("flag", "environment", "enabled", "variant")}
        return members | ({"payload": self.payload} if self.payload else {})

    @property
    def answer(self) -> Answer:
        return read_expected_answer(self.document)

    @property
    def words(self) -> str:
        """`on, variant blue, payload number 900`."""
        return answer_words(self.answer)

    @property
    def place(self) -> tuple[str, str]:
        """Its flag and environment. A saved context has one expectation for each."""
        return self.flag, self.environment

    @property
    def enforced_in(self) -> str | None:
        """The project that enforces it; None if it is only reported."""
        return self.saved.enforcing_project(self.flag)

    def is_met_by(self, shares: Shares) -> bool:
        """Whether every call returns the expected result."""
        expected = self.answer
        return all(
            answer.state is expected.state
            and expected.variant in (None, answer.variant)
            and (expected.payload is None or is_same_payload(expected.payload, answer.payload))
            for answer, share in shares
        )


@dataclass(frozen=True, slots=True)
class Checked:
    """An expectation with the flag's actual result, and the reason."""

    expectation: Expectation
    met: bool
    shares: Shares
    reason: str

    @property
    def actual(self) -> str:
        """`off`, or `on for 30 % of calls, off for 70 % of calls`."""
        pins_payload = self.expectation.payload is not None
        return describe_shares(self.shares if pins_payload else drop_payloads(self.shares))

    @property
    def sentence(self) -> str:
        """`checkout-redesign is off in production for Norwegian beta user, expected on`."""
        expectation = self.expectation
        where = f"in {expectation.environment} for {expectation.saved.name}"
        return f"{expectation.flag} is {self.actual} {where}, expected {expectation.words}"


def read_expected_answer(document: Mapping[str, Any]) -> Answer:
    """The answer expected by a stored expectation; None as variant or payload means any."""
    payload = document.get("payload")
    return Answer(
        State.ON if document["enabled"] else State.OFF,
        document["variant"],
        (payload["type"], payload["value"]) if payload else None,
    )


def answer_words(answer: Answer) -> str:
    if answer.state is State.UNKNOWN:
        return "dependent on the SDK"
    parts = [answer.state.value]
    if answer.variant:
        parts.append(f"variant {answer.variant}")
    if answer.payload:
        parts.append(f"payload {describe_payload(answer.payload)}")
    return ", ".join(parts)


def describe_shares(shares: Shares) -> str:
    if len(shares) == 1:
        return answer_words(shares[0][0])
    return "; ".join(
        f"{answer_words(answer)} for {float(100 * share):.3g} % of calls" for answer, share in shares
    )


def list_expectations(
    caller: Caller,
    *,
    projects: Collection[str] | None = None,
    environments: Collection[str] | None = None,
    contexts: Sequence[SavedContext] | None = None,
    flags: Collection[str] | None = None,
    planned: Mapping[str, str] | None = None,
) -> list[Expectation]:
    """Lists the expectations of saved contexts for flags that the caller may read, by context. Two or three queries.

    Optionally limited to these flags, projects, environments or contexts. ``planned`` are projects of flags that do not
    exist yet.
    """
    saved = (
        list(SavedContext.objects.readable_by(caller).exclude(expectations=[]))
        if contexts is None
        else contexts
    )
    visible = {
        key: [
            expected
            for expected in listed
            if (flags is None or expected["flag"] in flags)
            and (environments is None or expected["environment"] in environments)
        ]
        for key, listed in select_visible_expectations(caller, saved).items()
    }
    owners = {**(planned or {}), **read_flag_projects(chain.from_iterable(visible.values()))}
    expectations = [
        Expectation(saved=context, project=owners.get(expected["flag"], context.project_id or ""), **expected)
        for context in saved
        for expected in visible[context.pk]
    ]
    return [
        expectation for expectation in expectations if projects is None or expectation.project in projects
    ]


def check_number(expectations: Sequence[Expectation]) -> None:
    """Raises ValidationError if there are too many for one check."""
    if len(expectations) > MAX_CHECKED:
        raise ValidationError(
            f"This would check {len(expectations):,} expectations; the limit is {MAX_CHECKED:,}. "
            "Name projects, environments or contexts."
        )


def check_expectations(
    caller: Caller, expectations: Sequence[Expectation], *, reasons: bool = True
) -> list[Checked]:
    """Checks the stored state, with reasons or in a fifth of the time. Raises ValidationError."""
    check_number(expectations)
    flags: dict[str, set[str]] = defaultdict(set)
    for expectation in expectations:
        flags[expectation.environment].add(expectation.flag)
    projects = list(read_revisions(caller.readable_projects)) if flags else []
    with consistent_reads():
        read = {
            environment: read_stored_flags(projects, environment, names)
            for environment, names in flags.items()
        }
    snapshots = {
        environment: compile_flags(flags_there, environment) for environment, flags_there in read.items()
    }
    return check_against(expectations, snapshots, now=timezone.now(), reasons=reasons)


def read_stored_flags(projects: Collection[str], environment: str, names: Collection[str]) -> Definitions:
    """The definitions of these flags of the projects, and of their parents."""
    read = read_definitions(projects, environment, flags=names)
    parents = find_parents(read.flags) - set(names)
    if not parents:
        return read
    above = read_definitions(projects, environment, flags=parents)
    return Definitions([*read.flags, *above.flags], read.segments | above.segments)


def compile_flags(read: Definitions, environment: str) -> Snapshot:
    flags = sorted(read.flags, key=lambda flag: flag["name"])
    return compile_snapshot(flags, read.segments, environment=environment)


def check_against(
    expectations: Iterable[Expectation],
    snapshots: Mapping[str, Snapshot],
    *,
    now: PointInTime,
    reasons: bool = True,
) -> list[Checked]:
    """Each expectation with the flag's result in the snapshot of its environment, in the same order."""
    expectations = list(expectations)
    checks: dict[int, Checked] = {}
    for environment, snapshot in snapshots.items():
        places = [
            pair for pair, expectation in enumerate(expectations) if expectation.environment == environment
        ]
        saved = {expectations[place].saved.pk: expectations[place].saved for place in places}
        position = {key: index for index, key in enumerate(saved)}
        contexts = [Context(context.context).at(now) for context in saved.values()]
        results = StateResults(snapshot, ContextTable(contexts))
        whys: dict[str, FlagReasons] = {}
        for place in places:
            expectation = expectations[place]
            row = position[expectation.saved.pk]
            shares = _find_shares(results, expectation.flag, row)
            if expectation.flag not in whys:
                whys[expectation.flag] = FlagReasons(snapshot, expectation.flag)
            reason = whys[expectation.flag].of(contexts[row]) if reasons else ""
            checks[place] = Checked(expectation, expectation.is_met_by(shares), shares, reason)
    return [checks[place] for place in sorted(checks)]


def _find_shares(results: StateResults, flag: str, position: int) -> Shares:
    masks = results.results(flag).items()
    return next(shares for shares, mask in masks if mask >> (8 * position) & 1)


class ChangedExpectation(NamedTuple):
    """An expectation that is met in only one of two states, with the reasons."""

    before: Checked
    after: Checked

    @property
    def is_broken(self) -> bool:
        return self.before.met

    @property
    def sentence(self) -> str:
        """`checkout-redesign: on → off in production, expected on. 100 % rollout → The flag is off`."""
        expectation = self.after.expectation
        return (
            f"{expectation.flag}: {self.before.actual} → {self.after.actual} in {expectation.environment}, "
            f"expected {expectation.words}. {self.before.reason} → {self.after.reason}"
        )


def compare_expectations(
    expectations: Sequence[Expectation],
    before: Mapping[str, Snapshot],
    after: Mapping[str, Snapshot],
    *,
    now: PointInTime,
) -> list[ChangedExpectation]:
    """Compares two states, each a snapshot by environment. Makes reasons only for changes."""
    if not expectations:
        return []
    states = (before, after)
    old, new = (check_against(expectations, state, now=now, reasons=False) for state in states)
    changed = list(
        compress(
            expectations,
            (is_before.met != is_after.met for is_before, is_after in zip(old, new, strict=True)),
        )
    )
    with_reasons = (check_against(changed, state, now=now) for state in states)
    return [ChangedExpectation(*pair) for pair in zip(*with_reasons, strict=True)]
