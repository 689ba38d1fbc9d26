"""The part of a page that shows who changes between two states: numbers, flags with bars, and examples.

…/NAME/versions?event=ID&event=ID: the part of a flag's page that shows whose results each version changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.utils.text import capfirst

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import ValidationError
from flagadmin.core.http.fields import is_id
from flagadmin.core.lists.charts import format_percent
from flagadmin.core.lists.pages import Column, Filter, Listing
from groups.console import ConsolePage
from playground.comparison.compare import COUNTED, Change, Example
from playground.comparison.versions import ChangedPlace, Version, VersionChanges, find_version_changes
from playground.comparison.who_changes import FlagChanges, WhoChanges
from playground.engine.context import Context
from playground.pages.lines import LOOKS, Count, Explain, Line, count_looks, make_line, make_sides
from projects.access import access_flag
from projects.history.queries import readable_events

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
"""Characters of an example's link, of which a page has many."""


class Slice(NamedTuple):
    color: str
    x: float
    width: float


class Row(NamedTuple):
    flag: FlagChanges
    percent: str
    slices: list[Slice]
    counts: list[Count]
    on_before: str
    on_after: str
    lines: list[Line]
    url: str


class Changes:
    """The changes for the template. `explain` returns the URL of a page that explains a flag's results."""

    def __init__(
        self,
        who: WhoChanges,
        parameters: QueryDict,
        *,
        explain: Explain,
        noun: str = "user",
        names: Sequence[str] = (),
        per_page: int = 0,
    ) -> None:
        self.who = who
        self.noun = noun
        self.names = names  # of the first contexts
        self.explain = explain
        choices = [(change.value, look.words) for change, look in LOOKS.items()]
        find, kind = Filter("q", "Find a flag"), Filter("change", "Change", choices)
        chosen = kind.value(parameters)
        self.change = Change(chosen) if chosen else None
        self.chosen = parameters.get("only", "")
        self.only = who.flags[0] if self.chosen and who.flags else None
        text = find.value(parameters).casefold()
        flags = [
            flag
            for flag in sorted(who.flags, key=lambda flag: (-flag.users, -flag.made, flag.name))
            if text in flag.name.casefold() and (self.change is None or flag.for_everyone.count(self.change))
        ]
        self.listing: Listing[FlagChanges] = Listing(
            parameters, flags, columns=COLUMNS, filters=(find, kind), per_page=per_page or PER_PAGE
        )
        self.examples: Listing[Example] | None = None
        if self.only:
            examples: Any = Examples(who, self.only, self.kinds)
            self.examples = Listing(
                parameters, examples, columns=(), filters=(kind,), per_page=EXAMPLES_PER_PAGE
            )

    @property
    def kinds(self) -> Sequence[Change]:
        return COUNTED if self.change is None else (self.change,)

    @property
    def changing(self) -> int:
        """The number of flags with a certain change."""
        return sum(flag.is_known for flag in self.who.flags)

    @property
    def unknown(self) -> int:
        return len(self.who.flags) - self.changing

    @property
    def counts(self) -> list[Count]:
        """Users by change; the API's counts, flags times users, would be meaningless here."""
        return count_looks(self.who.people)

    @property
    def people(self) -> str:
        if self.who.contexts.file_name or self.who.contexts.generated:
            return self.who.contexts.people
        return f"{self.noun}{'' if self.who.users == 1 else 's'}"

    @property
    def percent(self) -> str:
        return format_share(self.who.affected, self.who.users)

    @property
    def chips(self) -> list[tuple[str, str, int | None, bool]]:
        """The links that show every change, or one kind."""
        url, counts = self.listing.url, self.who.counts
        kinds = [change for change in COUNTED if counts[change] or change is self.change]
        return [
            ("All changes", url(change=None), None, self.change is None),
            *((capfirst(LOOKS[c].words), url(change=c.value), None, c is self.change) for c in kinds),
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

    def row(self, flag: FlagChanges, examples: int = EXAMPLES) -> Row:
        users = self.who.users
        kinds = [change for change in self.kinds if flag.for_everyone.count(change)]
        limit = max(1, examples // max(1, len(kinds))) if examples else 0
        lines = [
            self._make_line(flag, example)
            for change in (kinds if limit else ())
            for example in self.who.examples(flag, [change], limit=limit)
        ]
        return Row(
            flag=flag,
            percent=format_share(flag.users, users),
            slices=change_slices(flag.counts, users),
            counts=count_looks(flag.counts),
            on_before=format_share(flag.on_before * users, users),
            on_after=format_share(flag.on_after * users, users),
            lines=lines,
            url=self.listing.url(only=flag.name, q=None),
        )

    @property
    def lines(self) -> Iterator[Line]:
        """Examples of the one flag that is chosen."""
        if self.examples and self.only:
            for example in self.examples.rows:
                yield self._make_line(self.only, example)

    def _make_line(self, flag: FlagChanges, example: Example) -> Line:
        context, position = flag.source.table.contexts[example.position], example.position
        name = self.names[position] if position < len(self.names) else ""
        line = make_line(example, context, explain=self.explain, name=name)
        return line._replace(link="") if len(line.link) > MAX_LINK_LENGTH else line

    # CSV -----------------------------------------------------------------------------------------------------

    def csv_header(self) -> list[str]:
        if self.only:
            return ["Flag", "Change", "Context", "Before", "Why before", "After", "Why after"]
        kinds = [capfirst(LOOKS[change].words) for change in COUNTED]
        return ["Flag", "Project", f"{self.noun.capitalize()}s", "Change", *kinds, "On before", "On after"]

    def csv_rows(self) -> Iterator[list[Any]]:
        if self.only:
            for example in self.who.examples(self.only, self.kinds):
                yield self._list_example_cells(self.only, example)
            return
        for flag in self.listing.all_rows:
            counts = [flag.counts[change] for change in COUNTED]
            yield [
                flag.name,
                flag.project,
                self.who.users,
                flag.users,
                *counts,
                round(flag.on_before * self.who.users, 2),
                round(flag.on_after * self.who.users, 2),
            ]

    def _list_example_cells(self, flag: FlagChanges, example: Example) -> list[Any]:
        before, after = make_sides(example.before, example.after)
        return [
            example.flag,
            LOOKS[example.change].words,
            format_context(flag.source.table.contexts[example.position]),
            before.words,
            before.reason,
            after.words,
            after.reason,
        ]


class Examples(Sequence[Example]):
    """All examples of a flag; only the shown ones get their reasons."""

    def __init__(self, who: WhoChanges, flag: FlagChanges, kinds: Sequence[Change]) -> None:
        self._who, self._flag, self._kinds = who, flag, kinds

    def __len__(self) -> int:
        return sum(map(self._flag.for_everyone.count, self._kinds))

    @overload
    def __getitem__(self, place: int) -> Example: ...
    @overload
    def __getitem__(self, place: slice) -> list[Example]: ...
    def __getitem__(self, place: int | slice) -> Example | list[Example]:
        if isinstance(place, int):
            return self[place : place + 1][0]
        start, stop, _ = place.indices(len(self))
        return list(self._who.examples(self._flag, self._kinds, limit=stop, start=start))


def format_context(context: Context) -> str:
    return ", ".join(f"{field}={text}" for field, text in context.fields.items())


def format_share(part: float, whole: int) -> str:
    return format_percent(100 * part / max(1, whole))


def change_slices(counts: Mapping[Change, int], users: int) -> list[Slice]:
    """The parts of the bar, in percent of all users. Every existing part is visible."""
    slices, x = [], 0.0
    for look, number in count_looks(counts):
        if look.slice:
            width = max(0.8, 100 * number / users)
            slices.append(Slice(look.slice, round(x, 2), round(width, 2)))
            x += width
    return slices


MAX_VERSIONS = 10


class PlaceView(NamedTuple):
    environment: str
    changed: int
    counts: Sequence[Count]
    is_known: bool
    unmeasured: Sequence[str]
    users: int


class VersionView(NamedTuple):
    event: int
    places: Sequence[PlaceView]
    more: int

    @property
    def changed(self) -> Sequence[PlaceView]:
        """The environments in which results changed or may have changed."""
        return [place for place in self.places if place.counts or place.unmeasured or not place.is_known]


class VersionsPart(ConsolePage):
    """Loaded by the history once it is visible: comparing takes longer than the page."""

    template_name = "playground/versions.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        flag = access_flag(self.caller, kwargs["project_id"], kwargs["name"])
        event_ids = request.GET.getlist("event")[:MAX_VERSIONS]
        if not all(map(is_id, event_ids)):
            raise ValidationError.at("event", "must be the number of an event")
        events = readable_events(self.caller).filter(project=flag.project_id, feature=flag.name)
        events_asked = list(events.filter(pk__in=list(map(int, event_ids))))
        versions = {event.pk: version for event, version in _pair_with_versions(events, events_asked)}
        changes = find_version_changes(flag, list(versions.values()))
        views = [_view(pk, changes[version]) for pk, version in versions.items() if version in changes]
        return self.render_to_response({"versions": views})


def _pair_with_versions(events: Any, chosen: Sequence[AuditEvent]) -> Iterator[tuple[AuditEvent, Version]]:
    """Pairs each event with its version: the flag's preceding events from the same request."""
    requests = {event.request_id for event in chosen if event.request_id}
    rows = list(
        events.filter(request_id__in=requests).order_by("-pk").values_list("pk", "request_id", "created_at")
    )
    for event in chosen:
        hour = event.created_at.replace(minute=0, second=0, microsecond=0)
        same = [
            at for pk, request, at in rows if request == event.request_id and pk <= event.pk and at >= hour
        ]
        yield event, Version.of_events([*same, event.created_at])


def _view(event: int, changes: VersionChanges) -> VersionView:
    return VersionView(event, [_make_view(place) for place in changes.places], changes.more)


def _make_view(changed: ChangedPlace) -> PlaceView:
    counts = count_looks(changed.counts or {})
    return PlaceView(
        changed.environment,
        changed.changed,
        counts,
        changed.counts is not None,
        changed.unmeasured,
        changed.users,
    )
