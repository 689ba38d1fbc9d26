"""Explains one flag's result in detail, from the outcomes of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from playground.engine import sentences
from playground.engine.constraints import CompiledConstraint
from playground.engine.evaluator import Evaluation
from playground.engine.flags import CompiledFlag, Parent
from playground.engine.operators import UNDECIDABLE
from playground.engine.outcomes import FlagOutcome, ParentProblem, State, StrategyOutcome, find_state
from playground.engine.reasons import Reasons
from playground.engine.strategies import CompiledStrategy
from playground.engine.variants import NONE, CompiledVariants


@dataclass(frozen=True, slots=True)
class ConstraintExplanation:
    """One constraint, or the condition of a strategy type (userIds, IPs)."""

    holds: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class SegmentExplanation:
    id: str
    name: str
    holds: bool
    constraints: tuple[ConstraintExplanation, ...]


@dataclass(frozen=True, slots=True)
class RolloutExplanation:
    """A rollout: buckets 1 to `threshold` of 100 are on.

    The value of `field` was hashed. `field` is None if the bucket was drawn; if the context has nothing to hash,
    `bucket` is None too.
    """

    bucket: int | None
    threshold: int
    field: str | None
    inside: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class VariantShare:
    """The places of one variant: `first` to `last`; none if last < first."""

    name: str
    first: int
    last: int
    chosen: bool


@dataclass(frozen=True, slots=True)
class VariantExplanation:
    """How a variant was picked: its `place` from 1 to `total`, None if an override decided."""

    name: str
    place: int | None
    total: int
    shares: tuple[VariantShare, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class StrategyExplanation:
    """One strategy. `decides`: it is the first that passed; its variant, if any, is used."""

    id: str
    name: str
    title: str
    disabled: bool
    state: State
    decides: bool
    constraints: tuple[ConstraintExplanation, ...]
    segments: tuple[SegmentExplanation, ...]
    rollout: RolloutExplanation | None
    variant: VariantExplanation | None
    sentence: str


@dataclass(frozen=True, slots=True)
class ParentExplanation:
    """A parent of the flag. `problem` is None if it is in the required state."""

    name: str
    problem: ParentProblem | None
    sentence: str


@dataclass(frozen=True, slots=True)
class FlagExplanation:
    """Everything about one flag's result. `variant` explains the flag's own variant; None if a strategy gives the
    variant, or if there is none."""

    project: str
    enabled: bool
    state: State
    variant_name: str | None
    reason: str
    parents: tuple[ParentExplanation, ...]
    strategies: tuple[StrategyExplanation, ...]
    variant: VariantExplanation | None


def explain(evaluation: Evaluation, name: str) -> FlagExplanation:
    """Explains the result of one flag. Raises KeyError if the evaluation does not have it."""
    return _Explainer(evaluation).flag(*evaluation.pair(name))


class _Explainer:
    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.reasons = Reasons(evaluation)

    def flag(self, flag: CompiledFlag, outcome: FlagOutcome) -> FlagExplanation:
        own = None
        if flag.variants is not None and outcome.pick != NONE:
            own = self.variant(flag.variants, outcome.pick, outcome.place)
        return FlagExplanation(
            project=flag.project,
            enabled=flag.enabled,
            state=find_state(flag, outcome),
            variant_name=self.evaluation.variant(flag, outcome),
            reason=self.reasons.flag(flag, outcome),
            parents=tuple(self.parent(parent, outcome) for parent in flag.parents),
            strategies=tuple(
                self.strategy(strategy, strategy_outcome, decides=index == outcome.decided)
                for index, (strategy, strategy_outcome) in enumerate(
                    zip(flag.strategies, outcome.strategies, strict=True)
                )
            ),
            variant=own,
        )

    def parent(self, parent: Parent, outcome: FlagOutcome) -> ParentExplanation:
        unmet = next((unmet for unmet in outcome.unmet if unmet.parent is parent), None)
        return ParentExplanation(
            name=parent.name,
            problem=unmet.problem if unmet else None,
            sentence=self.reasons.parent(unmet)
            if unmet
            else sentences.parent_met(parent.name, parent.enabled),
        )

    def strategy(
        self, strategy: CompiledStrategy, outcome: StrategyOutcome, *, decides: bool
    ) -> StrategyExplanation:
        verdict, bits, bucket, pick, place = outcome
        variant = None
        if strategy.variants is not None and pick != NONE:
            variant = self.variant(strategy.variants, pick, place)
        return StrategyExplanation(
            id=strategy.id,
            name=strategy.name,
            title=strategy.title,
            disabled=not strategy.counts,
            state=State.UNKNOWN if verdict is None else State.ON if verdict else State.OFF,
            decides=decides,
            constraints=self.constraints(strategy.constraints, bits),
            segments=tuple(self.segment(position) for position in strategy.segments),
            rollout=self.rollout(strategy, bucket),
            variant=variant,
            sentence=self.reasons.strategy(strategy, outcome),
        )

    def constraints(
        self, constraints: tuple[CompiledConstraint, ...], bits: int
    ) -> tuple[ConstraintExplanation, ...]:
        return tuple(
            self.constraint(constraint, holds=bool(bits >> index & 1))
            for index, constraint in enumerate(constraints)
        )

    def constraint(self, constraint: CompiledConstraint, *, holds: bool) -> ConstraintExplanation:
        value = self.reasons.values[constraint.field]
        undecidable = self.evaluation.values[constraint.column] is UNDECIDABLE
        return ConstraintExplanation(
            holds=holds,
            sentence=(constraint.undecidable or sentences.undecidable_text(constraint.field))
            if undecidable
            else value + (constraint.met if holds else constraint.unmet),
        )

    def segment(self, position: int) -> SegmentExplanation:
        segment = self.evaluation.snapshot.segments[position]
        bits = self.evaluation.result.segment_bits[position]
        return SegmentExplanation(
            id=segment.id,
            name=segment.name,
            holds=self.evaluation.holds(position),
            constraints=self.constraints(segment.constraints, bits),
        )

    def rollout(self, strategy: CompiledStrategy, bucket: int) -> RolloutExplanation | None:
        rollout = strategy.rollout
        if rollout is None:
            return None
        sticky = self.evaluation.sticky(rollout.stickiness)
        return RolloutExplanation(
            bucket=bucket or None,
            threshold=rollout.threshold,
            field=sticky[0] if sticky else None,
            inside=0 < bucket <= rollout.threshold,
            sentence=self.reasons.rollout(rollout, bucket),
        )

    def variant(self, variants: CompiledVariants, pick: int, place: int) -> VariantExplanation:
        limits = (0, *variants.limits)
        return VariantExplanation(
            name=variants.names[pick],
            place=place or None,
            total=variants.total,
            shares=tuple(
                VariantShare(name, limits[index] + 1, limits[index + 1], index == pick)
                for index, name in enumerate(variants.names)
            ),
            sentence=self.variant_sentence(variants, pick, place),
        )

    def variant_sentence(self, variants: CompiledVariants, pick: int, place: int) -> str:
        name = variants.names[pick]
        if place:
            subject = self.reasons.subjects[variants.stickiness]
            return sentences.variant_reason(name, subject=subject, place=place, total=variants.total)
        field = next(field for index, _, _, field in variants.overrides if index == pick)
        return sentences.variant_override(name, self.reasons.values[field])
