"""The reason of a flag's result: one sentence, from the outcomes that the evaluation kept."""

from __future__ import annotations

from playground.engine import sentences
from playground.engine.constraints import CompiledConstraint
from playground.engine.dependencies import Problem, Unmet
from playground.engine.evaluator import Evaluation, FlagOutcome, StrategyOutcome
from playground.engine.snapshot import CompiledFlag
from playground.engine.strategies import CompiledStrategy, Mode, Rollout
from playground.engine.variants import NONE


class Reasons:
    """Gives the reasons of one evaluation; what several flags have in common is worded once."""

    __slots__ = ("_evaluation", "_segments", "_subjects", "_values")

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._values: dict[str, str] = {}
        self._subjects: dict[str, str | None] = {}
        self._segments: dict[int, str] = {}

    def value(self, field: str) -> str:
        """ "country is NO" or "country was not given"."""
        phrase = self._values.get(field)
        if phrase is None:
            text = self._evaluation.context.lookup(field)
            phrase = self._values[field] = sentences.value_phrase(field, text)
        return phrase

    def subject(self, stickiness: str) -> str | None:
        """ "userId 42": who was put into a bucket, None if it was drawn."""
        if stickiness not in self._subjects:
            found = None if stickiness == "random" else self._evaluation.sticky(stickiness)
            self._subjects[stickiness] = sentences.subject_phrase(*found) if found else None
        return self._subjects[stickiness]

    def flag(self, flag: CompiledFlag, outcome: FlagOutcome) -> str:
        """Why a flag has its result."""
        if not flag.enabled:
            return sentences.switched_off(self._evaluation.snapshot.environment)
        if flag.fault is not None:
            return sentences.rejected(flag.fault)
        if outcome.unmet and outcome.result is not False:
            return self.parent(outcome.unmet[0])
        if outcome.decided != NONE:
            decided = outcome.decided
            return self.passed(flag.strategies[decided], outcome.strategies[decided])
        if not flag.strategies:
            return sentences.NO_STRATEGIES
        return self._not_passed(flag, outcome)

    def _not_passed(self, flag: CompiledFlag, outcome: FlagOutcome) -> str:
        pairs = [
            (strategy, found)
            for strategy, found in zip(flag.strategies, outcome.strategies, strict=True)
            if strategy.counts
        ]
        if not pairs:
            return sentences.ALL_DISABLED
        if outcome.result is None:
            return next(strategy.note for strategy, found in pairs if found.verdict is None)
        if len(pairs) == 1:
            return self.failed(*pairs[0])
        shown = [self.failed(*pair) for pair in pairs[: sentences.SHOWN_STRATEGIES]]
        return sentences.strategies_together(shown, len(pairs))

    def passed(self, strategy: CompiledStrategy, outcome: StrategyOutcome) -> str:
        """Why a strategy is on."""
        parts = [sentences.met_constraint(self.value(c.field), c.met) for c in strategy.constraints]
        parts += [self._met_segment(position) for position in strategy.segments]
        if strategy.rollout is not None:
            parts.append(self.rollout(strategy.rollout, outcome.bucket))
        return sentences.together(parts) if parts else sentences.FOR_EVERYONE

    def strategy(self, strategy: CompiledStrategy, outcome: StrategyOutcome) -> str:
        """Why a strategy has its own result."""
        if outcome.verdict:
            return self.passed(strategy, outcome)
        if outcome.verdict is None:
            return strategy.note if strategy.mode is Mode.ONLY_SDK else sentences.NOT_EVALUATED
        return self.failed(strategy, outcome)

    def rollout(self, rollout: Rollout, bucket: int) -> str:
        """Where an identifier fell, and what that means."""
        subject = self.subject(rollout.stickiness)
        if subject is None:
            if rollout.draws:
                return sentences.random_rollout(rollout.threshold)
            return sentences.no_identifier(rollout.stickiness)
        if 0 < bucket <= rollout.threshold:
            return sentences.rollout_inside(subject, bucket, rollout.threshold)
        return sentences.rollout_outside(subject, bucket, rollout.threshold)

    def failed(self, strategy: CompiledStrategy, outcome: StrategyOutcome) -> str:
        """Why a strategy is off."""
        parts = self._failed_conditions(strategy, outcome)
        if parts:
            return sentences.together(parts)
        if strategy.note or strategy.rollout is None:
            sentence = strategy.note
        else:
            sentence = self.rollout(strategy.rollout, outcome.bucket)
        has_conditions = strategy.constraints or strategy.segments
        return sentences.after_conditions(sentence) if has_conditions else sentence

    def _failed_conditions(self, strategy: CompiledStrategy, outcome: StrategyOutcome) -> list[str]:
        bits = outcome.bits
        parts = []
        if bits != strategy.all_hold:
            parts = self._failed_constraints(strategy.constraints, bits)
        for position in strategy.segments:
            segment = self._evaluation.snapshot.segments[position]
            if self._evaluation.segment_bits[position] != segment.all_hold:
                parts.append(self._unmet_segment(position))
        parts += [sentences.missing_segment(segment) for segment in strategy.missing_segments]
        return parts

    def _failed_constraints(self, constraints: tuple[CompiledConstraint, ...], bits: int) -> list[str]:
        return [
            sentences.failed_constraint(self.value(constraint.field), constraint.need)
            for index, constraint in enumerate(constraints)
            if not bits >> index & 1
        ]

    def _met_segment(self, position: int) -> str:
        return sentences.in_segment(self._evaluation.snapshot.segments[position].name)

    def _unmet_segment(self, position: int) -> str:
        phrase = self._segments.get(position)
        if phrase is None:
            segment = self._evaluation.snapshot.segments[position]
            why = sentences.together(
                self._failed_constraints(segment.constraints, self._evaluation.segment_bits[position])
            )
            phrase = self._segments[position] = sentences.outside_segment(segment.name, why)
        return phrase

    def parent(self, unmet: Unmet) -> str:
        """Why a parent keeps its child from being on."""
        parent, problem = unmet
        if problem is Problem.MISSING:
            return sentences.parent_missing(parent.name)
        if problem is Problem.CHAINED:
            return sentences.parent_chained(parent.name)
        if problem is Problem.UNKNOWN:
            return sentences.parent_unknown(parent.name)
        if problem is Problem.ON:
            return sentences.parent_on(parent.name)
        if problem is Problem.VARIANT:
            return self._parent_variant(unmet)
        return sentences.parent_off(parent.name, self._parent_detail(parent.name))

    def _parent_variant(self, unmet: Unmet) -> str:
        evaluation = self._evaluation
        flag, outcome = evaluation.pair(unmet.parent.name)
        name = evaluation.variant(flag, outcome) or "none"
        return sentences.parent_variant(unmet.parent.name, name, unmet.parent.variants)

    def _parent_detail(self, name: str) -> str:
        """In brackets after "which is off here": the bucket if a lone rollout decided, else nothing more."""
        flag, outcome = self._evaluation.pair(name)
        if not flag.enabled:
            return sentences.SWITCHED_OFF_DETAIL
        if flag.fault is not None or len(flag.strategies) != 1:
            return ""
        strategy, found = flag.strategies[0], outcome.strategies[0]
        if strategy.rollout is None or not found.bucket or self._failed_conditions(strategy, found):
            return ""
        return sentences.bucket_detail(found.bucket, strategy.rollout.threshold)
