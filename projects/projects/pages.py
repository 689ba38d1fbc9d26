"""/projects/: lists the readable projects; /projects/new/: creates one.

/projects/ID/environments/ENVIRONMENT/approvals: the number of approvals for changes, by their effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.errors import ValidationError, pluralize
from groups.console import ActionPage, Breadcrumbs, Column, EditPage, Filter, FormPage, ListPage, Permission
from groups.models import Group
from projects.access import access_project, find_project_environment
from projects.console import PROJECTS, get_project_breadcrumbs, project_url
from projects.history.queries import ACCESS_TYPES, readable_events
from projects.models import Environment, FavoriteProject, Project, ProjectEnvironment
from projects.projects.actions import create_project, set_project_favorite
from projects.projects.environments import POLICY_PERMISSIONS, make_policy_document, set_policy
from projects.projects.head import make_project_head
from projects.projects.queries import annotate_flag_counts, compute_health, count_flags
from projects.projects.required_comments import CONDITIONS, MAX_APPROVALS, MAX_RULES, TAKES, Rule
from projects.projects.settings import ACCESS


class ProjectsPage(ListPage):
    template_name = "projects/projects.html"
    title = "Projects"
    lead = "Flags belong to projects; access is granted per project."
    noun = "project,projects"
    new = ("project-new", "New project")
    creates = Permission.CREATE_PROJECT
    table_class = "stack projects"
    columns = (
        Column("name", "Project", by=("name",), csv="pk", cell='{% include "projects/name.html" %}'),
        Column("active_flags", "Active flags", by=("active_flags",), numeric=True),
        Column("on", "On in production", value="state.on", numeric=True),
        Column(
            "stale_flags",
            "Stale",
            by=("stale_flags", "name"),
            numeric=True,
            cell='{% if row.stale_flags %}<a class="amber" href="{{ row.url }}?state=stale">'
            "{{ row.stale_flags|grouped }}</a>{% else %}0{% endif %}",
        ),
        Column("archived_flags", "Archived flags", by=("archived_flags",), numeric=True),
        Column(
            "evaluations",
            "Evaluations, 24 h",
            value="state.evaluations",
            numeric=True,
            shown="compact",
            attributes='title="{{ row.state.evaluations|grouped }}"',
        ),
        Column("changed", "Last change", value="state.changed_at", shown="ago", css="short muted"),
        Column(
            "health",
            "Health",
            numeric=True,
            csv=lambda row: f"{row.state.health} %",
            cell="{{ row.state.health }} %",
            css="nw{% if row.state.health < 75 %} amber{% endif %}",
            attributes='title="Active flags that are neither stale nor past their expected lifetime"',
        ),
        Column(
            "environments",
            "Environments",
            csv=lambda row: ", ".join(row.environment_names),
            cell='{{ row.environment_names|cut:6|join:", " }}',
        ),
    )
    filters = (
        Filter("q", "Name or id", by=("name", "id", "description")),
        Filter("favorite", "Favorites", [("mine", "mine")]),
    )
    api_call = "GET /api/admin/projects"

    @property
    def archived(self) -> bool:
        return self.request.GET.get("show") == "archived"

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        favorites = FavoriteProject.objects.filter(user=self.caller.id, project=OuterRef("pk"))
        projects = Project.objects.readable_by(self.caller).archived(self.archived)
        links = ProjectEnvironment.objects.filter(project=OuterRef("pk"))
        ordered = links.order_by("environment__sort_order", "environment_id")
        counted = annotate_flag_counts(projects).annotate(
            favorite=Exists(favorites), environment_names=ArraySubquery(ordered.values("environment_id"))
        )
        if values["favorite"]:
            counted = counted.filter(favorite=True)
        return counted.order_by("-favorite", "name", "id")

    def complete(self, rows: list[Any]) -> list[Any]:
        states = read_project_states([row.pk for row in rows])
        for row in rows:
            row.url, row.state = project_url(row.pk), states[row.pk]
        return rows

    @property
    def none_yet(self) -> str:  # type: ignore[override]
        if self.archived:
            return "No archived projects."
        return "You have no projects. Ask an admin or a project owner for access."

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            archived=self.archived,
            segments=[
                ("Active", "?", None, not self.archived),
                ("Archived", "?show=archived", None, self.archived),
            ],
            **kwargs,
        )


class ModeField(forms.ChoiceField):
    """Who can see a project and propose changes, each choice with its meaning."""

    def __init__(self) -> None:
        super().__init__(
            label=ACCESS.label,
            choices=[(mode.value, f"{mode.value.title()}: {mode.label}") for mode in Project.Mode],
            initial=Project.Mode.OPEN,
            help_text=ACCESS.help,
        )


class ProjectForm(forms.Form):
    name = forms.CharField(max_length=255, widget=forms.TextInput(attrs={"autofocus": True}))
    id = forms.CharField(
        required=False,
        max_length=100,
        label="Id",
        help_text="Used in URLs; cannot be changed later. Letters, digits, - . _ ~. Made "
        "from the name by default.",
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false"}),
    )
    description = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 2}))
    mode = ModeField()
    environments = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple, help_text="Where its flags can be turned on."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = list(Environment.objects.values_list("name", flat=True))
        self.fields["environments"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]


class NewProjectPage(FormPage):
    template_name = "console/form.html"
    title = "New project"
    form_class = ProjectForm
    button = "Create project"
    parents = (PROJECTS,)
    api_call = "POST /api/admin/projects"
    api_example = {"id": "shop", "name": "Shop"}
    permission = Permission.CREATE_PROJECT

    def get_initial(self) -> dict[str, Any]:
        enabled = Environment.objects.filter(enabled=True)
        return {"environments": list(enabled.values_list("name", flat=True))}

    def submit(self, form: ProjectForm) -> str:
        values = dict(form.cleaned_data)
        environments = values.pop("environments")
        project = create_project(values, environments=environments, caller=self.caller)
        return self.done(f"Created project {project.name}.", project_url(project.pk))


class ProjectFavorite(ActionPage):
    """Adds the project to the user's favorites or removes it."""

    def act(self) -> str:
        project = access_project(self.caller, self.kwargs["project_id"])
        favorite = self.request.POST.get("favorite") == "on"
        set_project_favorite(project.pk, favorite, caller=self.caller)
        return f"{project.name} is {'now' if favorite else 'no longer'} one of your favorites."

    def get_success_url(self) -> str:
        return project_url(self.kwargs["project_id"])


_STATE = """
SELECT p.id,
       (SELECT count(DISTINCT f.id) FROM projects_flag f
          JOIN projects_flagenvironment s ON s.flag_id = f.id AND s.enabled
          JOIN projects_environment e ON e.name = s.environment_id AND e.type = 'production'
          JOIN projects_projectenvironment u ON u.project_id = f.project_id AND u.environment_id = s.environment_id
         WHERE f.project_id = p.id AND f.archived_at IS NULL),
       (SELECT coalesce(sum(t.yes + t.no), 0)::bigint FROM projects_usagetotal t
         WHERE t.project_id = p.id AND t.hour > %(since)s),
       (SELECT a.created_at FROM audit_auditevent a
         WHERE a.project = p.id AND NOT a.type = ANY(%(hidden)s) ORDER BY a.created_at DESC, a.id DESC LIMIT 1)
  FROM projects_project p WHERE p.id = ANY(%(projects)s)
"""


@dataclass(frozen=True, slots=True)
class ProjectState:
    """``on``: active flags that are on in production. ``evaluations``: in the last 24 hours, at most ten minutes old.

    ``health``: the percentage of active flags that are neither stale nor past their lifetime.
    """

    on: int
    evaluations: int
    changed_at: datetime | None
    health: int


def read_project_states(ids: Sequence[str]) -> dict[str, ProjectState]:
    """Reads the states by project, in two queries."""
    counts = count_flags(ids)
    since = timezone.now() - timedelta(hours=24)
    return {
        project: ProjectState(on, evaluations, changed_at, compute_health(counts[project]))
        for project, on, evaluations, changed_at in fetch_rows(
            _STATE, {"projects": list(ids), "since": since, "hidden": ACCESS_TYPES}
        )
    }


NUMBERS = range(1, MAX_RULES + 1)
BLANK = 2
"""Blank lines for further rules."""
APPROVALS = [(n, pluralize(n, "approval")) for n in range(MAX_APPROVALS + 1)]


class ApprovalsForm(forms.Form):
    """A line for each rule, in order, and blank ones; lines without a condition are ignored."""

    approvals = forms.TypedChoiceField(choices=APPROVALS, coerce=int, label="Everything else")
    groups = forms.TypedMultipleChoiceField(
        coerce=int,
        required=False,
        label="Who may approve",
        help_text="Leave empty to allow everyone with the permission.",
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, groups: Sequence[int], **kwargs: Any) -> None:
        """``groups``: ids of the present approver groups, possibly deleted."""
        super().__init__(*args, **kwargs)
        deleted = {group: f"Deleted group {group}" for group in groups}
        known = deleted | dict(Group.objects.order_by("name").values_list("pk", "name"))
        self.fields["groups"].choices = list(known.items())  # type: ignore[attr-defined]
        for number in NUMBERS:
            conditions = [("", "No rule"), *CONDITIONS.items()]
            self.fields[f"condition_{number}"] = forms.ChoiceField(
                choices=conditions, required=False, label=f"Rule {number}: a request that"
            )
            self.fields[f"value_{number}"] = forms.CharField(
                required=False,
                label=f"Rule {number}: percent, or tag as type:value",
                widget=forms.TextInput(attrs={"placeholder": "% or type:value"}),
            )
            self.fields[f"needs_{number}"] = forms.TypedChoiceField(
                choices=APPROVALS,
                coerce=int,
                required=False,
                initial=1,
                empty_value=1,  # type: ignore[arg-type]
                label=f"Rule {number}: needs",
            )

    def lines(self) -> list[tuple[int, list[forms.BoundField]]]:
        """The fields of each rule, and of blank ones."""
        used = max((number for number in NUMBERS if self[f"condition_{number}"].value()), default=0)
        return [
            (number, [self[f"{name}_{number}"] for name in ("condition", "value", "needs")])
            for number in NUMBERS[: used + BLANK]
        ]

    def rules(self) -> list[tuple[int, Rule]]:
        """The rules with their line numbers. Raises ValidationError for an invalid percentage."""
        data = self.cleaned_data
        return [
            (
                number,
                _make_rule(
                    data[f"condition_{number}"], data[f"value_{number}"], data[f"needs_{number}"], number
                ),
            )
            for number in NUMBERS
            if data.get(f"condition_{number}")
        ]


def _make_rule(condition: str, value: str, approvals: int, number: int) -> Rule:
    rule: dict[str, Any] = {"condition": condition, "requiredApprovals": approvals}
    parameter = TAKES.get(condition)
    if parameter == "percent" and value:
        try:
            rule[parameter] = float(value.replace(",", ".").removesuffix("%"))
        except ValueError:
            raise ValidationError.at(f"value_{number}", "must be a percentage") from None
    elif parameter and value:
        rule[parameter] = value
    return rule


class ApprovalsPage(EditPage):
    template_name = "projects/approvals.html"
    form_class = ApprovalsForm
    title = "Approvals in {environment}"
    api_call = "PUT /api/admin/projects/{project_id}/environments/{environment}/change-requests/config"

    def find(self) -> None:
        project_id = self.kwargs["project_id"]
        self.project = access_project(self.caller, project_id)
        self.caller.check_any(POLICY_PERMISSIONS, project=project_id)
        self.link = find_project_environment(project_id, self.kwargs["environment"])

    def get_events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller).filter(type=EventType.CHANGE_REQUESTS_CONFIGURED)
        return events.filter(project=self.project.pk, environment=self.link.environment_id)

    def get_current_document(self) -> dict[str, Any]:
        return make_policy_document(self.link)

    def get_initial(self) -> dict[str, Any]:
        approvals = self.link.required_approvals
        initial: dict[str, Any] = {"approvals": 1 if approvals is None else approvals}
        initial["groups"] = self.link.approver_groups
        for number, rule in enumerate(self.link.approval_rules, 1):
            value = rule.get(TAKES.get(rule["condition"], ""), "")
            initial |= {
                f"condition_{number}": rule["condition"],
                f"value_{number}": f"{value:g}" if isinstance(value, int | float) else value,
                f"needs_{number}": rule["requiredApprovals"],
            }
        return initial

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"groups": self.link.approver_groups}

    def submit(self, form: ApprovalsForm) -> str:
        numbered = form.rules()
        self.problem_fields = {
            f"approvalRules[{index}].{member}": field.format(number)
            for index, (number, _) in enumerate(numbered)
            for member, field in _FIELDS.items()
        }
        set_policy(
            self.project.pk,
            self.link.environment_id,
            form.cleaned_data["approvals"],
            rules=[rule for _, rule in numbered],
            groups=form.cleaned_data["groups"],
            expected=self.version.expected,
            caller=self.caller,
        )
        messages.success(self.request, f"Changed who must approve changes of {self.link.environment_id}.")
        return project_url(self.project.pk, "project-approvals")

    def get_api_body(self) -> dict[str, Any]:
        return make_policy_document(self.link)

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (
            *get_project_breadcrumbs(self.project),
            ("Approvals", project_url(self.project.pk, "project-approvals")),
        )

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            **make_project_head(self.project, "project-approvals", caller=self.caller),
            is_off=self.link.required_approvals is None,
            **kwargs,
        )


_FIELDS = {
    "condition": "condition_{}",
    "percent": "value_{}",
    "tag": "value_{}",
    "requiredApprovals": "needs_{}",
}
