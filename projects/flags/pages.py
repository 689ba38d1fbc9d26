"""/projects/ID/features/NAME/: the console page of one flag.

…/payload-schema: the page that edits the JSON Schema of a flag's JSON payloads.

Turns a flag on or off from the console, with a confirmation for production environments.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

import orjson
from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.utils.functional import cached_property

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import ValidationError
from flagadmin.core.http.fields import read_id
from flagadmin.core.http.json_bodies import parse_json
from flagadmin.core.lists.pages import MAX_OPTIONS, Listing, change_query, make_csv_response
from groups.console import Breadcrumbs, ConsolePage, EditPage, Permission
from projects.access import access_flag, find_project_environment
from projects.console import OnFlagPage, check_permissions, flag_url, get_project_breadcrumbs, read_turned
from projects.drafts import DraftingPage, FlagEdit, draft_plan
from projects.flags.dependencies.actions import list_possible_parents
from projects.flags.environments.actions import disable_flag, enable_flag
from projects.flags.flag_document import make_environment_cards, make_splits, read_flag_document
from projects.flags.history import FlagHistory, read_flag_history
from projects.flags.insights.evaluations import (
    Evaluations,
    FlagUser,
    find_last_evaluation,
    read_evaluations_by_day,
    read_evaluations_by_hour,
    read_users,
)
from projects.flags.insights.queries import list_using_applications
from projects.flags.lists.queries import note_visit
from projects.flags.payloads.actions import schema_document, set_schema
from projects.flags.queries import read_current_stage, read_strategy_documents
from projects.history.queries import readable_events
from projects.models import Dependency, Environment, Flag, FlagType, Segment, Strategy, TagType
from projects.projects.queries import needs_request
from projects.projects.required_comments import requires_comment
from projects.references.actions import read_references
from projects.reverts.change_plan import UndoableAction
from projects.strategies.planned import PlannedFlag, make_added_strategy
from projects.strategies.sentences import Summary, summarize_strategy

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


class PayloadSchemaForm(forms.Form):
    schema = forms.CharField(
        required=False,
        label="JSON Schema",
        widget=forms.Textarea(attrs={"rows": 16, "class": "mono", "spellcheck": "false"}),
        help_text="Draft 2020-12. Leave empty to allow any JSON.",
    )

    def clean_schema(self) -> Any:
        text = self.cleaned_data["schema"].strip()
        try:
            return parse_json(text.encode()) if text else None
        except ValidationError as error:
            raise forms.ValidationError(error.message.replace("The body", "It")) from error


class PayloadSchemaPage(OnFlagPage, EditPage):
    title = "Payload schema of {name}"
    template_name = "console/form.html"
    form_class = PayloadSchemaForm
    button = "Save payload schema"
    api_call = "PUT /api/admin/projects/{project_id}/features/{name}/payload-schema"

    def find(self) -> None:
        """Raises NotFound, NoAccess."""
        permission = Permission.UPDATE_FEATURE
        self.flag = access_flag(self.caller, *self.place, archived=False, permission=permission)
        self.stored = schema_document(self.flag)

    def get_events(self) -> QuerySet[AuditEvent]:
        changes = readable_events(self.caller).filter(type=EventType.FEATURE_PAYLOAD_SCHEMA_UPDATED)
        return changes.filter(feature=self.flag.name)

    def get_current_document(self) -> dict[str, Any]:
        return self.stored

    def get_initial(self) -> dict[str, Any]:
        schema = self.stored["schema"]
        text = "" if schema is None else orjson.dumps(schema, option=orjson.OPT_INDENT_2).decode()
        return {"schema": text}

    def submit(self, form: PayloadSchemaForm) -> str:
        schema = form.cleaned_data["schema"]
        set_schema(*self.place, schema, expected=self.version.expected, caller=self.caller)
        done = "Removed" if schema is None else "Saved"
        return self.done(f"{done} the payload schema of {self.flag.name}.", flag_url(*self.place))

    def get_api_body(self) -> dict[str, Any]:
        return {"schema": self.stored["schema"] or {"type": "object"}}


MAX_USERS = 5
MAX_SUMMARIES = 10  # strategies listed individually


class ToggleFlag(OnFlagPage, DraftingPage, UndoableAction):
    """Turns a flag on or off in one environment: directly, or in production after a confirmation.

    The confirmation is a row of the list, a dialog, or a page without JavaScript.
    """

    title = "Turn {page.turned} {name} in {page.environment}"
    http_method_names = ["get", "post"]
    shown_by = "get"
    api_call = (
        "POST /api/admin/projects/{project_id}/features/{name}/environments/{page.environment}/{page.turned}"
    )

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        form = request.POST if request.method == "POST" else request.GET
        self.environment = form.get("environment", request.GET.get("environment", ""))
        self.form = form

    @cached_property
    def turned(self) -> str:
        return read_turned(self.form)

    def get_template_names(self) -> list[str]:
        if "HX-Request" not in self.request.headers:
            return ["flags/toggle_confirm.html"]
        return ["flags/toggle_row.html" if "row" in self.request.GET else "flags/toggle_dialog.html"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        read_turned(self.form)
        if "confirmed" not in request.POST and self.asks_first():
            return HttpResponseRedirect(self.question())
        return super().post(request, *args, **kwargs)

    def question(self) -> str:
        """The URL of the confirmation page, which users can leave and return to, unlike an answer to a form."""
        query = {"environment": self.environment, "enabled": self.turned, "next": self.get_redirect_url()}
        if "row" in self.request.GET:  # of a list, below which it is shown
            query["row"] = "yes"
        return f"{self.request.path}?{urlencode(query)}"

    def asks_first(self) -> bool:
        """Whether to ask first: in production, and in places that need a change request."""
        production = Environment.objects.production().filter(name=self.environment)
        return production.exists() or needs_request(self.kwargs["project_id"], [self.environment])

    def act(self) -> str:
        project_id, name = self.kwargs["project_id"], self.kwargs["name"]
        switch = enable_flag if self.turned == "on" else disable_flag
        self.changed = switch(project_id, name, self.environment, caller=self.caller)
        if not self.changed:
            return f"{name} is already {self.turned} in {self.environment}."
        return f"Turned {self.turned} {name} in {self.environment}."

    def tell(self, done: str) -> None:
        """Reports the result, with an Undo button unless another user was first, whose change it would undo."""
        if self.changed:
            super().tell(done)
        else:
            messages.info(self.request, done)

    def get_success_url(self) -> str:
        return flag_url(*self.place)

    def find(self) -> None:
        """Raises NotFound, NoAccess."""
        self.flag = access_flag(self.caller, *self.place, archived=False)
        project_id = self.flag.project_id
        self.project_environment = find_project_environment(project_id, self.environment)
        permission = Permission.UPDATE_FEATURE_ENVIRONMENT
        self.caller.check(permission, project=project_id, environment=self.environment)

    def get_edits(self) -> list[FlagEdit]:
        self.find()
        turn = partial(PlannedFlag.switch, enabled=self.turned == "on")
        return list(draft_plan([self.flag], self.environment, turn, caller=self.caller))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The context of the confirmation page."""
        summaries = self.summaries()
        users = [user for user in read_users([self.flag.pk]).get(self.flag.pk, []) if self.uses(user)]
        return super().get_context_data(
            flag=self.flag,
            environment=self.environment,
            turned=self.turned,
            summaries=summaries[:MAX_SUMMARIES],
            more_summaries=max(len(summaries) - MAX_SUMMARIES, 0),
            users=users[:MAX_USERS],
            more_users=max(len(users) - MAX_USERS, 0),
            last_evaluation=None if users else find_last_evaluation([self.flag.pk], self.environment),
            children=self.children(),
            comment_required=requires_comment([self.flag.project_id], [self.environment]),
            back=self.get_redirect_url(),
            **kwargs,
        )

    def uses(self, user: FlagUser) -> bool:
        return user.environment == self.environment

    def summaries(self) -> list[Summary]:
        """Describes the enabled strategies or, without any, the one added by turning the flag on."""
        rows = Strategy.objects.filter(flag=self.flag, environment=self.environment, disabled=False)
        documents = read_strategy_documents(list(rows.order_by("sort_order", "created_at", "pk")))
        if not documents and self.turned == "on":
            documents = [make_added_strategy(self.flag, self.project_environment)]
        ids = {segment for document in documents for segment in document["segments"]}
        names = Segment.objects.names(ids)
        return [summarize_strategy(document, segments=names) for document in documents]

    def children(self) -> list[str]:
        dependencies = Dependency.objects.filter(parent=self.flag, flag__archived_at=None)
        return list(dependencies.order_by("flag__name").values_list("flag__name", flat=True))
