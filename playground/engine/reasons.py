"""The reason of a flag's result: one sentence, from the outcomes that the evaluation kept."""

from __future__ import annotations

from collections.abc import Iterator

from playground.engine import sentences
from playground.engine.batch import BITS, BUCKET, VERDICT, StrategyOutcome, conditions_of
from playground.engine.dependencies import Problem, Unmet
from playground.engine.evaluator import Evaluation, PlainOutcome
from playground.engine.operators import UNTOLD
from playground.engine.snapshot import CompiledFlag
from playground.engine.strategies import CompiledStrategy, Mode, Rollout, Words
from playground.engine.variants import NONE


class _Values(dict[str, str]):
    """Per field "country is NO" or "country was not given", worded when first asked for."""

    def __init__(self, evaluation: Evaluation) -> None:
        super().__init__()
        self._evaluation = evaluation

    def __missing__(self, field: str) -> str:
        phrase = self[field] = sentences.value_phrase(field, self._evaluation.context.lookup(field))
        return phrase


class _Phrases(dict[tuple[str, ...], tuple[str, ...]]):
    """The values of several fields, as many conditions need them."""

    def __init__(self, values: _Values) -> None:
        super().__init__()
        self._values = values

    def __missing__(self, fields: tuple[str, ...]) -> tuple[str, ...]:
        phrases = self[fields] = tuple(self._values[field] for field in fields)
        return phrases


class _Subjects(dict[str, str | None]):
    """Per stickiness "userId 42", who was put into a bucket; None where the context has nobody."""

    def __init__(self, evaluation: Evaluation) -> None:
        super().__init__()
        self._evaluation = evaluation

    def __missing__(self, stickiness: str) -> str | None:
        found = None if stickiness == "random" else self._evaluation.sticky(stickiness)
        phrase = self[stickiness] = sentences.subject_phrase(*found) if found else None
        return phrase


class _Placed(dict[int, str]):
    """By bucket "userId 42 is in bucket 53"."""

    def __init__(self, subject: str) -> None:
        super().__init__()
        self._subject = subject

    def __missing__(self, bucket: int) -> str:
        text = self[bucket] = sentences.placed(self._subject, bucket)
        return text


class _Places(dict[str, _Placed | None]):
    """By stickiness who was put where; None where the context has nobody."""

    def __init__(self, subjects: _Subjects) -> None:
        super().__init__()
        self._subjects = subjects

    def __missing__(self, stickiness: str) -> _Placed | None:
        subject = self._subjects[stickiness]
        placed = self[stickiness] = None if subject is None else _Placed(subject)
        return placed


class Reasons:
    """Gives the reasons of one evaluation; what several flags have in common is worded once."""

    __slots__ = ("_evaluation", "_phrases", "_places", "_segments", "subjects", "values")

    def __init__(self, evaluation: Evaluation) -> None:
        self.values = _Values(evaluation)
        self.subjects = _Subjects(evaluation)
        self._evaluation = evaluation
        self._phrases = _Phrases(self.values)
        self._places = _Places(self.subjects)
        self._segments: dict[int, str] = {}

    def flag(self, flag: CompiledFlag, outcome: PlainOutcome) -> str:
        """Why a flag has its result."""
        result, _, decided, _, _, found, unmet = outcome
        if not flag.enabled:
            return sentences.switched_off(self._evaluation.snapshot.environment)
        if flag.fault is not None:
            return sentences.rejected(flag.fault)
        if unmet and result is not False:
            return self.parent(unmet[0])
        if decided != NONE:
            return self.passed(flag.strategies[decided], found[decided])
        if result is None:
            return self._unknown(flag, found)
        return self._not_passed(flag, found)

    def all(self) -> Iterator[str]:
        """Why each flag has its result, one after the other."""
        snapshot = self._evaluation.snapshot
        program, words = snapshot.program, snapshot.program.words
        start = 0
        for flag, outcome, end, plain in zip(
            snapshot.flags, self._evaluation.outcomes, program.ends, program.plain, strict=True
        ):
            _, _, decided, _, _, found, unmet = outcome
            if unmet or not plain:
                yield self.flag(flag, outcome)
            elif decided != NONE:
                yield self._passed(words[start + decided], found[decided])
            elif end - start == 1:
                yield self._failed(words[start], found[0])
            else:
                yield sentences.strategies_together([*map(self._failed, words[start:end], found)])
            start = end

    def _unknown(self, flag: CompiledFlag, found: list[StrategyOutcome]) -> str:
        pairs = zip(flag.strategies, found, strict=True)
        return next(
            self._untold(strategy)
            for strategy, outcome in pairs
            if strategy.counts and outcome[VERDICT] is None
        )

    def _untold(self, strategy: CompiledStrategy) -> str:
        """Why only an SDK can tell whether a strategy is on."""
        if strategy.mode is Mode.ONLY_SDK:
            return strategy.note
        evaluation = self._evaluation
        constraint = next(
            constraint
            for constraint in conditions_of(strategy, evaluation.snapshot.segments)
            if evaluation.values[constraint.column] is UNTOLD
        )
        return constraint.untold or sentences.untellable_text(constraint.field)

    def _not_passed(self, flag: CompiledFlag, found: list[StrategyOutcome]) -> str:
        pairs = zip(flag.strategies, found, strict=True)
        failed = [self.failed(strategy, outcome) for strategy, outcome in pairs if strategy.counts]
        if failed:
            return failed[0] if len(failed) == 1 else sentences.strategies_together(failed)
        return sentences.ALL_DISABLED if flag.strategies else sentences.NO_STRATEGIES

    def strategy(self, strategy: CompiledStrategy, outcome: StrategyOutcome) -> str:
        """Why a strategy has its own result."""
        if outcome[VERDICT]:
            return self.passed(strategy, outcome)
        if outcome[VERDICT] is None:
            return sentences.NOT_EVALUATED if strategy.mode is Mode.DISABLED else self._untold(strategy)
        return self.failed(strategy, outcome)

    def passed(self, strategy: CompiledStrategy, outcome: StrategyOutcome) -> str:
        """Why a strategy is on."""
        if not strategy.segments:
            return self._passed(strategy.words, outcome)
        conditions = strategy.conditions
        parts = [conditions.met % self._phrases[conditions.fields]] if conditions.all_hold else []
        segments = self._evaluation.snapshot.segments
        parts += [sentences.in_segment(segments[position].name) for position in strategy.segments]
        if strategy.rollout is not None:
            parts.append(sentences.unended(self.rollout(strategy.rollout, outcome[BUCKET])))
        return "; ".join(parts)

    def _passed(self, words: Words, outcome: StrategyOutcome) -> str:
        """The same without segments."""
        all_hold, fields, met, _, rollout, stickiness, threshold, _ = words
        if rollout is None:
            return met % self._phrases[fields] if all_hold else sentences.FOR_EVERYONE
        placed = self._places[stickiness]
        if placed is None:
            sentence = self.rollout(rollout, outcome[BUCKET])
        else:
            sentence = placed[outcome[BUCKET]] + sentences.INSIDE[threshold]
        return f"{met % self._phrases[fields]}; {sentences.unended(sentence)}" if all_hold else sentence

    def failed(self, strategy: CompiledStrategy, outcome: StrategyOutcome) -> str:
        """Why a strategy is off."""
        if strategy.segments or strategy.missing_segments:
            parts = self._failed_conditions(strategy, outcome[BITS])
            if parts:
                return "; ".join(parts)
        return self._failed(strategy.words, outcome, in_segments=strategy.segments != ())

    def _failed(self, words: Words, outcome: StrategyOutcome, *, in_segments: bool = False) -> str:
        """The same without segments, or when all of those hold."""
        _, bits, bucket, _, _ = outcome
        all_hold, fields, _, unmet, rollout, stickiness, threshold, note = words
        if bits != all_hold:
            return self._failed_constraints(fields, unmet, bits)
        if rollout is None:
            return note
        placed = self._places[stickiness]
        if placed is None:
            return self.rollout(rollout, bucket)
        sentence = placed[bucket] + sentences.OUTSIDE[threshold]
        return sentences.ALL_HOLD + sentence if bits or in_segments else sentence

    def rollout(self, rollout: Rollout, bucket: int) -> str:
        """Where an identifier fell, and what that means."""
        placed = self._places[rollout.stickiness]
        threshold = rollout.threshold
        if placed is not None:
            ends = sentences.INSIDE if bucket <= threshold else sentences.OUTSIDE
            return placed[bucket] + ends[threshold]
        if rollout.draws:
            return sentences.random_rollout(threshold)
        return sentences.no_identifier(rollout.stickiness)

    def _failed_conditions(self, strategy: CompiledStrategy, bits: int) -> list[str]:
        parts = []
        if bits != strategy.conditions.all_hold:
            conditions = strategy.conditions
            parts.append(self._failed_constraints(conditions.fields, conditions.unmet, bits))
        for position in strategy.segments:
            segment = self._evaluation.snapshot.segments[position]
            if self._evaluation.segment_bits[position] != segment.conditions.all_hold:
                parts.append(self._unmet_segment(position))
        if strategy.missing_segments:
            parts += [sentences.missing_segment(segment) for segment in strategy.missing_segments]
        return parts

    def _failed_constraints(self, fields: tuple[str, ...], unmet: tuple[str, ...], bits: int) -> str:
        """What fails of conditions."""
        text = ""
        for phrase, end in zip(self._phrases[fields], unmet, strict=True):
            if not bits & 1:
                text = f"{text}; {phrase}{end}" if text else phrase + end
            bits >>= 1
        return text

    def _unmet_segment(self, position: int) -> str:
        phrase = self._segments.get(position)
        if phrase is None:
            segment = self._evaluation.snapshot.segments[position]
            bits = self._evaluation.segment_bits[position]
            why = self._failed_constraints(segment.conditions.fields, segment.conditions.unmet, bits)
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
        if strategy.rollout is None or not found[BUCKET] or self._failed_conditions(strategy, found[BITS]):
            return ""
        return sentences.bucket_detail(found[BUCKET], strategy.rollout.threshold)
