"""Writes the playground's answer as bytes, in the reference's format.

The parts of a flag that do not depend on the context are serialized once, when its definition is compiled
(`fragments`). All fragments are laid out once for a snapshot (`layout`). An answer is a copy of that list with the
values of this evaluation in their slots, joined: true and false, buckets, picked variants, reasons.

Fields that the reference does not have: `rollout` of a strategy (bucket, threshold, stickiness, and the hashed field
and value; the bucket is null if there was nothing to hash), `reason` of a flag, and `unsatisfiedDependencies`, the
names of the parents that are not in the required state.
"""

from __future__ import annotations

from io import BytesIO

from playground.engine.evaluator import Evaluation
from playground.engine.reasons import Reasons
from playground.engine.variants import NONE
from playground.response.fragments import FALSE, PICKED, TRUE, as_json, as_json_texts, write_results
from playground.response.snapshot import BETWEEN, ON, REASON, RESULT, VARIANT, VARIANTS, ResponseSnapshot

RESULTS = {True: TRUE, False: FALSE, None: b'"unknown"'}
ENDS = {result: b'],"result":%b},"reason":' % text for result, text in RESULTS.items()}
MET, UNMET = b'"hasUnsatisfiedDependency":false', b'"hasUnsatisfiedDependency":true'
NO_VARIANT = b'{"feature_enabled":true,"featureEnabled":true,"name":"disabled","enabled":false'
FEATURE_ENABLED = b',"feature_enabled":true'
JOINED = 50_000  # parts joined at once


def render_features(
    compiled: ResponseSnapshot, evaluation: Evaluation, *, before: bytes = b"", behind: bytes = b""
) -> bytes:
    """The `features` list of an answer: every flag of the evaluation, as one JSON array.

    Includes the surrounding text `before` and `behind`: an answer is megabytes, and is joined once instead of copied.
    """
    parts = _render_parts(compiled, evaluation)
    if not parts:
        return before + b"[]" + behind
    parts[0] = before + b"[" + parts[0][BETWEEN:]
    parts.append(b"}]" + behind)
    return join_parts(parts)


def join_parts(parts: list[bytes]) -> bytes:
    """Joins all parts. bytes.join() needs 80 more bytes for each: 120 MB for 100,000 flags."""
    if len(parts) <= JOINED:
        return b"".join(parts)
    whole = BytesIO()
    for start in range(0, len(parts), JOINED):
        whole.write(b"".join(parts[start : start + JOINED]))
    return whole.getvalue()


def render_each(compiled: ResponseSnapshot, evaluation: Evaluation) -> list[bytes]:
    """Every flag of an evaluation as a separate JSON object, in the snapshot's order."""
    layout = compiled.layout
    parts = _render_parts(compiled, evaluation)
    return [
        b"".join(parts[start:end])[BETWEEN:] + b"}"
        for start, end in zip(layout.starts, layout.ends, strict=True)
    ]


def _render_parts(compiled: ResponseSnapshot, evaluation: Evaluation) -> list[bytes]:
    """The parts of an answer; the brace that closes a flag is in the head of the next one."""
    assert evaluation.snapshot is compiled.snapshot
    result, layout = evaluation.result, compiled.layout
    parts = layout.write(result.bits)
    for slot, verdict in zip(layout.verdicts, result.verdicts, strict=True):
        parts[slot] = RESULTS[verdict]
    for slot, picks, pick in zip(layout.variants, layout.picks, result.picks, strict=True):
        if slot:
            parts[slot] = picks[pick]
    for stickiness, (positions, slots) in layout.buckets.items():
        ends = _BucketEnds(evaluation, stickiness)
        for slot, bucket in zip(slots, map(result.buckets.__getitem__, positions), strict=True):
            parts[slot] = ends[bucket]
    _render_segments(compiled, evaluation, parts)
    _render_flags(compiled, evaluation, parts)
    return parts


def _render_flags(compiled: ResponseSnapshot, evaluation: Evaluation, parts: list[bytes]) -> None:
    """Writes the text before and after the strategies of every flag."""
    layout = compiled.layout
    variants = layout.variants
    reasons = as_json_texts(Reasons(evaluation).all())
    for flag, outcome, reason, first, start, end in zip(
        compiled.flags, evaluation.outcomes, reasons, layout.first, layout.starts, layout.ends, strict=True
    ):
        result, on, decided, pick, _, _, unmet = outcome
        variant_slot = variants[first + decided] if decided != NONE else 0
        if variant_slot:
            parts[start + VARIANTS] = parts[variant_slot + 1]
        if on:
            parts[start] = ON
            if variant_slot:
                parts[start + VARIANT] = parts[variant_slot][len(PICKED) :] + FEATURE_ENABLED
            else:
                parts[start + VARIANT] = NO_VARIANT if pick == NONE else flag.picks[pick]
        parts[end - RESULT] = ENDS[result]
        parts[end - REASON] = reason
        if unmet:
            parts[start] = parts[start].replace(MET, UNMET)
            names = as_json([parent.name for parent, _ in unmet])
            parts[end - REASON] += b',"unsatisfiedDependencies":' + names


class _BucketEnds(dict[int, bytes]):
    """The end of a rollout and its strategy, by bucket, with the field and value that were hashed, if any."""

    def __init__(self, evaluation: Evaluation, stickiness: str) -> None:
        super().__init__()
        hashed = None if stickiness == "random" else evaluation.sticky(stickiness)
        self._end = (
            b',"field":%b,"value":%b}}' % (as_json(hashed[0]), as_json(hashed[1])) if hashed else b"}}"
        )

    def __missing__(self, bucket: int) -> bytes:
        text = self[bucket] = (b"%d%b" % (bucket, self._end)) if bucket else b"null" + self._end
        return text


def _render_segments(compiled: ResponseSnapshot, evaluation: Evaluation, parts: list[bytes]) -> None:
    rendered: dict[int, bytes] = {}
    for slot, strategy in compiled.layout.segments:
        texts = []
        for position in strategy.segments:
            if position not in rendered:
                rendered[position] = _write_segment(compiled, evaluation, position)
            texts.append(rendered[position])
        texts += [
            b'{"name":"","id":%b,"result":false,"constraints":[]}' % as_json(missing)
            for missing in strategy.missing_segments
        ]
        parts[slot] = b",".join(texts)


def _write_segment(compiled: ResponseSnapshot, evaluation: Evaluation, position: int) -> bytes:
    fragments = compiled.segments[position]
    constraints = write_results(fragments.cuts, evaluation.result.segment_bits[position])
    return b"%b%b%b}" % (constraints, fragments.end, RESULTS[evaluation.holds(position)])
