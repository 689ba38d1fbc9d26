"""/projects/ID/features/NAME/: the console page of one flag."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.urls import reverse

from flagadmin.audit.sentences import sentence
from flagadmin.console.lists import OFFERED, Listing, curl_for
from groups.console import ConsolePage, Crumbs
from groups.permissions import Permission
from projects.access import access_flag, readable_projects
from projects.console import allowed, api_path, flag_url, project_crumbs, project_url
from projects.flags.dependencies import possible_parents
from projects.flags.flag_rows import Toggle, toggle_of
from projects.flags.lifecycle_queries import lifecycle_document
from projects.flags.queries import flag_document
from projects.flags.usage import users_of
from projects.history.queries import readable_events
from projects.models import Flag, Segment, TagType
from projects.sentences import Summary, strategy_summary, variants_sentence

SHOWN_EVENTS = 10
MOST_STRATEGIES = 30  # in all environments; above this, each environment shows only its first few
FIRST_STRATEGIES = 3
SHOWN_ROWS = 20  # parents, children or applications on one page
SHOWN_TAGS = 50


@dataclass(frozen=True, slots=True)
class StrategyLine:
    """A strategy in the list.

    ``up`` and ``down`` are all the ids in the order after moving it one step, or "" if it cannot move.
    """

    id: str
    number: int
    title: str
    disabled: bool
    summary: Summary
    variants: str
    edit: str
    up: str
    down: str


@dataclass(frozen=True, slots=True)
class FlagInEnvironment:
    name: str
    switch: Toggle
    strategies: Sequence[StrategyLine]
    more_strategies: int
    all_strategies: str
    variants: str
    yes: int
    no: int
    evaluate: str
    new_strategy: str
    edit_variants: str
    default_strategy: str
    may_change: bool


class FlagPage(ConsolePage):
    template_name = "flags/flag.html"

    def get_title(self) -> str:
        return self.kwargs["name"]

    def crumbs(self) -> Crumbs:
        return project_crumbs(self.flag.project)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        caller, project_id = self.caller, self.kwargs["project_id"]
        flag = self.flag = access_flag(caller, project_id, self.kwargs["name"])
        document = flag_document(flag, caller=caller)
        events = readable_events(caller).filter(project=project_id, feature=flag.name).order_by("-id")
        may = allowed(
            caller,
            project_id,
            edit=Permission.UPDATE_FEATURE,
            archive=Permission.DELETE_FEATURE,
            move=Permission.MOVE_FEATURE_TOGGLE,
            depend=Permission.UPDATE_FEATURE_DEPENDENCY,
            clone=Permission.CREATE_FEATURE,
        )
        return super().get_context_data(
            flag=flag,
            url=flag_url(project_id, flag.name),
            project_url=project_url(project_id),
            document=document,
            places=list(places(flag, document, self)),
            users=self.paged(users_of([flag.pk]).get(flag.pk, []), "users-page"),
            flag_parents=self.paged(document["dependencies"], "parents-page"),
            children=self.paged(document["children"], "children-page"),
            life=lifecycle_document(flag),
            tags=self.paged(flag.tags.order_by("tag_type", "value"), "tags-page", SHOWN_TAGS),
            events=[(event, sentence(event)) for event in events[:SHOWN_EVENTS]],
            may=may,
            tag_types=TagType.objects.values_list("name", flat=True) if may["edit"] else [],
            parents=self.parents(flag) if may["depend"] else [],
            targets=self.targets() if may["move"] else [],
            **kwargs,
        )

    def paged(self, rows: Any, page_name: str, per_page: int = SHOWN_ROWS) -> Listing[Any]:
        return Listing(self.request.GET, rows, columns=(), per_page=per_page, page_name=page_name)

    def parents(self, flag: Flag) -> list[str]:
        if flag.is_archived:
            return []
        return possible_parents(flag)[:OFFERED]

    def targets(self) -> list[str]:
        """The other projects to which this caller may move flags."""
        ids = readable_projects(self.caller).filter(archived_at=None).values_list("id", flat=True)
        may = Permission.MOVE_FEATURE_TOGGLE
        own = self.kwargs["project_id"]
        return [name for name in ids if name != own and self.caller.can(may, project=name)][:OFFERED]

    def curl(self) -> str:
        return curl_for(self.request, "GET", api_path(self.kwargs["project_id"], self.kwargs["name"]))


def places(flag: Flag, document: dict[str, Any], page: ConsolePage) -> Iterator[FlagInEnvironment]:
    usable = Q(project=None) | Q(project=flag.project_id)
    segments = dict(Segment.objects.filter(usable).values_list("id", "name"))
    own, caller = (flag.project_id, flag.name), page.caller
    full = page.request.GET.get("environment")
    are_few = sum(len(place["strategies"]) for place in document["environments"]) <= MOST_STRATEGIES
    for place in document["environments"]:
        here = {"project": flag.project_id, "environment": place["name"]}
        query = urlencode({"environmentId": place["name"]})
        all_shown = are_few or full == place["name"]
        lines = strategy_lines(place["strategies"], segments, f"{flag_url(*own, 'strategy-edit')}?{query}")
        shown = list(lines) if all_shown else list(islice(lines, FIRST_STRATEGIES))
        yield FlagInEnvironment(
            name=place["name"],
            switch=toggle_of(flag, place, caller=caller),
            strategies=shown,
            more_strategies=len(place["strategies"]) - len(shown),
            all_strategies="?" + urlencode({"environment": place["name"]}),
            variants=variants_sentence(place["variants"]),
            yes=place["yes"],
            no=place["no"],
            evaluate=f"{reverse('playground')}?{urlencode({**here, 'q': flag.name})}",
            new_strategy=f"{flag_url(*own, 'strategy-new')}?{query}"
            if not flag.is_archived and caller.can(Permission.CREATE_FEATURE_STRATEGY, **here)
            else "",
            edit_variants=f"{flag_url(*own, 'flag-variants')}?{query}"
            if not flag.is_archived and caller.can(Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS, **here)
            else "",
            default_strategy=reverse("default-strategy", args=[flag.project_id, place["name"]]),
            may_change=not flag.is_archived and caller.can(Permission.UPDATE_FEATURE_STRATEGY, **here),
        )


def strategy_lines(
    strategies: Sequence[dict[str, Any]], segments: dict[int, str], edit: str
) -> Iterator[StrategyLine]:
    ids = [strategy["id"] for strategy in strategies]
    for index, strategy in enumerate(strategies):
        yield StrategyLine(
            id=strategy["id"],
            number=index + 1,
            title=strategy["title"] or "",
            disabled=strategy["disabled"],
            summary=strategy_summary(strategy, segments=segments),
            variants=variants_sentence(strategy["variants"]),
            edit=f"{edit}&{urlencode({'strategyId': strategy['id']})}",
            up=swapped(ids, index - 1) if index > 0 else "",
            down=swapped(ids, index) if index + 1 < len(ids) else "",
        )


def swapped(ids: Sequence[str], index: int) -> str:
    """The ids, separated by commas, with the one at ``index`` and the next one swapped."""
    order = list(ids)
    order[index], order[index + 1] = order[index + 1], order[index]
    return ",".join(order)
