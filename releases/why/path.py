"""The answer as a path of steps, and the ways to turn a flag on, from the explanation of the engine."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from django.urls import reverse

from playground.engine import sentences
from playground.engine.explanation import FlagExplanation, StrategyExplanation
from playground.engine.outcomes import ParentProblem, State
from playground.pages.flag_detail import FlagDetail, StrategyDetail

MAX_CONDITIONS = 12
MAX_WAYS = 3
"""Strategies of which what is missing is listed."""


class Step(NamedTuple):
    """``css``: "yes", "no" or "unknown". ``note`` is "" if the sentence says it all."""

    css: str
    sentence: str
    note: str = ""
    url: str = ""


class Way(NamedTuple):
    """A sentence about what has to change. ``url`` is "" if the reader cannot do it; ``of`` names what it changes."""

    sentence: str
    note: str = ""
    url: str = ""
    button: str = ""
    of: str = ""


class Strip(NamedTuple):
    """The buckets 1 to ``threshold`` are on; ``place`` is the user's, from 0."""

    threshold: int
    place: int
    words: str


class Answer(NamedTuple):
    """``number`` is that of the strategy in the path, the deciding or the nearest one, 0 without strategies.

    All of the ``first`` ways are needed, and one of the ``ways``.
    """

    steps: Sequence[Step]
    number: int
    strip: Strip | None
    first: Sequence[Way]
    ways: Sequence[Way]


def make_answer(
    explained: FlagExplanation,
    detail: FlagDetail,
    fault: str | None,
    urls: Mapping[str, str],
    gain: Callable[[int, int], float],
) -> Answer:
    """``urls``: by the name of each parent why it has its answer; under "" the page that switches the flag on.

    ``gain``: how many more percent of all users a strategy's index and new rollout include.
    """
    strategies = sorted(enumerate(explained.strategies), key=lambda pair: _measure_distance(pair[1]))
    nearest = strategies[0] if strategies else None
    is_off = explained.state is State.OFF and detail.result == State.OFF.value
    first = list(_list_first(explained, detail, fault, urls)) if is_off else []
    passes = not strategies or any(each.state is State.ON for _, each in strategies)
    counted = [pair for pair in strategies if not pair[1].disabled] or strategies
    ways = [] if passes or not is_off else [_make_way(*pair, detail, gain) for pair in counted[:MAX_WAYS]]
    return Answer(
        list(_list_steps(explained, detail, fault, urls, nearest[1] if nearest else None)),
        nearest[0] + 1 if nearest else 0,
        _make_strip(nearest[1]) if nearest else None,
        first,
        ways,
    )


def _measure_distance(strategy: StrategyExplanation) -> tuple[bool, bool, bool, int, int]:
    """Sorts the deciding strategy first, then those that only an SDK can tell, and others by what they lack."""
    rollout = strategy.rollout
    beyond = 0 if rollout is None or rollout.inside else (rollout.bucket or 100) - rollout.threshold
    missing = sum(not each.holds for each in strategy.constraints)
    missing += sum(not each.holds for each in strategy.segments)
    is_unknown = strategy.state is State.UNKNOWN and not strategy.disabled
    return not strategy.decides, strategy.disabled, not is_unknown, missing, beyond


def _list_steps(
    explained: FlagExplanation,
    detail: FlagDetail,
    fault: str | None,
    urls: Mapping[str, str],
    strategy: StrategyExplanation | None,
) -> Iterator[Step]:
    where = detail.environment
    yield (
        Step("yes", f"Switched on in {where}")
        if explained.enabled
        else Step("no", sentences.switched_off(where))
    )
    if fault is not None:
        yield Step("no", sentences.rejected(fault))
    for parent, shown in zip(explained.parents, detail.parents, strict=False):
        css = (
            "yes"
            if parent.problem is None
            else "unknown"
            if parent.problem is ParentProblem.UNKNOWN
            else "no"
        )
        yield Step(css, parent.sentence, shown.reason, urls.get(parent.name, ""))
    if strategy is None:
        yield Step("yes", sentences.NO_STRATEGIES)
    else:
        yield from _list_steps_of(strategy)
    variant = explained.variant or (strategy.variant if strategy else None)
    if variant is not None and explained.state is State.ON:
        yield Step("yes", variant.sentence)


def _list_steps_of(strategy: StrategyExplanation) -> Iterator[Step]:
    if strategy.disabled:
        yield Step("no", sentences.NOT_EVALUATED)
        return
    unknown = strategy.sentence if strategy.state is State.UNKNOWN else None
    steps = [
        Step(
            "unknown" if each.sentence == unknown else "yes" if each.holds else "no",
            *_split_need(each.sentence),
        )
        for each in strategy.constraints
    ]
    for segment in strategy.segments:
        failing = next((each.sentence for each in segment.constraints if not each.holds), "")
        sentence = (
            sentences.in_segment(segment.name)
            if segment.holds
            else sentences.outside_segment(segment.name, "")
        )
        steps.append(Step("yes" if segment.holds else "no", sentences.capitalize(sentence), failing))
    if len(steps) > MAX_CONDITIONS:  # those that fail explain the answer
        steps.sort(key=lambda step: step.css == "yes")
        more = len(steps) - MAX_CONDITIONS
        steps[MAX_CONDITIONS:] = [Step(steps[MAX_CONDITIONS].css, f"{more} more conditions")]
    rollout = strategy.rollout
    if rollout is not None:
        css = "yes" if rollout.inside else "no"
        if rollout.bucket is None or rollout.field is None:
            css = css if rollout.bucket is None else "unknown"  # it was drawn
            steps.append(Step(css, rollout.sentence))
        else:
            note = f"the rollout by {rollout.field} stops at {rollout.threshold} %"
            steps.append(Step(css, f"Bucket {rollout.bucket} of 100", note))
    if not steps or (unknown and all(step.sentence != unknown for step in steps)):
        steps.append(
            Step("unknown" if unknown else "yes" if strategy.state is State.ON else "no", strategy.sentence)
        )
    yield from steps


def _make_strip(strategy: StrategyExplanation) -> Strip | None:
    rollout = strategy.rollout
    if rollout is None or rollout.bucket is None or rollout.field is None:
        return None
    threshold = min(max(rollout.threshold, 0), 100)
    words = f"100 buckets, of which {threshold} are on. {rollout.sentence}"
    return Strip(threshold, rollout.bucket - 1, words)


def _split_need(sentence: str) -> tuple[str, str]:
    """``plan is free`` and ``needs one of pro``, of a condition that fails; "" of one that says more."""
    value, needs, needed = sentence.partition(", needs ")
    return value, f"needs {needed}" if needs else ""


def _say_needed(sentence: str) -> str:
    """``plan must be one of pro``"""
    value, needed = _split_need(sentence)
    name = value.removesuffix(" was not given").partition(" is ")[0]
    return f"{name} must be {needed.removeprefix('needs ')}" if needed else sentence


def _list_first(
    explained: FlagExplanation, detail: FlagDetail, fault: str | None, urls: Mapping[str, str]
) -> Iterator[Way]:
    if not explained.enabled:
        switch = urls.get("", "")
        yield Way(
            f"Switch {detail.name} on in {detail.environment}",
            url=switch,
            button="Switch on…",
            of=detail.name,
        )
    if fault is not None:
        yield Way(sentences.rejected(fault))
    for parent in explained.parents:
        if parent.problem is not None:
            yield Way(parent.sentence, url=urls.get(parent.name, ""), button="Why?", of=parent.name)


def _make_way(
    index: int, strategy: StrategyExplanation, detail: FlagDetail, gain: Callable[[int, int], float]
) -> Way:
    """What a strategy lacks to include the user."""
    rollout = strategy.rollout
    missing = [f"Enable strategy {index + 1}"] if strategy.disabled else []
    missing += (_say_needed(each.sentence) for each in strategy.constraints if not each.holds)
    for segment in strategy.segments:
        if not segment.holds:
            failing = "; ".join(each.sentence for each in segment.constraints if not each.holds)
            missing.append(sentences.capitalize(sentences.outside_segment(segment.name, failing)))
    others_too = ""
    if rollout is not None and not rollout.inside and rollout.bucket and rollout.field:
        if not missing and strategy.name == "flexibleRollout":
            others_too = f"{100 * gain(index, rollout.bucket):,.0f} of 10,000 users would get it"
        missing.append(f"Raise the rollout from {rollout.threshold} % to {rollout.bucket} %")
    elif rollout is not None and not rollout.inside:
        missing.append(rollout.sentence)
    outside = [segment for segment in strategy.segments if not segment.holds]
    if outside and len(missing) == 1:
        [segment], [sentence] = outside, missing
        return Way(sentence, "", reverse("segment", args=[segment.id]), "Add to segment…", segment.name)
    first, *others = missing or [strategy.sentence]
    shown: StrategyDetail | None = next(iter(detail.strategies[index : index + 1]), None)
    name = f"Strategy {index + 1}" if len(detail.strategies) > 1 else ""
    note = ". ".join(filter(None, [name, others_too, f"Also: {'; '.join(others)}" if others else ""]))
    button = "Roll out…" if first.startswith("Raise") else "Edit…"
    return Way(first, note, shown.edit if shown else "", button, f"strategy {index + 1}")
