"""Writes the reason of each flag's result in one sentence, from the outcomes of an evaluation."""

from __future__ import annotations

from collections.abc import Iterator

from playground.engine import sentences
from playground.engine.batch import list_constraints
from playground.engine.constraints import Conditions
from playground.engine.evaluator import Evaluation
from playground.engine.flags import CompiledFlag
from playground.engine.operators import UNDECIDABLE
from playground.engine.outcomes import (
    BITS,
    BUCKET,
    NO_STRATEGIES,
    PARENT,
    SWITCHED_OFF,
    UNREADABLE,
    VERDICT,
    ParentProblem,
    PlainOutcome,
    StrategyOutcome,
    Unmet,
    find_cause,
    find_deciding_parent,
)
from playground.engine.strategies import CompiledStrategy, Mode, Rollout
from playground.engine.variants import NONE


class _Values(dict[str, str]):
    """By field: "country is NO" or "country was not given", created on first use."""

    def __init__(self, evaluation: Evaluation) -> None:
        super().__init__()
        self._evaluation = evaluation

    def __missing__(self, field: str) -> str:
        phrase = self[field] = sentences.value_phrase(field, self._evaluation.context.lookup(field))
        return phrase


class _Phrases(dict[tuple[str, ...], tuple[str, ...]]):
    """The values of several fields, for the many conditions that share them."""

    def __init__(self, values: dict[str, str]) -> None:
        super().__init__()
        self._values = values

    def __missing__(self, fields: tuple[str, ...]) -> tuple[str, ...]:
        phrases = self[fields] = tuple(self._values[field] for field in fields)
        return phrases


class _Subjects(dict[str, str | None]):
    """By stickiness: "userId 42", which was hashed; None if the context has nothing to hash."""

    def __init__(self, evaluation: Evaluation) -> None:
        super().__init__()
        self._evaluation = evaluation

    def __missing__(self, stickiness: str) -> str | None:
        identifier = None if stickiness == "random" else self._evaluation.sticky(stickiness)
        phrase = self[stickiness] = sentences.subject_phrase(*identifier) if identifier else None
        return phrase


class _Placed(dict[int, str]):
    """Texts by bucket: "userId 42 is in bucket 53"."""

    def __init__(self, subject: str) -> None:
        super().__init__()
        self._subject = subject

    def __missing__(self, bucket: int) -> str:
        text = self[bucket] = sentences.describe_bucket(self._subject, bucket)
        return text


class _Places(dict[str, _Placed | None]):
    """Phrases for buckets, by stickiness; None if the context has nothing to hash."""

    def __init__(self, subjects: dict[str, str | None]) -> None:
        super().__init__()
        self._subjects = subjects

    def __missing__(self, stickiness: str) -> _Placed | None:
        subject = self._subjects[stickiness]
        placed = self[stickiness] = None if subject is None else _Placed(subject)
        return placed


class Reasons:
    """The reasons of one evaluation. Phrases that several flags share are built once."""

    __slots__ = ("_evaluation", "_phrases", "_places", "_segments", "subjects", "values")

    def __init__(
        self,
        evaluation: Evaluation,
        values: dict[str, str] | None = None,
        subjects: dict[str, str | None] | None = None,
    ) -> None:
        """`values` by field and `subjects` by stickiness are other phrases than those of the evaluation's context."""
        self.values = _Values(evaluation) if values is None else values
        self.subjects = _Subjects(evaluation) if subjects is None else subjects
        self._evaluation = evaluation
        self._phrases = _Phrases(self.values)
        self._places = _Places(self.subjects)
        self._segments: dict[int, str] = {}

    def all(self) -> Iterator[str]:
        """The reason of each flag's result, in the order of the snapshot."""
        return map(self.flag, self._evaluation.snapshot.flags, self._evaluation.outcomes)

    def flag(self, flag: CompiledFlag, outcome: PlainOutcome) -> str:
        """The reason of a flag's result."""
        result, _, decided, _, _, outcomes, unmet = outcome
        if flag.enabled and flag.fault is None:  # the usual cases
            if result is False:
                return self._explain_none_passed(flag, outcomes)
            if decided != NONE and not unmet:
                return self.passed(flag.strategies[decided], outcomes[decided])
        cause = find_cause(flag, outcome)
        if cause is SWITCHED_OFF:
            return sentences.switched_off(self._evaluation.snapshot.environment)
        if cause is UNREADABLE:
            return sentences.rejected(flag.fault or "")
        if cause is PARENT:
            return self.parent(find_deciding_parent(outcome))
        if cause is NO_STRATEGIES:
            return sentences.NO_STRATEGIES
        return next(
            self._explain_only_sdk(strategy)
            for strategy, its_outcome in zip(flag.strategies, outcomes, strict=True)
            if strategy.counts and its_outcome[VERDICT] is None
        )

    def _explain_none_passed(self, flag: CompiledFlag, outcomes: list[StrategyOutcome]) -> str:
        failed = [
            self.failed(strategy, outcome)
            for strategy, outcome in zip(flag.strategies, outcomes, strict=True)
            if strategy.counts
        ]
        if not failed:
            return sentences.ALL_DISABLED
        return failed[0] if len(failed) == 1 else sentences.strategies_together(failed)

    def strategy(self, strategy: CompiledStrategy, outcome: StrategyOutcome) -> str:
        """The reason of a strategy's own result."""
        if outcome[VERDICT]:
            return self.passed(strategy, outcome)
        if outcome[VERDICT] is None:
            return (
                sentences.NOT_EVALUATED
                if strategy.mode is Mode.DISABLED
                else self._explain_only_sdk(strategy)
            )
        return self.failed(strategy, outcome)

    def _explain_only_sdk(self, strategy: CompiledStrategy) -> str:
        """Explains why only an SDK can tell whether a strategy is on."""
        if strategy.mode is Mode.ONLY_SDK:
            return strategy.note
        evaluation = self._evaluation
        constraint = next(
            constraint
            for constraint in list_constraints(strategy, evaluation.snapshot.segments)
            if evaluation.values[constraint.column] is UNDECIDABLE
        )
        return constraint.undecidable or sentences.undecidable_text(constraint.field)

    def passed(self, strategy: CompiledStrategy, outcome: StrategyOutcome) -> str:
        """Explains why a strategy is on."""
        conditions, rollout = strategy.conditions, strategy.rollout
        text = conditions.met % self._phrases[conditions.fields] if conditions.all_hold else ""
        for position in strategy.segments:
            inside = sentences.in_segment(self._evaluation.snapshot.segments[position].name)
            text = f"{text}; {inside}" if text else sentences.capitalize(inside)
        if rollout is None:
            return text or sentences.FOR_EVERYONE
        sentence = self.rollout(rollout, outcome[BUCKET])
        return f"{text}; {sentence}" if text else sentence

    def failed(self, strategy: CompiledStrategy, outcome: StrategyOutcome) -> str:
        """Explains why a strategy is off."""
        _, bits, bucket, _, _ = outcome
        text = self._describe_unmet(strategy, bits)
        if text:
            return text
        rollout = strategy.rollout
        if rollout is None:
            return strategy.note
        sentence = self.rollout(rollout, bucket)
        has_conditions = bits or strategy.segments
        return (
            sentences.ALL_HOLD + sentence
            if has_conditions and self.subjects[rollout.stickiness]
            else sentence
        )

    def rollout(self, rollout: Rollout, bucket: int) -> str:
        """The bucket, and whether it is inside the rollout."""
        placed, threshold = self._places[rollout.stickiness], rollout.threshold
        if placed is not None:
            ends = sentences.INSIDE if bucket <= threshold else sentences.OUTSIDE
            return placed[bucket] + ends[threshold]
        if rollout.draws:
            return sentences.random_rollout(threshold)
        return sentences.no_identifier(rollout.stickiness)

    def _describe_unmet(self, strategy: CompiledStrategy, bits: int) -> str:
        """The conditions of a strategy that do not hold, its segments among them; "" if all do."""
        text = (
            "" if bits == strategy.all_hold else self._describe_unmet_constraints(strategy.conditions, bits)
        )
        if not strategy.segments and not strategy.missing_segments:
            return text
        parts = [text] if text else []
        unmet = (position for position in strategy.segments if not self._evaluation.holds(position))
        parts += map(self._describe_unmet_segment, unmet)
        parts += map(sentences.missing_segment, strategy.missing_segments)
        if parts and not text:
            parts[0] = sentences.capitalize(parts[0])
        return "; ".join(parts)

    def _describe_unmet_constraints(self, conditions: Conditions, bits: int) -> str:
        text = ""
        for phrase, end in zip(self._phrases[conditions.fields], conditions.unmet, strict=True):
            if not bits & 1:
                text = f"{text}; {phrase}{end}" if text else phrase + end
            bits >>= 1
        return text

    def _describe_unmet_segment(self, position: int) -> str:
        phrase = self._segments.get(position)
        if phrase is None:
            segment = self._evaluation.snapshot.segments[position]
            why = self._describe_unmet_constraints(
                segment.conditions, self._evaluation.result.segment_bits[position]
            )
            phrase = self._segments[position] = sentences.outside_segment(segment.name, why)
        return phrase

    def parent(self, unmet: Unmet) -> str:
        """Explains why a parent keeps its child from being on."""
        parent, problem = unmet
        if problem is ParentProblem.MISSING:
            return sentences.parent_missing(parent.name)
        if problem is ParentProblem.CHAINED:
            return sentences.parent_chained(parent.name)
        if problem is ParentProblem.UNKNOWN:
            return sentences.parent_unknown(parent.name)
        if problem is ParentProblem.ON:
            return sentences.parent_on(parent.name)
        if problem is ParentProblem.VARIANT:
            return self._describe_parent_variant(unmet)
        return sentences.parent_off(parent.name, self._describe_parent_detail(parent.name))

    def _describe_parent_variant(self, unmet: Unmet) -> str:
        evaluation = self._evaluation
        flag, outcome = evaluation.pair(unmet.parent.name)
        name = evaluation.variant(flag, outcome) or "none"
        return sentences.parent_variant(unmet.parent.name, name, unmet.parent.variants)

    def _describe_parent_detail(self, name: str) -> str:
        """Describes the reason in brackets after "which is off here": the bucket if a single rollout decided, or ""."""
        flag, outcome = self._evaluation.pair(name)
        if not flag.enabled:
            return sentences.SWITCHED_OFF_DETAIL
        if flag.fault is not None or len(flag.strategies) != 1:
            return ""
        strategy, strategy_outcome = flag.strategies[0], outcome.strategies[0]
        if (
            strategy.rollout is None
            or not strategy_outcome[BUCKET]
            or self._describe_unmet(strategy, strategy_outcome[BITS])
        ):
            return ""
        return sentences.bucket_detail(strategy_outcome[BUCKET], strategy.rollout.threshold)
