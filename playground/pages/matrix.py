"""Several evaluations side by side, flag by flag. Counts include all flags; only the page shown is worked out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from django.http import QueryDict
from django.utils.functional import cached_property

from flagadmin.core.lists.charts import choose_variant_color
from flagadmin.core.lists.pages import Filter, Listing
from playground.comparison.payloads import describe_payload, normalize_payload
from playground.engine.evaluator import Evaluation
from playground.engine.reasons import Reasons
from playground.engine.variants import Payload
from playground.pages.query import Label
from playground.pages.tables import PER_PAGE, WORDS, Found, read_results
from projects.models import Environment

FEWEST = 3  # columns of an environment, for some to be the exception


class Cell(NamedTuple):
    """``odd``: differs from most of its environment. ``payload`` is shown where it is not the same in all cells."""

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
    """A flag. Its cells are None where an evaluation does not contain it."""

    name: str
    project: str
    differs: bool
    cells: list[Cell | None]


class Head(NamedTuple):
    label: Label
    counts: Counter[str]
    first: bool


class Matrix:
    """Flags whose results differ come first, and alone unless all are asked for."""

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
        """The environments of the groups that are production ones, though their name does not say so. One query."""
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
    """Whether these differ, though not only in the white space of JSON payloads."""
    return (
        len({result and (result[:3], result[3] and normalize_payload(result[3])) for result in results}) > 1
    )


def _describe_payloads(payloads: Sequence[Payload | None]) -> list[str]:
    """Describes the payload of each column, "" for all if there is only one."""
    if len(set(payloads)) <= 1:
        return [""] * len(payloads)
    return ["" if payload is None else describe_payload(payload) for payload in payloads]


def _find_starts(sizes: Iterable[int]) -> set[int]:
    """The first column of each group but the first."""
    starts, start = set[int](), 0
    for size in sizes:
        start += size
        starts.add(start)
    return starts


def _align(evaluations: Sequence[Evaluation]) -> tuple[list[str], list[Sequence[Found | None]]]:
    """The names of all flags, and for each evaluation what was found for them, in their order."""
    columns = [read_results(evaluation) for evaluation in evaluations]
    lists = [evaluation.snapshot.names for evaluation in evaluations]
    if all(names == lists[0] for names in lists):
        return lists[0], list(columns)
    by_name = [dict(zip(names, column, strict=True)) for names, column in zip(lists, columns, strict=True)]
    names = sorted(set().union(*lists))
    return names, [[results_by_name.get(name) for name in names] for results_by_name in by_name]
