"""/environments/NAME/revert?at=…: previews setting an environment back to a moment, and does it."""

from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse, reverse_lazy
from django.utils.http import urlencode

from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.errors import AppError
from flagadmin.core.http.fields import validate_body
from flagadmin.core.http.responses import iso
from groups.console import SubmitPage, read_next_page
from projects.access import access_environment
from projects.console import flag_url
from projects.drafts import DraftingPage, FlagEdit
from projects.projects.queries import needs_request
from projects.projects.required_comments import requires_comment
from projects.reverts.actions import revert_environment
from projects.reverts.change_plan import tell_done
from projects.reverts.environment_plan import FlagBack, plan_environment
from projects.reverts.parts import ShownPart, format_moment, list_part_edits, name_segments, show_part
from projects.reverts.serializers import SetBackQuery


class BackRow(NamedTuple):
    """A flag with a checkbox."""

    name: str
    project: str
    url: str
    shown: ShownPart
    chosen: bool


class SetBackPage(DraftingPage, SubmitPage):
    """Users can leave out any flag. A project that needs change requests has a page of its own, because a request is of
    one project.
    """

    title = "Set {page.environment} back"
    parents = (("What happened", reverse_lazy("what-happened")),)
    template_name = "reverts/environment.html"
    shown_by = "get"
    unchanged = "Nobody changes."
    api_call = "POST /api/admin/environments/{name}/revert"

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.parameters = request.POST if request.method == "POST" else request.GET

    def find(self) -> None:
        """Raises NotFound, NoAccess, ValidationError, Conflict."""
        self.environment = access_environment(self.kwargs["name"]).name
        asked = {"at": self.parameters.get("at", ""), "projects": self.parameters.getlist("project")}
        values = validate_body(SetBackQuery(data=asked))
        self.at, projects = values["at"], values["projects"]
        plan = plan_environment(self.environment, self.at, projects=projects, caller=self.caller)
        guarded = [project for project in plan.projects if needs_request(project, [self.environment])]
        apart = guarded if len(plan.projects) > 1 else []
        self.plan = plan.only(set(plan.projects) - set(apart))
        self.others = [(project, len(plan.only([project]).flags)) for project in apart]

    def submit(self) -> str:
        done = revert_environment(
            self.environment,
            self.at,
            projects=self.plan.projects,
            flags=[row.flag.name for row in self.chosen()],
            expected=frozenset(filter(None, [self.parameters.get("expected", "")])) or None,
            caller=self.caller,
        )
        number = len(done.flags)
        flags = f"{number} flag{'' if number == 1 else 's'}"
        tell_done(
            self.request,
            f"Set {flags} of {self.environment} back to {format_moment(self.at)}.",
            caller=self.caller,
        )
        return self.get_success_url()

    def refuse(self, error: AppError) -> HttpResponseBase:
        self.find()
        return super().refuse(error)

    def is_chosen(self, row: FlagBack) -> bool:
        return "shown" not in self.parameters or row.flag.name in self.parameters.getlist("flag")

    def chosen(self) -> list[FlagBack]:
        return [row for row in self.plan.flags if self.is_chosen(row)]

    def get_edits(self) -> list[FlagEdit]:
        self.find()
        edits = (list_part_edits(row.flag, [row.planned.part]) for row in self.chosen())
        return [edit for listed in edits for edit in listed]

    def get_api_body(self) -> dict[str, Any]:
        body = {"at": iso(self.at), "projects": self.plan.projects}
        chosen = [row.flag.name for row in self.chosen()]
        return body if len(chosen) == len(self.plan.flags) else {**body, "features": chosen}

    def get_success_url(self) -> str:
        address = reverse("what-happened")
        return read_next_page(self.request) or f"{address}?{urlencode({'environment': self.environment})}"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        segments = name_segments(row.planned for row in self.plan.flags)
        rows = [
            BackRow(
                row.flag.name,
                row.flag.project_id,
                flag_url(row.flag.project_id, row.flag.name),
                show_part(row.planned, segments),
                self.is_chosen(row),
            )
            for row in self.plan.flags
        ]
        query = {"at": iso(self.at), "next": read_next_page(self.request)}
        return super().get_context_data(
            environment=self.environment,
            moment=self.at,
            rows=rows,
            kept_out=self.plan.kept_out,
            segments=self.plan.segments,
            others=[
                (project, number, f"?{urlencode({**query, 'project': project})}")
                for project, number in self.others
            ],
            projects=self.plan.projects,
            places=[(project, self.environment) for project in self.plan.projects],
            touches=[(row.name, self.environment) for row in rows],
            comment_required=requires_comment(set(self.plan.projects), {self.environment}),
            expected=hash_document(self.plan.document),
            back=self.get_success_url(),
            **kwargs,
        )
