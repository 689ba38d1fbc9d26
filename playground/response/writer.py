"""The playground's answer in the reference's shape, as bytes.

Everything of a flag that does not depend on the context is serialised once, when its definition is compiled
(wire_templates). All pieces of an answer are laid out once for a snapshot (wire_layout); an answer is a copy of
them, with the few that differ put in their slots, joined: true and false, buckets, the chosen variant, the reason.

Beyond the reference's keys, in fields of their own: per strategy `rollout` (bucket, threshold, stickiness,
and the field and value that were hashed; the bucket is null where there was nothing to hash); per flag `reason`, and
`unsatisfiedDependencies` with the names of parents that are not as needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orjson import dumps

from playground.engine.compilation import Known, compile_snapshot
from playground.engine.evaluator import Evaluation
from playground.engine.reasons import Reasons
from playground.engine.snapshot import Snapshot, Templates
from playground.engine.variants import NONE
from playground.response.fragments import (
    FALSE,
    PICKED,
    TRUE,
    as_json,
    flag_template,
    segment_template,
    template_size,
)
from playground.response.layout import BETWEEN, ON, REASON, RESULT, VARIANT, VARIANTS, Layout

RESULTS = {True: TRUE, False: FALSE, None: b'"unknown"'}
ENDS = {result: b'],"result":%b},"reason":' % text for result, text in RESULTS.items()}
MET, UNMET = b'"hasUnsatisfiedDependency":false', b'"hasUnsatisfiedDependency":true'
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
    parts = _rendered(evaluation, layout_of(evaluation.snapshot))
    if not parts:
        return before + b"[]" + behind
    parts[0] = before + b"[" + parts[0][BETWEEN:]
    parts.append(b"}]" + behind)
    return b"".join(parts)


def render_each(evaluation: Evaluation) -> list[bytes]:
    """Every flag of an evaluation as a JSON object of its own, in the snapshot's order."""
    layout = layout_of(evaluation.snapshot)
    parts = _rendered(evaluation, layout)
    return [
        b"".join(parts[start:end])[BETWEEN:] + b"}"
        for start, end in zip(layout.starts, layout.ends, strict=True)
    ]


def layout_of(snapshot: Snapshot) -> Layout:
    """The layout of a snapshot's answers, made with the first of them."""
    layout: Layout | None = snapshot.layout
    if layout is None:
        layout = snapshot.layout = Layout(snapshot.flags)
    return layout


def _rendered(evaluation: Evaluation, layout: Layout) -> list[bytes]:
    """The pieces of an answer; every flag ends where the brace that closes it stands in the next one's head."""
    found = evaluation.found
    parts = layout.written_for(found.bits)
    for slot, verdict in zip(layout.verdicts, found.verdicts, strict=True):
        parts[slot] = RESULTS[verdict]
    for slot, picks, pick in zip(layout.variants, layout.picks, found.picks, strict=True):
        if slot:
            parts[slot] = picks[pick]
    for stickiness, (positions, slots) in layout.buckets.items():
        ends = _BucketEnds(evaluation, stickiness)
        for slot, bucket in zip(slots, map(found.buckets.__getitem__, positions), strict=True):
            parts[slot] = ends[bucket]
    _render_segments(evaluation, layout, parts)
    _render_flags(evaluation, layout, parts)
    return parts


def _render_flags(evaluation: Evaluation, layout: Layout, parts: list[bytes]) -> None:
    """Of every flag what stands before its strategies, and behind them."""
    variants = layout.variants
    flags, outcomes, reasons = evaluation.snapshot.flags, evaluation.outcomes, Reasons(evaluation).all()
    for flag, outcome, reason, first, start, end in zip(
        flags, outcomes, reasons, layout.first, layout.starts, layout.ends, strict=True
    ):
        result, on, decided, pick, _, _, unmet = outcome
        chosen = variants[first + decided] if decided != NONE else 0
        if chosen:
            parts[start + VARIANTS] = parts[chosen + 1]
        if on:
            parts[start] = ON
            if chosen:
                parts[start + VARIANT] = parts[chosen][len(PICKED) :] + FEATURE_ENABLED
            else:
                parts[start + VARIANT] = NO_VARIANT if pick == NONE else flag.template.picks[pick]
        parts[end - RESULT] = ENDS[result]
        parts[end - REASON] = dumps(reason)
        if unmet:
            parts[start] = parts[start].replace(MET, UNMET)
            names = as_json([parent.name for parent, _ in unmet])
            parts[end - REASON] += b',"unsatisfiedDependencies":' + names


class _BucketEnds(dict[int, bytes]):
    """By bucket the end of a rollout and its strategy, with the field and value that were hashed, if any."""

    def __init__(self, evaluation: Evaluation, stickiness: str) -> None:
        super().__init__()
        found = None if stickiness == "random" else evaluation.sticky(stickiness)
        self._end = b',"field":%b,"value":%b}}' % (as_json(found[0]), as_json(found[1])) if found else b"}}"

    def __missing__(self, bucket: int) -> bytes:
        text = self[bucket] = (b"%d%b" % (bucket, self._end)) if bucket else b"null" + self._end
        return text


def _render_segments(evaluation: Evaluation, layout: Layout, parts: list[bytes]) -> None:
    rendered: dict[int, bytes] = {}
    for slot, strategy in layout.segments:
        shown = []
        for position in strategy.segments:
            if position not in rendered:
                rendered[position] = _segment(evaluation, position)
            shown.append(rendered[position])
        shown += [
            b'{"name":"","id":%b,"result":false,"constraints":[]}' % as_json(missing)
            for missing in strategy.missing_segments
        ]
        parts[slot] = b",".join(shown)


def _segment(evaluation: Evaluation, position: int) -> bytes:
    segment, bits = evaluation.snapshot.segments[position], evaluation.segment_bits[position]
    return b"%b%b}" % (segment.template.with_results(bits), RESULTS[bits == segment.conditions.all_hold])
