"""The lens: as whom one looks at flags, on every page: a user id, a saved context, or one of one's own users. ``?as=``
chooses it; the session keeps it until it is ended.

What the lens got before and after the changes of a time.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.errors import clip
from flagadmin.core.lists.charts import format_percent
from groups.access import Caller
from groups.console import ConsolePage, read_next_page
from playground.comparison.results import Shares, StateResults
from playground.comparison.table import ContextTable
from playground.engine.context import Context
from playground.engine.outcomes import State
from playground.models import OwnUsers, SavedContext
from playground.pages.query import flatten_context, nest_context
from playground.saved_contexts.expectations import compile_flags
from playground.user_runs.file import find_own_users, load_own_users
from projects.definitions import Definitions
from projects.flag_versions import FlagVersions
from projects.flags.lists.cells import Place
from projects.history.noticed import NoticedChange
from projects.models import Flag

PARAMETER, SAVED, OWN = "as", "saved:", "own:"
"""The URL parameter, also the key in the session; what a value begins with that is the name of a saved context, or the
first value of one of one's own users."""
MAX_LENGTH = 200
OFFERED = 8
"""The most saved contexts, and own users, to choose from; a search finds others."""


class Lens(NamedTuple):
    """``query``: the parameters of the playground for the same context. ``key``: the value of ``?as=``."""

    name: str
    context: Mapping[str, Any]
    query: Mapping[str, str]
    key: str
    saved: SavedContext | None = None


class Told(NamedTuple):
    """What a flag is for the lens. ``css``: a class of pills; ``url``: why."""

    text: str
    css: str
    url: str


def choose_lens(request: HttpRequest, caller: Caller) -> None:
    """Keeps the lens of the URL, if it names one; an empty one ends it.

    The name of a saved context that the caller cannot read changes nothing, and a message says so. So does a user whom
    the caller does not keep.
    """
    if (key := request.GET.get(PARAMETER)) is None:
        return
    key = key.strip()[:MAX_LENGTH]
    if not key:
        request.session.pop(PARAMETER, None)
    elif make_lens(key, caller):
        request.session[PARAMETER] = key
    else:
        kind, _, name = key.partition(":")
        messages.error(request, f"{'Saved context' if kind == 'saved' else 'Own user'} {name} not found.")


def find_lens(request: HttpRequest, caller: Caller) -> Lens | None:
    """The lens of the URL, or of the session. One or two queries for a saved context."""
    if not _is_of_playground(request.path):
        choose_lens(request, caller)
    return make_lens(request.session.get(PARAMETER, ""), caller)


def make_lens(key: str, caller: Caller) -> Lens | None:
    """The lens with this value of the parameter; None without one, or if the caller cannot read the saved context."""
    if key.startswith(OWN):
        own, name = find_own_users(caller), key.removeprefix(OWN)
        user = _find_user(own.pk, own.kept_at, name) if own else None
        return _look_as(user) if user else None
    if not key.startswith(SAVED):
        return Lens(f"userId {key}", {"userId": key}, {"context.userId": key}, key) if key else None
    saved = SavedContext.objects.readable_by(caller).filter(name=key.removeprefix(SAVED)).first()
    return Lens(saved.name, saved.context, {"saved": saved.name}, key, saved) if saved else None


@lru_cache(maxsize=20)  # every page reads its lens; a file kept later has another time
def _find_user(pk: int, kept_at: datetime, name: str) -> Mapping[str, str] | None:
    own = OwnUsers.objects.filter(pk=pk, kept_at=kept_at).first()
    return next((user for user in load_own_users(own) if name_user(user)[1] == name), None) if own else None


def name_user(user: Mapping[str, str]) -> tuple[str, str]:
    """The field and the value that name one of one's own users."""
    field = next((field for field in ("userId", "sessionId") if user.get(field)), next(iter(user), ""))
    return field, user.get(field, "")


def _look_as(user: Mapping[str, str]) -> Lens:
    field, value = name_user(user)
    query = {f"context.{name}": text for name, text in user.items()}
    return Lens(f"{field} {value}", nest_context(user), query, f"{OWN}{value}")


def _is_of_playground(path: str) -> bool:
    """Whether the parameter is another one on this page, or chooses nothing yet."""
    return path.startswith((reverse("playground"), reverse("lens")))


def tell_flags(lens: Lens, places: Collection[Place], flags: Collection[Flag]) -> dict[Place, Told]:
    """What these active flags are for the lens now. Six queries, for any number of flags and environments."""
    now = timezone.now()
    versions = FlagVersions([flag.pk for flag in flags], now)
    ids = {flag.name: flag.pk for flag in flags}
    told = {}
    for environment in sorted({environment for _, environment, _ in places}):
        chosen = [place for place in places if place[1] == environment]
        read = versions.read([ids[name] for _, _, name in chosen], environment, now)
        for place, shares in zip(chosen, evaluate_for(lens, read, environment, chosen, now), strict=True):
            told[place] = tell(shares, lens, place)
    return told


def evaluate_for(
    lens: Lens, read: Definitions, environment: str, places: Iterable[Place], at: datetime
) -> Iterator[Shares]:
    """The answers of these flags in a state, which includes their parents, at a moment."""
    results = StateResults(compile_flags(read, environment), ContextTable([Context(lens.context).at(at)]))
    for _, _, name in places:
        [shares] = (shares for shares, mask in results.results(name).items() if mask & 1)
        yield shares


def make_why_url(lens: Lens, place: Place) -> str:
    project, environment, flag = place
    query = urlencode({"environment": environment, PARAMETER: lens.key})
    return f"{reverse('flag-why', args=[project, flag])}?{query}"


def tell(shares: Shares, lens: Lens, place: Place) -> Told:
    url = make_why_url(lens, place)
    states = {answer.state for answer, _ in shares}
    if State.UNKNOWN in states:
        return Told("Can't tell", "unknown", url)
    if len(states) > 1:
        on = sum(float(share) for answer, share in shares if answer.state is State.ON)
        return Told(f"≈ {format_percent(100 * on)} of calls", "unknown", url)
    if State.OFF in states:
        return Told("Off", "off", url)
    variants = {answer.variant for answer, _ in shares}
    variant = next(iter(variants)) if len(variants) == 1 else None
    return Told(f"On · {variant}" if variant else "On", "on", url)


class Offer(NamedTuple):
    key: str
    name: str
    about: str


class LensPage(ConsolePage):
    """/lens/?as=…: chooses or ends it, and goes back. Without ``as``, saved contexts and own users to choose from."""

    http_method_names = ["get", "head"]
    template_name = "playground/lens.html"
    title = "Look as a user"

    @property
    def is_typing(self) -> bool:
        return "HX-Request" in self.request.headers

    def get_template_names(self) -> list[str]:
        return ["playground/lens_offers.html"] if self.is_typing else super().get_template_names()

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if PARAMETER not in request.GET or self.is_typing:
            text = request.GET.get(PARAMETER if self.is_typing else "q", "").strip()
            offers = [*self.offer_saved(text), *self.offer_own(text.casefold())]
            back = read_next_page(request)
            return self.render_to_response(self.get_context_data(offers=offers, text=text, back=back))
        choose_lens(request, self.caller)
        return HttpResponseRedirect(_drop_lens(read_next_page(request)) or reverse("all-flags"))

    def offer_saved(self, text: str) -> Iterator[Offer]:
        for saved in SavedContext.objects.readable_by(self.caller).filter(name__icontains=text)[:OFFERED]:
            yield Offer(f"{SAVED}{saved.name}", saved.name, _say_fields(flatten_context(saved.context)))

    def offer_own(self, text: str) -> Iterator[Offer]:
        own = find_own_users(self.caller)
        users = load_own_users(own) if own else ()
        found = (user for user in users if any(text in value.casefold() for value in user.values()))
        for user in islice(found, OFFERED):
            field, value = name_user(user)
            rest = {name: text for name, text in user.items() if name != field}
            yield Offer(f"{OWN}{value}", f"{field} {value}", _say_fields(rest))


def _say_fields(fields: Mapping[str, str]) -> str:
    return clip(" · ".join(f"{name} {text}" for name, text in fields.items()), MAX_LENGTH)


def _drop_lens(url: str) -> str:
    """The URL without a choice of its own, which would undo the present one."""
    path, mark, query = url.partition("?")
    if not mark or _is_of_playground(path):
        return url
    kept = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != PARAMETER]
    return f"{path}?{urlencode(kept)}" if kept else path


MAX_EVENTS = 100
"""Events whose flags are evaluated, the newest changes first. Nothing is said about others."""
MOMENT = timedelta(microseconds=1)


class Noticed(NamedTuple):
    """What the lens got of the first ``flag`` of the change that it noticed; equal answers if it noticed none."""

    flag: str
    before: Told
    after: Told

    @property
    def is_other(self) -> bool:
        return self.before.text != self.after.text


def notice_changes(lens: Lens, changes: Sequence[NoticedChange], environment: str) -> dict[int, Noticed]:
    """By the newest event of each change. Nothing about flags that are gone, or before versions.

    Seven queries, and one for each state with other segments than the one before.
    """
    events = [
        (change.event.pk, event)
        for change in changes
        for event in {row.event.pk: row.event for row in change.change.rows}.values()
        if event.feature
    ][:MAX_EVENTS]
    if not events:
        return {}
    flags = {flag.name: flag for flag in Flag.objects.filter(name__in={event.feature for _, event in events})}
    since = min(event.created_at for _, event in events) - MOMENT
    versions = FlagVersions([flag.pk for flag in flags.values()], since)
    noticed: dict[int, Noticed] = {}
    for key, event in events:
        flag = flags.get(event.feature or "")
        if (
            flag is None
            or event.created_at <= versions.known_since
            or (key in noticed and noticed[key].is_other)
        ):
            continue
        sides = [
            tell_at(lens, flag, environment, at, versions)
            for at in (event.created_at - MOMENT, event.created_at)
        ]
        one = Noticed(flag.name, *sides)
        if key not in noticed or one.is_other:
            noticed[key] = one
    return noticed


def tell_at(lens: Lens, flag: Flag, environment: str, at: datetime, versions: FlagVersions) -> Told:
    place = (flag.project_id, environment, flag.name)
    [shares] = evaluate_for(lens, versions.read([flag.pk], environment, at), environment, [place], at)
    return tell(shares, lens, place)
