"""Tables of results: one evaluation flag by flag, or several side by side. Counts include all flags."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from django.http import QueryDict

from flagadmin.console.lists import Column, Filter, Listing
from playground.engine.chance import state_over_calls
from playground.engine.evaluator import Evaluation
from playground.engine.flags import CompiledFlag
from playground.engine.outcomes import FlagOutcome
from playground.engine.reasons import Reasons

PER_PAGE = 50
MOST_CHIPS = 8
WORDS = {"on": "On", "off": "Off", "random": "On some calls", "unknown": "Can't tell"}


class Row(NamedTuple):
    """A flag's result in one evaluation.

    ``variant`` is None if there is none, or if it is not the same on every call. ``share`` says on how many
    calls the flag is on; it is "" unless the result is "random".
    """

    name: str
    project: str
    result: str
    variant: str | None
    share: str = ""

    @property
    def words(self) -> str:
        return self.share or WORDS[self.result]


class Cell(NamedTuple):
    result: str
    share: str
    variant: str | None
    reason: str
    words: str


class Pairing(NamedTuple):
    """A flag's results in several evaluations. None where an evaluation does not contain the flag."""

    name: str
    project: str
    differs: bool
    rows: list[Row | None]


def rows_of(evaluation: Evaluation) -> list[Row]:
    """Every flag's result, sorted by name."""
    return [_row(evaluation, flag, outcome) for flag, outcome in evaluation.pairs()]


def _row(evaluation: Evaluation, flag: CompiledFlag, outcome: FlagOutcome) -> Row:
    state, share = state_over_calls(evaluation, flag, outcome)
    if share is not None:
        return Row(flag.name, flag.project, state.value, None, share_of_calls(share))
    return Row(flag.name, flag.project, state.value, evaluation.variant(flag, outcome))


def share_of_calls(share: float) -> str:
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

    def __init__(self, evaluation: Evaluation, given: QueryDict) -> None:
        self.evaluation = evaluation
        self.reasons = Reasons(evaluation)
        self.all = rows_of(evaluation)
        self.counts = Counter(row.result for row in self.all)
        self.variants = Counter(row.variant for row in self.all if row.variant is not None)
        # A link keeps working when no flag gives this variant any more: the table is then empty.
        selected = given.get("variant", "").strip()
        filters = (
            Filter("q", "Find a flag"),
            Filter("result", "Result", list(WORDS.items())),
            Filter(
                "variant", "Variant", [(name, name) for name in sorted({*self.variants, selected} - {""})]
            ),
        )
        self.values = {field.name: field.value(given) for field in filters}
        self.listing: Listing[Row] = Listing(
            given, self._kept(), columns=self.columns, filters=filters, default_sort="flag", per_page=PER_PAGE
        )

    def _kept(self) -> list[Row]:
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
        shown = {name for name, _ in self.variants.most_common(MOST_CHIPS)}
        for name, count in sorted(self.variants.items()):
            if name not in shown and name != selected:
                continue
            href = self.listing.url(variant=None if selected == name else name)
            yield Chip(count, name, href, selected == name)

    @property
    def all_url(self) -> str:
        """The URL without filters."""
        return self.listing.url(q=None, result=None, variant=None)

    @property
    def has_more_variants(self) -> bool:
        return len(self.variants) > MOST_CHIPS

    def reason(self, row: Row) -> str:
        return self.reasons.flag(*self.evaluation.pair(row.name))

    def csv_rows(self) -> Iterator[list[str | None]]:
        for row in self.listing.all_rows:
            yield [row.name, row.project, row.words, row.variant, self.reason(row)]


class Matrix:
    """Several evaluations side by side; flags whose results differ come first."""

    def __init__(
        self,
        evaluations: Sequence[Evaluation],
        labels: Sequence[str],
        given: QueryDict,
        *,
        only_differences: bool = False,
    ) -> None:
        self.labels = labels
        self.evaluations = evaluations
        self.reasons = [Reasons(evaluation) for evaluation in evaluations]
        tables = [rows_of(evaluation) for evaluation in evaluations]
        self.heads = [
            (label, Counter(row.result for row in table)) for label, table in zip(labels, tables, strict=True)
        ]
        self.all = sorted(_paired(tables), key=lambda pair: (not pair.differs, pair.name))
        self.different = sum(pair.differs for pair in self.all)
        self.only_differences = (
            given.get("show", "differences" if only_differences else "all") == "differences"
        )
        find = Filter("q", "Find a flag")
        text = find.value(given).casefold()
        kept = [
            pair
            for pair in self.all
            if (pair.differs or not self.only_differences) and text in pair.name.casefold()
        ]
        self.listing: Listing[Pairing] = Listing(given, kept, columns=(), filters=(find,), per_page=PER_PAGE)

    @property
    def toggle_url(self) -> str:
        """The URL that shows all flags, or only those that differ."""
        return self.listing.url(show="all" if self.only_differences else "differences")

    @property
    def all_url(self) -> str:
        """The URL that shows all flags."""
        return self.listing.url(show="all", q=None)

    @property
    def rows(self) -> Iterator[tuple[Pairing, list[tuple[str, Cell | None]]]]:
        """The flags, each with the label and cell of every column."""
        for pair in self.listing.rows:
            yield pair, list(zip(self.labels, self.cells(pair), strict=True))

    def cells(self, pair: Pairing) -> list[Cell | None]:
        return [
            Cell(row.result, row.share, row.variant, reasons.flag(*evaluation.pair(row.name)), row.words)
            if row
            else None
            for row, reasons, evaluation in zip(pair.rows, self.reasons, self.evaluations, strict=True)
        ]

    def csv_header(self) -> list[str]:
        heads = [f"{label}: {what}" for label in self.labels for what in ("result", "variant", "why")]
        return ["Flag", "Project", "Differs", *heads]

    def csv_rows(self) -> Iterator[list[Any]]:
        for pair in self.listing.all_rows:
            cells = [
                (cell.words, cell.variant, cell.reason) if cell else ("", "", "") for cell in self.cells(pair)
            ]
            yield [
                pair.name,
                pair.project,
                "yes" if pair.differs else "no",
                *(t for cell in cells for t in cell),
            ]


def _paired(tables: Iterable[list[Row]]) -> Iterator[Pairing]:
    by_name = [{row.name: row for row in table} for table in tables]
    for name in dict.fromkeys(name for table in by_name for name in table):
        rows = [table.get(name) for table in by_name]
        found = {(row.result, row.share, row.variant) if row else None for row in rows}
        project = next(row.project for row in rows if row)
        yield Pairing(name, project, len(found) > 1, rows)
