"""/projects/ID/features/NAME/: the console page of one flag."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, JsonResponse

from flagadmin.core.http.parameters import read_id
from flagadmin.core.lists.pages import MAX_OPTIONS, Listing, change_query, make_csv_response
from groups.console import Breadcrumbs, ConsolePage, Permission
from projects.access import access_flag
from projects.console import OnFlagPage, check_permissions, flag_url, get_project_breadcrumbs
from projects.flags.dependencies.actions import list_possible_parents
from projects.flags.flag_document import read_flag_document
from projects.flags.flag_places import make_environment_cards, make_splits
from projects.flags.history import FlagHistory, read_flag_history
from projects.flags.insights.evaluations import (
    Evaluations,
    find_last_evaluation,
    read_evaluations_by_day,
    read_evaluations_by_hour,
)
from projects.flags.insights.queries import list_using_applications
from projects.flags.lifecycle.queries import read_current_stage
from projects.flags.lists.recent import note_visit
from projects.models import Dependency, Flag, FlagType, TagType
from projects.references.queries import read_references

SHOWN_ROWS = 10  # parents, children or applications on one page
SHOWN_TAGS = 50
MONTH = "30d"  # ?period


class FlagPage(ConsolePage):
    """``?environment=NAME`` shows that one in full, ``?history=NAME`` its changes, ``?version=EVENT`` the links of that
    one, ``?table=yes`` the line of time as a table, ``?period=30d`` 30 days.

    ``?format=json`` returns the flag as the API does, ``?format=csv`` its evaluations.
    """

    template_name = "flags/flag.html"
    title = "{name}"
    api_call = "GET /api/admin/projects/{project_id}/features/{name}"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return get_project_breadcrumbs(self.flag.project)

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.flag = access_flag(self.caller, kwargs["project_id"], kwargs["name"])
        self.document = read_flag_document(self.flag, caller=self.caller)
        self.environments = [place["name"] for place in self.document["environments"]]
        self.by_day = request.GET.get("period") == MONTH
        match request.GET.get("format"):
            case "json":
                name = f'attachment; filename="{self.flag.name}.json"'
                return JsonResponse(self.document, headers={"Content-Disposition": name})
            case "csv":
                return self.csv()
        if "HX-Request" not in request.headers:
            note_visit(request.session, self.flag.name)
        return super().get(request, *args, **kwargs)

    def evaluations(self) -> Mapping[str, Evaluations]:
        counted = read_evaluations_by_day if self.by_day else read_evaluations_by_hour
        return counted(self.flag.pk, self.environments)

    def csv(self) -> HttpResponseBase:
        lines = (
            (environment, count.at, count.yes, count.no)
            for environment, evaluations in self.evaluations().items()
            for count in evaluations.counts
        )
        return make_csv_response(
            self.request, f"{self.flag.name}-evaluations", ("Environment", "From (UTC)", "On", "Off"), lines
        )

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        caller, flag, document, query = self.caller, self.flag, self.document, self.request.GET
        evaluations = self.evaluations()
        focus = query.get("environment", "")
        may = check_permissions(
            caller,
            flag.project_id,
            edit=Permission.UPDATE_FEATURE,
            archive=Permission.DELETE_FEATURE,
            move=Permission.MOVE_FEATURE_TOGGLE,
            depend=Permission.UPDATE_FEATURE_DEPENDENCY,
            clone=Permission.CREATE_FEATURE,
        )
        users = self.page(list_using_applications(flag), "users-page")
        return super().get_context_data(
            flag=flag,
            url=flag_url(flag.project_id, flag.name),
            document=document,
            type_name=FlagType.objects.filter(pk=flag.type).values_list("name", flat=True).first()
            or flag.type,
            places=sorted(
                make_environment_cards(flag, document, evaluations, focus=focus, caller=caller),
                key=lambda place: not place.production,
            ),
            periods=self.periods(),
            period="30 days" if self.by_day else "24 hours",
            unit="day" if self.by_day else "hour",
            splits=make_splits(document, evaluations),
            users=users,
            references=read_references([flag.pk])[flag.pk],
            last_evaluation=None if users.total else find_last_evaluation([flag.pk]),
            needs=self.page(document["dependencies"], "parents-page"),
            children=self.page(find_children(flag), "children-page"),
            stage=read_current_stage(flag),
            tags=self.page(flag.tags.order_by("tag_type", "value"), "tags-page", SHOWN_TAGS),
            history=self.history(),
            may=may,
            tag_types=TagType.objects.values_list("name", flat=True) if may["edit"] else [],
            parents=self.offered_parents() if may["depend"] else [],
            **kwargs,
        )

    def history(self) -> FlagHistory:
        query = self.request.GET
        before = read_id(query.get("before", ""))
        version = read_id(query.get("version", ""))
        return read_flag_history(
            self.flag,
            self.environments,
            query.get("history", ""),
            before=before,
            version=version,
            caller=self.caller,
        )

    def periods(self) -> list[tuple[str, str, None, bool]]:
        query = self.request.GET
        return [
            ("24 hours", change_query(query, period=None), None, not self.by_day),
            ("30 days", change_query(query, period=MONTH), None, self.by_day),
        ]

    def page(self, rows: Any, page_name: str, per_page: int = SHOWN_ROWS) -> Listing[Any]:
        return Listing(self.request.GET, rows, columns=(), per_page=per_page, page_name=page_name)

    def offered_parents(self) -> list[str]:
        return [] if self.flag.is_archived else list_possible_parents(self.flag, limit=MAX_OPTIONS)


def find_children(flag: Flag) -> Any:
    """The active flags that depend on it, in any project."""
    rows = Dependency.objects.filter(parent=flag, flag__archived_at=None)
    return rows.select_related("flag").order_by("flag__name")


class InsightsPage(OnFlagPage):
    """An address of earlier versions, which leads to the page of the flag."""

    http_method_names = ["get", "head"]

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        access_flag(self.caller, *self.place)
        return HttpResponseRedirect(flag_url(*self.place))
