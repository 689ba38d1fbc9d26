"""The page part that says who changes between two states: numbers, flags with bars, and examples with reasons."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload
from urllib.parse import urlencode

from django.http import QueryDict

from flagadmin.core.lists.charts import percent_text
from flagadmin.core.lists.pages import Column, Filter, Listing
from playground.comparison.compare import Change, Example
from playground.comparison.who_changes import COUNTED, ChangedFlag, WhoChanges
from playground.engine.context import Context
from playground.pages.impact_view import KINDS, Side, Who, sides_of, who_of
from playground.pages.query import CONTEXT

WORDS = {change: words for change, (_, words) in KINDS.items()}
COLORS = {
    Change.OFF_TO_ON: "y",
    Change.ON_TO_OFF: "n",
    Change.VARIANT: "v3",
    Change.PAYLOAD: "v1",
    Change.SHARE: "v2",
}
COLUMNS = (
    Column("flag", "Flag", by=("name",)),
    Column("users", "Users", by=("users",), numeric=True),
    Column("change", "Change"),
    Column("on", "On, before → after", numeric=True),
)
PER_PAGE = 25
EXAMPLES_PER_PAGE = 50
EXAMPLES = 3
MAX_LINK_LENGTH = 1_000
"""Characters of an example's link. A page has many."""
Explain = Callable[[str, Mapping[str, str]], str]


class Slice(NamedTuple):
    color: str
    x: float
    width: float


class ShownExample(NamedTuple):
    who: Who
    before: Side
    after: Side
    link: str


class Row(NamedTuple):
    flag: ChangedFlag
    percent: str
    slices: list[Slice]
    changes: list[tuple[str, int]]
    on_before: str
    on_after: str
    examples: list[ShownExample]
    url: str


class Changes:
    """What the template reads. `explain` gives the URL of a page that explains a flag's results for a context."""

    def __init__(
        self,
        found: WhoChanges,
        given: QueryDict,
        *,
        explain: Explain,
        noun: str = "user",
        names: Sequence[str] = (),
        per_page: int = 0,
    ) -> None:
        self.found = found
        self.noun = noun
        self.names = names  # of the first contexts
        self.explain = explain
        there = [(change.value, WORDS[change]) for change in COUNTED]
        find, kind = Filter("q", "Find a flag"), Filter("change", "Change", there)
        chosen = kind.value(given)
        self.change = Change(chosen) if chosen else None
        self.chosen = given.get("only", "")
        self.only = found.flags[0] if self.chosen and found.flags else None
        text = find.value(given).casefold()
        flags = [
            flag
            for flag in found.flags
            if text in flag.name.casefold() and (self.change is None or flag.comparison.count(self.change))
        ]
        self.listing: Listing[ChangedFlag] = Listing(
            given, flags, columns=COLUMNS, filters=(find, kind), per_page=per_page or PER_PAGE
        )
        self.examples: Listing[Example] | None = None
        if self.only:
            examples: Any = Examples(found, self.only, self.kinds)
            self.examples = Listing(given, examples, columns=(), filters=(kind,), per_page=EXAMPLES_PER_PAGE)

    @property
    def kinds(self) -> Sequence[Change]:
        return COUNTED if self.change is None else (self.change,)

    @property
    def changing(self) -> int:
        """The flags that certainly give somebody something else."""
        return sum(flag.is_known for flag in self.found.flags)

    @property
    def unknown(self) -> int:
        return len(self.found.flags) - self.changing

    @property
    def counts(self) -> list[tuple[str, int, str]]:
        """(words, number, color) of each change that there is."""
        return [
            (WORDS[change], number, COLORS.get(change, ""))
            for change, number in self.found.counts.items()
            if number
        ]

    @property
    def percent(self) -> str:
        return percent_of(self.found.affected, self.found.users)

    @property
    def chips(self) -> list[tuple[str, str, int | None, bool]]:
        """The links that show every change, or one kind."""
        url, counts = self.listing.url, self.found.counts
        kinds = [change for change in COUNTED if counts[change] or change is self.change]
        return [
            ("All changes", url(change=None), None, self.change is None),
            *((_title(WORDS[c]), url(change=c.value), None, c is self.change) for c in kinds),
        ]

    @property
    def all_url(self) -> str:
        """The URL that shows every flag and change."""
        return self.listing.url(change=None, q=None, only=None)

    @property
    def rows(self) -> Iterator[Row]:
        return map(self.row, self.listing.rows)

    @property
    def brief(self) -> Iterator[Row]:
        """The rows without examples."""
        return (self.row(flag, examples=0) for flag in self.listing.rows)

    def row(self, flag: ChangedFlag, examples: int = EXAMPLES) -> Row:
        users = self.found.users
        there = [change for change in self.kinds if flag.comparison.count(change)]
        each = max(1, examples // max(1, len(there))) if examples else 0
        found = [
            self.shown(flag, example)
            for change in (there if each else ())
            for example in self.found.examples(flag, [change], limit=each)
        ]
        return Row(
            flag=flag,
            percent=percent_of(flag.users, users),
            slices=_slices(flag, users),
            changes=[(WORDS[change], flag.counts[change]) for change in COUNTED if flag.counts[change]],
            on_before=percent_of(flag.on_before * users, users),
            on_after=percent_of(flag.on_after * users, users),
            examples=found,
            url=self.listing.url(only=flag.name, q=None),
        )

    @property
    def shown_examples(self) -> Iterator[ShownExample]:
        """Those of the one flag that is chosen."""
        if self.examples and self.only:
            for example in self.examples.rows:
                yield self.shown(self.only, example)

    def shown(self, flag: ChangedFlag, example: Example) -> ShownExample:
        context = flag.source.table.contexts[example.position]
        link = self.explain(example.flag, context.given)
        link = "" if len(link) > MAX_LINK_LENGTH else link
        who = who_of(context)
        if example.position < len(self.names):
            who = Who(self.names[example.position], f"{who.name} {who.rest}")
        return ShownExample(who, *sides_of(example.before, example.after), link)

    # CSV -----------------------------------------------------------------------------------------------------

    def csv_header(self) -> list[str]:
        if self.only:
            return ["Flag", "Change", "Context", "Before", "Why before", "After", "Why after"]
        kinds = [_title(WORDS[change]) for change in COUNTED]
        return ["Flag", "Project", f"{self.noun.capitalize()}s", "Change", *kinds, "On before", "On after"]

    def csv_rows(self) -> Iterator[list[Any]]:
        if self.only:
            for example in self.found.examples(self.only, self.kinds):
                yield self._example_cells(self.only, example)
            return
        for flag in self.listing.all_rows:
            counts = [flag.counts[change] for change in COUNTED]
            yield [
                flag.name,
                flag.project,
                self.found.users,
                flag.users,
                *counts,
                round(flag.on_before * self.found.users, 2),
                round(flag.on_after * self.found.users, 2),
            ]

    def _example_cells(self, flag: ChangedFlag, example: Example) -> list[Any]:
        before, after = sides_of(example.before, example.after)
        return [
            example.flag,
            WORDS[example.change],
            context_text(flag.source.table.contexts[example.position]),
            before.words,
            before.reason,
            after.words,
            after.reason,
        ]


class Examples(Sequence[Example]):
    """All examples of a flag; only those that are shown get their reasons."""

    def __init__(self, found: WhoChanges, flag: ChangedFlag, kinds: Sequence[Change]) -> None:
        self._found, self._flag, self._kinds = found, flag, kinds

    def __len__(self) -> int:
        return sum(map(self._flag.comparison.count, self._kinds))

    @overload
    def __getitem__(self, place: int) -> Example: ...
    @overload
    def __getitem__(self, place: slice) -> list[Example]: ...
    def __getitem__(self, place: int | slice) -> Example | list[Example]:
        if isinstance(place, int):
            return self[place : place + 1][0]
        start, stop, _ = place.indices(len(self))
        return list(self._found.examples(self._flag, self._kinds, limit=stop, start=start))


def context_text(context: Context) -> str:
    return ", ".join(f"{field}={text}" for field, text in context.given.items())


def context_pairs(context: Mapping[str, str]) -> list[tuple[str, str]]:
    """A context as parameters of the playground's pages, none if they cannot say it."""
    if any("," in text or not text for text in context.values()):
        return []  # a comma would part the value
    return [(CONTEXT + field, text) for field, text in context.items()]


def _title(words: str) -> str:
    return words[0].upper() + words[1:]


def percent_of(part: float, whole: int) -> str:
    return percent_text(100 * part / max(1, whole))


def _slices(flag: ChangedFlag, users: int) -> list[Slice]:
    """The parts of the bar, in per cent of all users. What there is can be seen."""
    slices, x = [], 0.0
    for change, color in COLORS.items():
        if number := flag.counts[change]:
            width = max(0.8, 100 * number / users)
            slices.append(Slice(color, round(x, 2), round(width, 2)))
            x += width
    return slices


def explained_by(page: str) -> Callable[[str, Mapping[str, str]], str]:
    """URLs of the page that evaluates a context before and after an import."""

    def url(flag: str, context: Mapping[str, str]) -> str:
        pairs = context_pairs(context)
        return f"{page}?{urlencode([*pairs, ('q', flag), ('show', 'all')])}" if pairs else ""

    return url
