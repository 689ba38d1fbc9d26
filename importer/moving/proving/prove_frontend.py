"""Compares another server's results for some users of a browser or app with the results here.

Both servers evaluate for frontend tokens in their own ways, so equal definitions prove nothing.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

import orjson
from django.db import DEFAULT_DB_ALIAS

from groups.models import ApiToken
from importer.moving.proving.answers import Difference, People, TokenProof, make_definitions, read_flags_here
from importer.moving.reading.shapes import Shape, SourceToken, read_shape
from importer.moving.reading.source import Source
from playground.comparison.compare import FlagReasons
from playground.comparison.users import make_users
from playground.engine.context import TOP_LEVEL, Context
from playground.engine.snapshot import Snapshot
from playground.response.frontend import render_toggles
from playground.snapshot_cache import load_snapshot_at
from sdk.base import read_token_scope
from sdk.evaluation.prepared import Prepared, make_context, prepare, read_query_context

PATH = "/api/frontend"
SAMPLE = 20
"""Users, each of whom costs a request. At most half are saved contexts and users of a file."""
LOWEST, HIGHEST = 0.0, 0.999999
"""Two random draws with different results if chance decides."""


class _Variant(Shape):
    name: str
    enabled: bool
    payload: dict[str, Any] | None = None


class _Toggle(Shape):
    name: str
    enabled: bool = True
    variant: _Variant


class _Answer(Shape):
    toggles: list[_Toggle]


Variants = dict[str, str]
"""The variant of each flag that is on, in words."""
Evaluated = tuple[Context, Variants, Variants]
"""A context, and its results here with the lowest and the highest random draws."""


def prove_frontend(
    source: Source,
    token: SourceToken,
    here: ApiToken,
    proof: TokenProof,
    people: People,
    left_out: Collection[str],
) -> None:
    """Raises SourceError."""
    flags = read_flags_here(here)
    made = make_users([make_definitions(flags)], now=people.now, count=SAMPLE)
    contexts = [*people.explicit[: SAMPLE // 2], *made][:SAMPLE]
    queries = [_write_query(context, number) for number, context in enumerate(contexts)]

    def ask(query: Mapping[str, str]) -> Variants:
        raw = source.get(f"{PATH}?{urlencode(query)}", token=token.secret)
        return _read(read_shape(source.address, PATH, raw, _Answer))

    ours = _prepare(here)
    evaluated = _evaluate_here(ours, queries, people.now)
    answers = list(zip(queries, source.for_each(ask, queries), evaluated, strict=True))
    proof.left_out = sorted(left_out)
    proof.flags = len(flags.keys() - {*left_out})
    proof.note = f"{PATH} was asked for {len(queries)} users"
    names = sorted({name for _, there, (_, low, high) in answers for name in (*there, *low, *high)})
    for name in names:
        if name not in left_out:
            proof.differences += _compare(name, answers, FlagReasons(ours.snapshot, name))


def _write_query(context: Context, number: int) -> dict[str, str]:
    """Writes the query with ids, so that only a flag's own rollout is random, and an address, as servers do."""
    fields = {
        "sessionId": f"session-{number}",
        "remoteAddress": f"192.0.2.{number}",
        "appName": "proof",
        **context.fields,
    }
    for decided in ("environment", "currentTime"):  # determined by the token, and by the other server's clock
        fields.pop(decided, None)
    return {(field if field in TOP_LEVEL else f"properties[{field}]"): text for field, text in fields.items()}


class _Here(NamedTuple):
    snapshot: Snapshot
    prepared: Prepared


def _prepare(token: ApiToken) -> _Here:
    scope = read_token_scope(token, using=DEFAULT_DB_ALIAS)
    compiled = load_snapshot_at(scope.revisions, scope.environment)
    return _Here(compiled.snapshot, prepare(compiled, scope.revisions))


def _evaluate_here(here: _Here, queries: Collection[Mapping[str, str]], now: datetime) -> Iterator[Evaluated]:
    """Yields the frontend results for each query, with the lowest and the highest random draws."""
    for query in queries:
        fields = read_query_context(query)
        context = make_context(fields, environment=here.snapshot.environment, address="", now=now)
        yield context, _find(here.prepared, context, LOWEST), _find(here.prepared, context, HIGHEST)


def _find(prepared: Prepared, context: Context, drawn: float) -> Variants:
    toggles = prepared.toggles.find(context, lambda: drawn).active
    return _read(_Answer.model_validate_json(render_toggles(toggles)))


def _read(answer: _Answer) -> Variants:
    return {toggle.name: _describe(toggle.variant) for toggle in answer.toggles if toggle.enabled}


def _describe(variant: _Variant) -> str:
    if not variant.enabled:
        return "on"
    payload = (
        f" {orjson.dumps(variant.payload, option=orjson.OPT_SORT_KEYS).decode()}" if variant.payload else ""
    )
    return f"variant {variant.name}{payload}"


def _compare(
    name: str, answers: Collection[tuple[Any, Variants, Evaluated]], reasons: FlagReasons
) -> Iterator[Difference]:
    differing = [
        (query, context, there.get(name, "off"), low.get(name, "off"))
        for query, there, (context, low, high) in answers
        if low.get(name) == high.get(name) != there.get(name)
    ]
    if differing:
        query, context, there, here = differing[0]
        reason = f"{there} there, {here} here ({reasons.of(context)})"
        example = orjson.dumps(query).decode()
        yield Difference(name, reason, users=len(differing), of=len(answers), example=example)
