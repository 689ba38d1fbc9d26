"""The lens: as whom one looks at flags, on every page: a user id, or a saved context. ``?as=`` chooses it; the session
keeps it until it is ended."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.lists.charts import format_percent
from groups.access import Caller
from groups.console import ConsolePage, read_next_page
from playground.comparison.results import Shares, StateResults
from playground.comparison.table import ContextTable
from playground.engine.context import Context
from playground.engine.outcomes import State
from playground.models import SavedContext
from playground.saved_contexts.expectations import compile_flags, read_stored_flags
from projects.flags.lists.people import Place

PARAMETER, SAVED = "as", "saved:"
"""The URL parameter, also the key in the session; what a value begins with that is the name of a saved context."""
MAX_LENGTH = 200


class Lens(NamedTuple):
    """``query``: the parameters of the playground for the same context."""

    name: str
    context: Mapping[str, Any]
    query: Mapping[str, str]


class Told(NamedTuple):
    """What a flag is for the lens. ``css``: a class of pills; ``url``: why."""

    text: str
    css: str
    url: str


def choose_lens(request: HttpRequest) -> None:
    """Keeps the lens of the URL, if it names one; an empty one ends it."""
    if (key := request.GET.get(PARAMETER)) is None:
        return
    if key.strip():
        request.session[PARAMETER] = key.strip()[:MAX_LENGTH]
    else:
        request.session.pop(PARAMETER, None)


def find_lens(request: HttpRequest, caller: Caller) -> Lens | None:
    """The lens of the URL, or of the session. One query for a saved context, which the caller must be able to read."""
    if not request.path.startswith(reverse("playground")):  # whose parameter is another one
        choose_lens(request)
    key = request.session.get(PARAMETER, "")
    if not key.startswith(SAVED):
        return Lens(f"userId {key}", {"userId": key}, {"context.userId": key}) if key else None
    saved = SavedContext.objects.readable_by(caller).filter(name=key.removeprefix(SAVED)).first()
    return Lens(saved.name, saved.context, {"saved": saved.name}) if saved else None


def tell_flags(lens: Lens, places: Collection[Place]) -> dict[Place, Told]:
    """What these active flags are for the lens now. At most eight queries for each environment."""
    told = {}
    for environment in sorted({environment for _, environment, _ in places}):
        chosen = [place for place in places if place[1] == environment]
        projects, names = {project for project, _, _ in chosen}, {name for _, _, name in chosen}
        snapshot = compile_flags(read_stored_flags(projects, environment, names), environment)
        results = StateResults(snapshot, ContextTable([Context(lens.context).at(timezone.now())]))
        for place in chosen:
            [shares] = (shares for shares, mask in results.results(place[2]).items() if mask & 1)
            told[place] = _tell(shares, lens, place)
    return told


def _tell(shares: Shares, lens: Lens, place: Place) -> Told:
    query = urlencode({"environment": place[1], **lens.query})
    url = f"{reverse('playground-flag', args=[place[2]])}?{query}"
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


class LensPage(ConsolePage):
    """/lens/?as=…: chooses or ends it, and goes back."""

    http_method_names = ["get", "head"]

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        choose_lens(request)
        return HttpResponseRedirect(read_next_page(request) or reverse("all-flags"))
