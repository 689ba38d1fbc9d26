"""The playground's answer in the reference's shape, as bytes.

Everything of a flag that does not depend on the context is serialised once, when its definition is compiled
(wire_templates). An answer is joined from those pieces and the few that differ: true and false, buckets, the
chosen variant, the reason.

Beyond the reference's keys, in fields of their own: per strategy `rollout` (bucket, threshold, stickiness,
and the field and value that were hashed; the bucket is null where there was nothing to hash); per flag `reason`, and
`unsatisfiedDependencies` with the names of parents that are not as needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orjson import dumps

from playground.engine.compilation import Known, compile_snapshot
from playground.engine.evaluator import PICK, Evaluation, PlainOutcome, StrategyOutcome
from playground.engine.reasons import Reasons
from playground.engine.snapshot import CompiledFlag, Snapshot, Templates
from playground.engine.strategies import CompiledStrategy
from playground.engine.variants import NONE
from playground.wire_templates import (
    FALSE,
    TRUE,
    FlagTemplate,
    Opening,
    as_json,
    flag_template,
    segment_template,
    template_size,
)

RESULTS = {True: TRUE, False: FALSE, None: b'"unknown"'}
ENDS = {result: b'],"result":%b},"reason":' % text for result, text in RESULTS.items()}
BUCKETS = [b"null", *(b"%d" % bucket for bucket in range(1, 101))]
HEADS = [
    [
        b',{"isEnabled":%b,"isEnabledInCurrentEnvironment":%b' % (RESULTS[on], RESULTS[enabled])
        + b',"hasUnsatisfiedDependency":false,"variant":'
        for enabled in (False, True)
    ]
    for on in (False, True)
]
"""By whether the flag is on, and whether it is enabled in the environment. None of its parents is unmet."""
MET, UNMET = b'"hasUnsatisfiedDependency":false', b'"hasUnsatisfiedDependency":true'
OFF_VARIANT = b'{"name":"disabled","enabled":false,"feature_enabled":false'
NO_VARIANT = b'{"feature_enabled":true,"featureEnabled":true,"name":"disabled","enabled":false'
FEATURE_ENABLED = b',"feature_enabled":true'


def compile_playground(
    flags: Iterable[Mapping[str, Any]],
    segments: Mapping[int, Mapping[str, Any]],
    *,
    environment: str,
    known: Known | None = None,
) -> Snapshot:
    """A snapshot whose flags can be rendered. `environment` stands in the links as it is given here."""
    templates = Templates(
        flag=lambda document, flag: flag_template(document, flag, environment),
        segment=segment_template,
        size=template_size,
    )
    return compile_snapshot(flags, segments, environment=environment, templates=templates, known=known)


def render_features(evaluation: Evaluation, *, before: bytes = b"", behind: bytes = b"") -> bytes:
    """The `features` list of an answer: every flag of the evaluation, as one JSON array.

    `before` and `behind` stand around it: an answer is megabytes, and joined once instead of copied again.
    """
    parts: list[bytes] = []
    renderer = _Renderer(evaluation, parts)
    for flag, outcome in zip(evaluation.snapshot.flags, evaluation.outcomes, strict=True):
        renderer.flag(flag, outcome)
    if not parts:
        return before + b"[]" + behind
    parts[0] = before + b"[" + parts[0][1:]
    parts.append(b"]" + behind)
    return b"".join(parts)


def render_each(evaluation: Evaluation) -> list[bytes]:
    """Every flag of an evaluation as a JSON object of its own, in the snapshot's order."""
    parts: list[bytes] = []
    renderer = _Renderer(evaluation, parts)
    rendered = []
    for flag, outcome in zip(evaluation.snapshot.flags, evaluation.outcomes, strict=True):
        renderer.flag(flag, outcome)
        rendered.append(b"".join(parts)[1:])
        parts.clear()
    return rendered


def _opening(template: FlagTemplate, opening: Opening, *, enabled: bool) -> bytes:
    """A flag up to its strategies."""
    on, decided, chosen, pick, unmet = opening
    head = HEADS[on][enabled]
    variants = template.variants
    picked = NO_VARIANT if on else OFF_VARIANT
    if chosen != NONE:
        deciding = template.strategies[decided][1]
        variants = deciding.variants()
        picked = deciding.picks[chosen] + FEATURE_ENABLED if on else OFF_VARIANT
    elif pick != NONE:
        picked = template.picks[pick]
    return b"".join((head.replace(MET, UNMET) if unmet else head, picked, variants, template.names))


class _Identifiers(dict[str, bytes]):
    """Per stickiness the end of a rollout and its strategy: the field and value that were hashed, if any."""

    def __init__(self, evaluation: Evaluation) -> None:
        super().__init__()
        self._evaluation = evaluation

    def __missing__(self, stickiness: str) -> bytes:
        found = None if stickiness == "random" else self._evaluation.sticky(stickiness)
        shown = b',"field":%b,"value":%b}}' % (as_json(found[0]), as_json(found[1])) if found else b"}}"
        self[stickiness] = shown
        return shown


class _Renderer:
    """Adds the pieces of flags to `parts`; what flags have in common is serialised once an evaluation.

    Every flag starts with a comma.
    """

    __slots__ = ("_evaluation", "_identifiers", "_parts", "_reason", "_segments")

    def __init__(self, evaluation: Evaluation, parts: list[bytes]) -> None:
        self._evaluation = evaluation
        self._parts = parts
        self._reason = Reasons(evaluation).flag
        self._segments: dict[int, bytes] = {}
        self._identifiers = _Identifiers(evaluation)

    def flag(self, flag: CompiledFlag, outcome: PlainOutcome) -> None:
        template: FlagTemplate = flag.template
        result, on, decided, pick, _, strategies, unmet = outcome
        parts = self._parts
        chosen = strategies[decided][PICK] if decided != NONE else NONE
        opening = (on, decided, chosen, pick, unmet != ())
        last, text = template.last
        if last != opening:
            text = _opening(template, opening, enabled=flag.enabled)
            template.last = opening, text
        parts.append(text)
        self._strategies(template, strategies)
        parts.append(ENDS[result])
        parts.append(dumps(self._reason(flag, outcome)))
        if unmet:
            names = as_json([parent.name for parent, _ in unmet])
            parts.append(b',"unsatisfiedDependencies":' + names)
        parts.append(b"}")

    def _strategies(self, template: FlagTemplate, outcomes: list[StrategyOutcome]) -> None:
        parts = self._parts
        position = 0  # counted: zip and enumerate take a tenth of the whole
        for strategy, pieces in template.strategies:
            verdict, bits, bucket, pick, _ = outcomes[position]
            position += 1  # noqa: SIM113
            last_verdict, last_bits, last_pick, text = pieces.last
            if bits != last_bits or verdict is not last_verdict or pick != last_pick:
                text = pieces.write(verdict, bits, pick)
            parts.append(text)
            if pieces.links:
                parts.append(self._segments_of(strategy))
                parts.append(pieces.links)
            if strategy.rollout is not None:
                parts.append(BUCKETS[bucket])
                parts.append(self._identifiers[strategy.rollout.stickiness])

    def _segments_of(self, strategy: CompiledStrategy) -> bytes:
        shown = [self._segment(position) for position in strategy.segments]
        shown += [
            b'{"name":"","id":%b,"result":false,"constraints":[]}' % as_json(missing)
            for missing in strategy.missing_segments
        ]
        return b",".join(shown)

    def _segment(self, position: int) -> bytes:
        rendered = self._segments.get(position)
        if rendered is None:
            segment = self._evaluation.snapshot.segments[position]
            bits = self._evaluation.segment_bits[position]
            result = RESULTS[bits == segment.conditions.all_hold]
            rendered = b"%b%b}" % (b"".join(segment.template.pieces(bits)), result)
            self._segments[position] = rendered
        return rendered
