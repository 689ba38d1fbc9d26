"""The table of one evaluation, flag by flag. Counts include all flags."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

from django.http import QueryDict

from flagadmin.core.lists.pages import Column, Filter, Listing
from playground.engine.chance import find_drawn_flags, find_state_over_calls
from playground.engine.evaluator import Evaluation
from playground.engine.outcomes import ON, RESULT, FlagOutcome, State, find_chosen_variant, find_state
from playground.engine.reasons import Reasons
from playground.engine.variants import Payload

PER_PAGE = 50
MAX_CHIPS = 8
WORDS = {"on": "On", "off": "Off", "random": "On some calls", "unknown": "Can't tell"}


class Row(NamedTuple):
    """A flag's result in one evaluation.

    ``variant`` is None if there is none, or if it is not the same on every call. ``share`` says on how many
    calls the flag is on; it is "" unless the result is "random". ``payload`` is that of the variant.
    """

    name: str
    project: str
    result: str
    variant: str | None
    share: str = ""
    payload: Payload | None = None

    @property
    def words(self) -> str:
        return self.share or WORDS[self.result]


Found = tuple[str, str | None, str, Payload | None]
"""The result of a flag, its variant, on how many calls it is on, and the variant's payload: the last fields of a Row,
plain."""

_ON: Final = (State.ON.value, None, "", None)
_OFF: Final = (State.OFF.value, None, "", None)


def read_results(evaluation: Evaluation) -> list[Found]:
    """Reads the result of every flag, in the order of the snapshot. Most flags take the short ways."""
    drawn = find_drawn_flags(evaluation)
    results: list[Found] = []
    for position, (flag, outcome) in enumerate(
        zip(evaluation.snapshot.flags, evaluation.outcomes, strict=True)
    ):
        if position in drawn:
            state, share = find_state_over_calls(evaluation, flag, FlagOutcome(*outcome))
            if share is not None:
                results.append((state.value, None, describe_share(share), None))
                continue
        elif not flag.enabled or outcome[RESULT] is False:
            results.append(_OFF)
            continue
        else:
            state = State.ON if outcome[ON] else find_state(flag, outcome)
        chosen = find_chosen_variant(flag, outcome)
        if chosen is not None:
            variants, index = chosen
            results.append((state.value, variants.names[index], "", variants.payload(index)))
        else:
            results.append(_ON if state is State.ON else (state.value, None, "", None))
    return results


def list_rows(evaluation: Evaluation) -> list[Row]:
    """Every flag's result, sorted by name."""
    results = zip(evaluation.snapshot.flags, read_results(evaluation), strict=True)
    return [Row(flag.name, flag.project, *result) for flag, result in results]


def describe_share(share: float) -> str:
    """``≈ 30 % of calls``, never rounded to 0 or 100 %."""
    percent = round(share * 100)
    return f"{'< 1' if percent < 1 else '> 99' if percent > 99 else f'≈ {percent}'} % of calls"


@dataclass(frozen=True, slots=True)
class Chip:
    """A link that filters the table by a result or a variant, with its number of flags."""

    count: int
    label: str
    href: str
    selected: bool
    mark: str = ""

    @property
    def id(self) -> str:
        """Lets htmx restore the focus after it has replaced the results."""
        return f"chip-{self.mark or quote(self.label, '')}"


class Results:
    """The table of one evaluation, filtered, sorted and paged by the URL's parameters."""

    columns = (
        Column("flag", "Flag", by=("name",)),
        Column("result", "Result", by=("result", "name")),
        Column("variant", "Variant", by=("variant", "name")),
        Column("why", "Why"),
    )

    def __init__(self, evaluation: Evaluation, parameters: QueryDict) -> None:
        self.evaluation = evaluation
        self.reasons = Reasons(evaluation)
        self.all = list_rows(evaluation)
        self.counts = Counter(row.result for row in self.all)
        self.variants = Counter(row.variant for row in self.all if row.variant is not None)
        # A link keeps working when no flag gives this variant any more: the table is then empty.
        selected = parameters.get("variant", "").strip()
        filters = (
            Filter("q", "Find a flag"),
            Filter("result", "Result", list(WORDS.items())),
            Filter(
                "variant", "Variant", [(name, name) for name in sorted({*self.variants, selected} - {""})]
            ),
        )
        self.values = {field.name: field.value(parameters) for field in filters}
        self.listing: Listing[Row] = Listing(
            parameters,
            self._filter_rows(),
            columns=self.columns,
            filters=filters,
            default_sort="flag",
            per_page=PER_PAGE,
        )

    def _filter_rows(self) -> list[Row]:
        text, result, variant = (self.values[name] for name in ("q", "result", "variant"))
        return [
            row
            for row in self.all
            if (not result or row.result == result)
            and (not variant or row.variant == variant)
            and text.casefold() in row.name.casefold()
        ]

    @property
    def chips(self) -> Iterator[Chip]:
        selected, url = self.values["result"], self.listing.url
        for result, words in WORDS.items():
            if result == "random" and not self.counts[result] and selected != result:
                continue
            label = words[0].lower() + words[1:]
            href = url(result=None if selected == result else result)
            yield Chip(self.counts[result], label, href, selected == result, result)

    @property
    def variant_chips(self) -> Iterator[Chip]:
        """The most frequent variants, and the selected one."""
        selected = self.values["variant"]
        names = {name for name, _ in self.variants.most_common(MAX_CHIPS)}
        for name, count in sorted(self.variants.items()):
            if name not in names and name != selected:
                continue
            href = self.listing.url(variant=None if selected == name else name)
            yield Chip(count, name, href, selected == name)

    @property
    def all_url(self) -> str:
        """The URL without filters."""
        return self.listing.url(q=None, result=None, variant=None)

    @property
    def has_more_variants(self) -> bool:
        return len(self.variants) > MAX_CHIPS

    def reason(self, row: Row) -> str:
        return self.reasons.flag(*self.evaluation.pair(row.name))

    def csv_rows(self) -> Iterator[list[str | None]]:
        for row in self.listing.all_rows:
            yield [row.name, row.project, row.words, row.variant, self.reason(row)]
