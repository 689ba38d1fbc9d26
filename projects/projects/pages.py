"""/projects/: lists the projects that the user may read; /projects/new/: creates one."""

from collections.abc import Iterator, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, Q, QuerySet

from flagadmin.core.lists.pages import Column, Filter
from groups.console import ActionPage, FormPage, ListPage
from groups.permissions import Permission
from projects.access import access_project
from projects.console import PROJECTS, project_url
from projects.models import Environment, FavoriteProject, Project, ProjectEnvironment
from projects.projects.actions import create_project
from projects.projects.favorites import set_project_favorite
from projects.projects.project_rows import read_project_states
from projects.projects.queries import annotate_flag_counts


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


class ProjectForm(forms.Form):
    name = forms.CharField(max_length=255, widget=forms.TextInput(attrs={"autofocus": True}))
    id = forms.CharField(
        required=False,
        max_length=100,
        label="Id",
        help_text="Used in URLs; cannot be changed later. Letters, digits, - . _ ~. Empty: made "
        "from the name.",
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false"}),
    )
    description = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 2}))
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
        messages.success(self.request, f"Created project {project.name}.")
        return project_url(project.pk)


class ProjectFavorite(ActionPage):
    """Adds the project to the user's favorites or removes it."""

    def act(self) -> str:
        project = access_project(self.caller, self.kwargs["project_id"])
        favorite = self.request.POST.get("favorite") == "on"
        set_project_favorite(project.pk, favorite, caller=self.caller)
        return f"{project.name} is {'now' if favorite else 'no longer'} one of your favorites."

    def get_success_url(self) -> str:
        return project_url(self.kwargs["project_id"])
