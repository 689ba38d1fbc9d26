"""The tables of one evaluation, or of several side by side, flag by flag.

Counts include all flags; only the page shown is worked out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from django.http import QueryDict
from django.utils.functional import cached_property

from flagadmin.core.lists.charts import choose_variant_color
from flagadmin.core.lists.pages import Column, Filter, Listing
from playground.comparison.compare import describe_payload, normalize_payload
from playground.engine.chance import find_drawn_flags, find_state_over_calls
from playground.engine.evaluator import Evaluation
from playground.engine.outcomes import ON, RESULT, FlagOutcome, State, find_chosen_variant, find_state
from playground.engine.reasons import Reasons
from playground.engine.variants import Payload
from playground.pages.query import Label
from projects.models import Environment

PER_PAGE = 50
MAX_CHIPS = 8
WORDS = {"on": "On", "off": "Off", "random": "On some calls", "unknown": "Can't tell"}


class Row(NamedTuple):
    """A flag's result in one evaluation.

    ``variant`` is None if there is none, or if it varies between calls. ``share`` is the share of calls on which the
    flag is on; it is "" unless the result is "random". ``payload`` belongs to the variant.
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
"""The result of a flag, its variant, its share of calls, and the variant's payload: the last fields of a Row, as a
plain tuple.
"""

_ON: Final = (State.ON.value, None, "", None)
_OFF: Final = (State.OFF.value, None, "", None)


def read_results(evaluation: Evaluation) -> list[Found]:
    """Reads the result of every flag, in the order of the snapshot. Most flags take the fast path."""
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
        # A link keeps working if no flag has this variant any more: the table is then empty.
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


FEWEST = 3  # columns of an environment from which exceptions are marked


class Cell(NamedTuple):
    """``odd``: differs from most of its environment. ``payload`` is shown if it differs between cells."""

    label: str
    result: str
    words: str
    variant: str | None
    payload: str
    color: str
    reason: str
    odd: bool
    first: bool


class Line(NamedTuple):
    """A flag. A cell is None if the evaluation does not contain the flag."""

    name: str
    project: str
    differs: bool
    cells: list[Cell | None]


class Head(NamedTuple):
    label: Label
    counts: Counter[str]
    first: bool


class Matrix:
    """Flags whose results differ come first, and alone unless all are requested."""

    def __init__(
        self, evaluations: Sequence[Evaluation], labels: Sequence[Label], parameters: QueryDict
    ) -> None:
        self.labels, self.evaluations = labels, evaluations
        self.reasons = [Reasons(evaluation) for evaluation in evaluations]
        self.groups = [
            (name, len(list(columns))) for name, columns in groupby(label.environment for label in labels)
        ]
        self.starts = _find_starts(size for _, size in self.groups)
        self.names, self.columns = _align(evaluations)
        self.differs = [
            len(set(results)) > 1 and _differ(results) for results in zip(*self.columns, strict=True)
        ]
        self.different = sum(self.differs)
        self.only_differences = parameters.get("show") != "all"
        self.find = Filter("q", "Find a flag")
        self.listing: Listing[int] = Listing(
            parameters,
            self._filter_positions(parameters),
            columns=(),
            filters=(self.find,),
            per_page=PER_PAGE,
        )

    def _filter_positions(self, parameters: QueryDict) -> list[int]:
        """The positions of the flags to show."""
        every = range(len(self.names))
        positions = [position for position in every if self.differs[position]]
        if not self.only_differences:
            positions += [position for position in every if not self.differs[position]]
        text = self.find.value(parameters).casefold()
        return (
            [position for position in positions if text in self.names[position].casefold()]
            if text
            else positions
        )

    @property
    def total(self) -> int:
        return len(self.names)

    @property
    def views(self) -> list[tuple[str, str, int, bool]]:
        """The links that show the differences, or all flags."""
        url, few = self.listing.url, self.only_differences
        return [
            ("Differences", url(show=None), self.different, few),
            ("All", url(show="all"), self.total, not few),
        ]

    @property
    def all_url(self) -> str:
        """The URL that shows all flags."""
        return self.listing.url(show="all", q=None)

    @property
    def has_groups(self) -> bool:
        return any(name for name, _ in self.groups)

    @cached_property
    def production(self) -> set[str]:
        """The production environments among the groups whose names do not show it. One query."""
        environments = Environment.objects.production().filter(name__in=[name for name, _ in self.groups])
        return set(environments.exclude(name="production").values_list("name", flat=True))

    @property
    def has_odd(self) -> bool:
        """Whether cells may differ from most of their environment."""
        return any(size >= FEWEST for _, size in self.groups)

    @property
    def heads(self) -> Iterator[Head]:
        for position, (label, column) in enumerate(zip(self.labels, self.columns, strict=True)):
            yield Head(label, Counter(result[0] for result in column if result), position in self.starts)

    @property
    def lines(self) -> Iterator[Line]:
        """The flags of the page shown."""
        return map(self._make_line, self.listing.rows)

    def _make_line(self, position: int) -> Line:
        name, results = self.names[position], [column[position] for column in self.columns]
        odd = self._find_odd_columns(results)
        variants = sorted({result[1] for result in results if result and result[1]})
        payloads = _describe_payloads([result[3] if result else None for result in results])
        project, cells = "", list[Cell | None]()
        for column, result_found in enumerate(results):
            if result_found is None:
                cells.append(None)
                continue
            result, variant, share, _ = result_found
            flag, outcome = self.evaluations[column].pair(name)
            project = flag.project
            cells.append(
                Cell(
                    label=self.labels[column].text,
                    result=result,
                    words=share or WORDS[result],
                    variant=variant,
                    payload=payloads[column],
                    color=choose_variant_color(variants.index(variant)) if variant else "",
                    reason=self.reasons[column].flag(flag, outcome),
                    odd=column in odd,
                    first=column in self.starts,
                )
            )
        return Line(name, project, self.differs[position], cells)

    def _find_odd_columns(self, results: Sequence[Found | None]) -> set[int]:
        """The columns that differ from more than half of their environment, or from all if there is no majority."""
        odd, start = set[int](), 0
        for _, size in self.groups:
            counts = Counter(results[start : start + size])
            usual = next((result for result, count in counts.items() if 2 * count > size), None)
            if size >= FEWEST and len(counts) > 1:
                odd.update(column for column in range(start, start + size) if results[column] != usual)
            start += size
        return odd

    def csv_header(self) -> list[str]:
        parts = ("result", "variant", "payload", "why")
        heads = [f"{label.text}: {what}" for label in self.labels for what in parts]
        return ["Flag", "Project", "Differs", *heads]

    def csv_rows(self) -> Iterator[list[Any]]:
        for line in map(self._make_line, self.listing.all_rows):
            cells = [
                (cell.words, cell.variant, cell.payload, cell.reason) if cell else ("",) * 4
                for cell in line.cells
            ]
            yield [
                line.name,
                line.project,
                "yes" if line.differs else "no",
                *(t for cell in cells for t in cell),
            ]


def _differ(results: Iterable[Found | None]) -> bool:
    """Whether these differ, ignoring white space in JSON payloads."""
    return (
        len({result and (result[:3], result[3] and normalize_payload(result[3])) for result in results}) > 1
    )


def _describe_payloads(payloads: Sequence[Payload | None]) -> list[str]:
    """The payload of each column; "" for all if there is only one."""
    if len(set(payloads)) <= 1:
        return [""] * len(payloads)
    return ["" if payload is None else describe_payload(payload) for payload in payloads]


def _find_starts(sizes: Iterable[int]) -> set[int]:
    """The first column of each group except the first."""
    return set(accumulate(sizes))


def _align(evaluations: Sequence[Evaluation]) -> tuple[list[str], list[Sequence[Found | None]]]:
    """The names of all flags, and each evaluation's results for them, in their order."""
    columns = [read_results(evaluation) for evaluation in evaluations]
    lists = [evaluation.snapshot.names for evaluation in evaluations]
    if all(names == lists[0] for names in lists):
        return lists[0], list(columns)
    by_name = [dict(zip(names, column, strict=True)) for names, column in zip(lists, columns, strict=True)]
    names = sorted(set().union(*lists))
    return names, [[results_by_name.get(name) for name in names] for results_by_name in by_name]
