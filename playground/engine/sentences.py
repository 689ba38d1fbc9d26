"""The sentences and phrases of reasons, for the API and for pages. Sentences have no full stop at the end.

Values are cut after SHOWN_LENGTH characters, lists after SHOWN_VALUES members, with "…". Invisible characters are
named: different values must not look the same, nor reverse the rest of a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from playground.engine.operators import OPERATORS

SHOWN_LENGTH = 80
SHOWN_VALUES = 5
SHOWN_STRATEGIES = 3

NO_STRATEGIES = "It has no strategy, so it is on for everyone"
ALL_DISABLED = "All its strategies are disabled"
ALL_HOLD = "All conditions hold, but "
"""Placed before the sentence of a bucket outside the rollout, if the strategy has conditions."""
FOR_EVERYONE = "On for everyone"
NOT_EVALUATED = "It is disabled, so it is not evaluated"
SWITCHED_OFF_DETAIL = "switched off"


def shorten_value(text: str) -> str:
    """A value in a sentence: cut to SHOWN_LENGTH, and quoted if it has surrounding spaces; "empty" if it is empty."""
    if not text:
        return "empty"
    return quote_value(text) if text != text.strip() else _cut(text)


def _cut(text: str) -> str:
    return name_unseen(text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…")


def name_unseen(text: str) -> str:
    """The text with a number for each invisible or direction-changing character: ``vip<U+200B>``."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else f"<U+{ord(letter):04X}>" for letter in text)


def capitalize(phrase: str) -> str:
    """Capitalizes our own phrase at the start of a sentence. Names of context fields keep their case."""
    return phrase[0].upper() + phrase[1:]


def quote_value(text: str) -> str:
    return f'"{_cut(text)}"'


def list_values(values: Sequence[str]) -> str:
    """A list of values: "US, DE", at most SHOWN_VALUES. Values with commas or surrounding spaces are quoted."""
    texts = [quote_value(value) if "," in value else shorten_value(value) for value in values[:SHOWN_VALUES]]
    if len(values) > SHOWN_VALUES:
        texts.append(f"… ({len(values)} in all)")
    return ", ".join(texts) if texts else "nothing"


def unmet_phrase(operator: str, values: Sequence[str], *, inverted: bool) -> str:
    """The end of the sentence of a constraint that fails: ", needs a version above 5.0.0"."""
    if operator in ("IN", "NOT_IN"):
        among = "one of" if (operator == "IN") is not inverted else "none of"
        return f", needs {among} {list_values(values)}"
    described = OPERATORS[operator]
    expected = f"{described.family.noun} {described.relation} {list_values(values)}"
    return f", needs anything but {expected}" if inverted else f", needs {expected}"


def met_phrase(operator: str, values: Sequence[str], *, inverted: bool) -> str:
    """The addition to the value of a constraint that holds: " (above 4.2.0)", " (at least 30)"; "" for IN."""
    if operator in ("IN", "NOT_IN"):
        return "" if (operator == "IN") is not inverted else f" (not {list_values(values)})"
    phrase = f"{OPERATORS[operator].relation.removeprefix('of ')} {list_values(values)}"
    return f" (not {phrase})" if inverted else f" ({phrase})"


def suggestion(value: str | None) -> str:
    """A suggestion to follow a constraint with a value that SDKs cannot read; empty without one."""
    return "" if value is None else f"; SDKs never match it, {value} was probably meant"


def value_phrase(field: str, text: str | None) -> str:
    """The start of a constraint's sentence: "country is NO" or "country was not given"."""
    return f"{field} was not given" if text is None else f"{field} is {shorten_value(text)}"


def subject_phrase(field: str, text: str) -> str:
    """Names the subject that was assigned to a bucket: "userId 42"."""
    return f"{field} {shorten_value(text)}"


def describe_bucket(subject: str, bucket: int) -> str:
    """ "userId 42 is in bucket 53", continued by INSIDE or OUTSIDE."""
    return f"{subject} is in bucket {bucket}"


class _Ends(dict[int, str]):
    """Ends of sentences by the threshold of a rollout; those up to 100 are prepared."""

    def __init__(self, form: str) -> None:
        super().__init__({threshold: form.format(threshold) for threshold in range(101)})
        self._form = form

    def __missing__(self, threshold: int) -> str:
        return self._form.format(threshold)


INSIDE = _Ends(", {} % rollout")
""""userId 42 is in bucket 8, 60 % rollout", after the subject."""
OUTSIDE = _Ends(" and the rollout stops at {} %")
""""userId 42 is in bucket 53 and the rollout stops at 50 %", after the subject."""


def no_identifier(stickiness: str) -> str:
    return f"The rollout is by {stickiness} and the context has none, so it is off"


def random_rollout(threshold: int) -> str:
    return f"Random on each call: about {threshold} % of calls are on"


def in_segment(name: str) -> str:
    return f"in segment {name_unseen(name)}"


def outside_segment(name: str, why: str) -> str:
    outside = f"not in segment {name_unseen(name)}"
    return f"{outside}: {why}" if why else outside


def missing_segment(segment: str) -> str:
    return f"segment {shorten_value(segment)} does not exist"


def bucket_detail(bucket: int, threshold: int) -> str:
    """ "bucket 92, rollout 10 %"."""
    return f"bucket {bucket}, rollout {threshold} %"


def custom_strategy(name: str) -> str:
    return f"Uses the custom strategy {shorten_value(name)}; only your SDK can evaluate it"


def host_strategy() -> str:
    return "Depends on the host name of the application; only your SDK can evaluate it"


def undecidable_pattern(field: str, fault: str | None) -> str:
    return f"The regular expression for {shorten_value(field)} {fault}; only your SDK can evaluate it"


def undecidable_text(field: str) -> str:
    return f"{shorten_value(field)} is too long for a regular expression here; only your SDK can evaluate it"


def switched_off(environment: str) -> str:
    return f"Switched off in {environment}"


def rejected(fault: str) -> str:
    """The reason of a flag that is off because SDKs cannot read it."""
    return f"SDKs cannot read this flag and keep it off: {fault}"


def parent_off(name: str, detail: str = "") -> str:
    return f"Depends on {name}, which is off here" + (f" ({detail})" if detail else "")


def parent_on(name: str) -> str:
    return f"Depends on {name} being off, and it is on here"


def parent_variant(name: str, variant: str, expected: Sequence[str]) -> str:
    return f"Depends on variant {list_values(expected)} of {name}, which has {variant} here"


def parent_met(name: str, enabled: bool) -> str:
    return f"Depends on {name}, which is {'on' if enabled else 'off'} here as needed"


def parent_missing(name: str) -> str:
    return f"Depends on {name}, which is not among these flags"


def parent_chained(name: str) -> str:
    return f"Depends on {name}, which depends on another flag; SDKs do not follow such chains"


def parent_unknown(name: str) -> str:
    return f"Depends on {name}; only your SDK can tell whether it is on"


def strategies_together(reasons: Sequence[str]) -> str:
    """The reasons of several strategies, none of which passes; at most SHOWN_STRATEGIES."""
    text = ""
    number = 1
    for reason in reasons[:SHOWN_STRATEGIES]:
        text += _STRATEGY_NUMBERS[number] + reason
        number += 1
    return f"{text} … ({len(reasons)} strategies in all)" if len(reasons) > SHOWN_STRATEGIES else text


_STRATEGY_NUMBERS = (
    "",
    "Strategy 1: ",
    *(f". Strategy {number}: " for number in range(2, SHOWN_STRATEGIES + 1)),
)


def variant_reason(name: str, *, subject: str | None, place: int, total: int) -> str:
    """Explains why a variant was chosen, by its place among the weights."""
    if subject is None:
        return f"Variant {name} by chance: the context has nothing to stick to"
    return f"{subject} is at {place} of {total}, which is variant {name}"


def variant_override(name: str, value: str) -> str:
    """`value` is a value_phrase."""
    return f"Variant {name} because {value}"
