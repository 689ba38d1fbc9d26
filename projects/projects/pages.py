"""/projects/: lists the readable projects; /projects/new/: creates one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from flagadmin.core.db.statements import fetch_rows
from groups.console import ActionPage, Column, Filter, FormPage, ListPage, Permission
from projects.access import access_project
from projects.console import PROJECTS, project_url
from projects.history.queries import ACCESS_TYPES
from projects.models import Environment, FavoriteProject, Project, ProjectEnvironment
from projects.projects.actions import create_project, set_project_favorite
from projects.projects.queries import annotate_flag_counts, compute_health, count_flags


class ProjectsPage(ListPage):
    template_name = "projects/projects.html"
    title = "Projects"
    csv_name = "projects"
    columns = (
        Column("name", "Project", by=("name",)),
        Column("active_flags", "Active flags", by=("active_flags",), numeric=True),
        Column("on", "On in production", numeric=True),
        Column("stale_flags", "Stale", by=("stale_flags", "name"), numeric=True),
        Column("archived_flags", "Archived flags", by=("archived_flags",), numeric=True),
        Column("evaluations", "Evaluations, 24 h", numeric=True),
        Column("changed", "Last change"),
        Column("health", "Health", numeric=True),
        Column("environments", "Environments"),
    )
    filters = (Filter("q", "Name or id"), Filter("favorite", "Favorites", [("mine", "mine")]))
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
        if text := values["q"]:
            counted = counted.filter(
                Q(name__icontains=text) | Q(id__icontains=text) | Q(description__icontains=text)
            )
        if values["favorite"]:
            counted = counted.filter(favorite=True)
        return counted.order_by("-favorite", "name", "id")

    def get_csv_lines(self, rows: Any) -> Iterator[Sequence[Any]]:
        projects = list(rows)
        states = read_project_states([row.pk for row in projects])
        for row in projects:
            state = states[row.pk]
            yield (
                row.pk,
                row.active_flags,
                state.on,
                row.stale_flags,
                row.archived_flags,
                state.evaluations,
                state.changed_at,
                f"{state.health} %",
                ", ".join(row.environment_names),
            )

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        projects = list(kwargs["listing"].rows)
        states = read_project_states([project.pk for project in projects])
        return super().get_context_data(
            rows=[(project, project_url(project.pk), states[project.pk]) for project in projects],
            archived=self.archived,
            segments=[
                ("Active", "?", None, not self.archived),
                ("Archived", "?show=archived", None, self.archived),
            ],
            may_create=self.caller.can(Permission.CREATE_PROJECT),
            **kwargs,
        )


class ModeField(forms.ChoiceField):
    """Who can see a project and propose changes, each choice with its meaning."""

    def __init__(self) -> None:
        super().__init__(
            label="Access",
            choices=[(mode.value, f"{mode.value.title()}: {mode.label}") for mode in Project.Mode],
            initial=Project.Mode.OPEN,
            help_text="Admins can do both. Only roles in the project allow changes. SDK tokens are not affected.",
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
