"""Evaluates for the playground's pages: the flags of a query, now or at another moment, and the fields they read."""

import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain

from django.conf import settings

from flagadmin.core.errors import ValidationError
from groups.access import Caller
from playground.comparison.past import load_snapshots
from playground.engine.batch import list_constraints
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation, evaluate
from playground.engine.snapshot import Snapshot
from playground.pages.form import FormOptions
from playground.pages.query import PlaygroundQuery
from playground.queries import read_readable_revisions, refuse_too_many
from playground.request import PlaygroundRequest, check_size
from playground.response.snapshot import ResponseSnapshot
from playground.snapshot_cache import load_snapshot_at
from projects.access import describe_unknown_environment

SEED = 0  # keeps random results the same across columns and reloads
PAGES_MAY = 3  # times the evaluations of an API request: a page renders only some of them
OFFERED_FIELDS = 20  # undeclared fields that conditions read


def load_shown_snapshots(
    caller: Caller, query: PlaygroundQuery, options: FormOptions
) -> dict[str, ResponseSnapshot]:
    """Loads the flags to evaluate, by environment. Raises ValidationError."""
    if query.at is not None:
        return load_snapshots(caller, *make_past_request(query))[0]
    current = read_shown_revisions(caller, query, options)
    if query.several:
        refuse_too_many(
            current, environments=len(query.environments), contexts=len(query.contexts), limit=_limit()
        )
    return {name: load_snapshot_at(current, name) for name in query.environments}


def read_shown_revisions(caller: Caller, query: PlaygroundQuery, options: FormOptions) -> dict[str, int]:
    """The revisions of the projects to evaluate now. Raises ValidationError."""
    for environment in query.environments:
        if environment not in options.environments:
            raise ValidationError.at("environment", describe_unknown_environment(environment))
    return read_readable_revisions(caller, query.projects)


def _limit() -> int:
    return settings.PLAYGROUND_MAX_EVALUATIONS * PAGES_MAY


def make_past_request(query: PlaygroundQuery) -> tuple[PlaygroundRequest, dict[str, str]]:
    """The query as a request about the past, and its environments by the paths of their problems."""
    request = PlaygroundRequest(query.environments, query.projects, {}, {}, query.at)
    return request, {f"environment {name}": name for name in query.environments}


def get_engine_snapshots(snapshots: Mapping[str, ResponseSnapshot]) -> dict[str, Snapshot]:
    return {environment: compiled.snapshot for environment, compiled in snapshots.items()}


def evaluate_columns(
    query: PlaygroundQuery, snapshots: Mapping[str, Snapshot], now: datetime
) -> list[Evaluation]:
    """One evaluation for each environment and context. Raises ValidationError if there are too many."""
    check_size(
        environments=len(snapshots),
        flags=max(len(snapshot.flags) for snapshot in snapshots.values()),
        contexts=len(query.contexts),
        limit=_limit(),
    )
    return [
        evaluate(
            snapshots[environment], Context(context), now=query.at or now, random=random.Random(SEED).random
        )
        for environment, context in query.columns
    ]


def find_used_fields(evaluations: Sequence[Evaluation], options: FormOptions, *, flag: str = "") -> set[str]:
    """The fields that conditions read, including at most OFFERED_FIELDS undeclared ones: for the ``flag`` if there is
    one with this name, else for all flags.

    Without evaluations, all declared fields.
    """
    if not evaluations:
        return {field.name for field in options.fields}
    fields = {name for evaluation in evaluations for name in list_fields(evaluation.snapshot, flag)}
    if "default" in fields:  # the default stickiness is userId or, without one, sessionId
        fields.add("sessionId")
    declared = {field.name for field in options.fields}
    undeclared = sorted(fields - declared - {"", "default", "random"})
    return (fields & declared) | set(undeclared[:OFFERED_FIELDS])


def list_fields(snapshot: Snapshot, name: str) -> Iterable[str]:
    """The fields that a flag and its parents read; those of all flags if there is none with this name."""
    position = snapshot.positions.get(name)
    if position is None:
        return snapshot.columns.fields()
    flag = snapshot.flags[position]
    parents = (snapshot.positions.get(parent.name) for parent in flag.parents)
    flags = [flag, *(snapshot.flags[parent] for parent in parents if parent is not None)]
    fields = {each.variants.stickiness for each in flags if each.variants}
    for strategy in chain.from_iterable(each.strategies for each in flags):
        fields |= {constraint.field for constraint in list_constraints(strategy, snapshot.segments)}
        fields |= {part.stickiness for part in (strategy.rollout, strategy.variants) if part}
    return fields
