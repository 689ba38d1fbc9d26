"""The playground's answer in the reference's shape, as bytes.

Everything of a flag that does not depend on the context is serialised once, when its definition is compiled
(wire_templates). An answer is joined from those pieces and the few that differ: true and false, buckets, the
chosen variant, the reason.

Beyond the reference's keys, in fields of their own: per strategy `rollout` (bucket, threshold, stickiness,
and the field and value that were hashed) where a bucket was computed; per flag `reason`, and
`unsatisfiedDependencies` with the names of parents that are not as needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from playground.engine.evaluator import Evaluation, FlagOutcome, StrategyOutcome
from playground.engine.reasons import Reasons
from playground.engine.snapshot import CompiledFlag, Snapshot, Templates, compile_snapshot
from playground.engine.strategies import CompiledStrategy
from playground.engine.variants import NONE
from playground.wire_templates import (
    Echoes,
    FlagTemplate,
    StrategyTemplate,
    as_json,
    flag_template,
    segment_template,
    template_size,
)

TRUE, FALSE = b"true", b"false"
RESULTS = {True: TRUE, False: FALSE, None: b'"unknown"'}
VERDICTS = {verdict: b'{"enabled":%b' % text for verdict, text in RESULTS.items()}
BUCKETS = [b',"rollout":{"bucket":%d' % bucket for bucket in range(101)]
HEADS = {
    (
        on,
        enabled,
        unmet,
    ): b'{"isEnabled":%b,"isEnabledInCurrentEnvironment":%b,"hasUnsatisfiedDependency":%b,"variant":'
    % (RESULTS[on], RESULTS[enabled], RESULTS[unmet])
    for on in (True, False)
    for enabled in (True, False)
    for unmet in (True, False)
}
OFF_VARIANT = b'{"name":"disabled","enabled":false,"feature_enabled":false}'
NO_VARIANT = b'{"feature_enabled":true,"featureEnabled":true,"name":"disabled","enabled":false}'


def compile_playground(
    flags: Iterable[Mapping[str, Any]], segments: Mapping[int, Mapping[str, Any]], *, environment: str
) -> Snapshot:
    """A snapshot whose flags can be rendered. `environment` stands in the links as it is given here."""
    templates = Templates(
        flag=lambda document, flag: flag_template(document, flag, environment),
        segment=segment_template,
        size=template_size,
    )
    return compile_snapshot(flags, segments, environment=environment, templates=templates)


def render_features(evaluation: Evaluation) -> bytes:
    """The `features` list of an answer: every flag of the evaluation, as one JSON array."""
    return b"[" + b",".join(render_each(evaluation)) + b"]"


def render_each(evaluation: Evaluation) -> list[bytes]:
    """Every flag of an evaluation as a JSON object of its own, in the snapshot's order."""
    renderer = _Renderer(evaluation)
    return [b"".join(renderer.flag(flag, outcome)) for flag, outcome in evaluation.pairs()]


class _Renderer:
    """Renders the flags of one evaluation; what several have in common is serialised once."""

    __slots__ = ("_evaluation", "_identifiers", "_reasons", "_segments")

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._reasons = Reasons(evaluation)
        self._segments: dict[int, bytes] = {}
        self._identifiers: dict[str, bytes] = {}

    def flag(self, flag: CompiledFlag, outcome: FlagOutcome) -> list[bytes]:
        """The pieces of one flag."""
        template: FlagTemplate = flag.template
        variant, variants = _variant(template, outcome)
        parts = [
            HEADS[outcome.on, flag.enabled, bool(outcome.unmet)],
            variant,
            variants,
            template.names,
            RESULTS[outcome.result],
        ]
        if flag.strategies:
            for strategy, pieces, found in zip(
                flag.strategies, template.strategies, outcome.strategies, strict=True
            ):
                self._strategy(parts, strategy, pieces, found)
        else:
            parts.append(b',"data":[')
        parts += (b']},"reason":', as_json(self._reasons.flag(flag, outcome)))
        if outcome.unmet:
            names = [unmet.parent.name for unmet in outcome.unmet]
            parts += (b',"unsatisfiedDependencies":', as_json(names))
        parts.append(b"}")
        return parts

    def _strategy(
        self,
        parts: list[bytes],
        strategy: CompiledStrategy,
        template: StrategyTemplate,
        outcome: StrategyOutcome,
    ) -> None:
        verdict, bits, bucket, pick, _ = outcome
        parts += (template.head, VERDICTS[verdict], template.status)
        if pick != NONE:
            parts += (template.picks[pick], template.variants)
        for bit, echo in template.constraints:
            parts += (echo, TRUE if bits & bit else FALSE)
        parts.append(template.tail)
        if template.links:
            parts += (self._segments_of(strategy), template.links)
        if bucket and strategy.rollout is not None:
            parts += (BUCKETS[bucket], template.threshold, self._identifier(strategy.rollout.stickiness))
        parts.append(b"}")

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
            result = TRUE if bits == segment.all_hold else FALSE
            template = segment.template
            rendered = template.head + result + _echoed(template.constraints, bits) + b"}"
            self._segments[position] = rendered
        return rendered

    def _identifier(self, stickiness: str) -> bytes:
        """The end of a rollout: the field and the value that were hashed, if any."""
        rendered = self._identifiers.get(stickiness)
        if rendered is None:
            found = None if stickiness == "random" else self._evaluation.sticky(stickiness)
            rendered = b"}"
            if found is not None:
                rendered = b',"field":%b,"value":%b}' % (as_json(found[0]), as_json(found[1]))
            self._identifiers[stickiness] = rendered
        return rendered


def _echoed(constraints: Echoes, bits: int) -> bytes:
    if not constraints:
        return b',"constraints":[]'
    return b"".join(echo + (TRUE if bits & bit else FALSE) for bit, echo in constraints) + b"}]"


def _variant(template: FlagTemplate, outcome: FlagOutcome) -> tuple[bytes, bytes]:
    """The chosen variant, and the variants it was chosen from."""
    variants = template.variants
    chosen = NO_VARIANT
    if outcome.decided != NONE:
        pick = outcome.strategies[outcome.decided].pick
        if pick != NONE:
            strategy = template.strategies[outcome.decided]
            chosen, variants = strategy.chosen[pick], strategy.variants
    if not outcome.on:
        return OFF_VARIANT, variants
    return template.chosen[outcome.pick] if outcome.pick != NONE else chosen, variants
