"""Pages of environments: the installation's with their order, and two of a project compared."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.urls import reverse, reverse_lazy
from django.utils.functional import cached_property

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.edit_conflicts.forms import FormVersion
from flagadmin.core.errors import Conflict, ValidationError
from flagadmin.core.lists.pages import Column, Filter, Listing, curl_for, free_chips, set_chips
from groups.console import ActionPage, Breadcrumbs, ConfirmPage, EditPage, FormPage, ListPage, Permission
from projects.access import access_environment
from projects.console import InProjectPage, api_path
from projects.environments import actions
from projects.environments.comparison import KINDS, read_last_changes
from projects.environments.comparison_queries import (
    ALL,
    DIFFERS,
    SAME,
    ComparedFlag,
    choose_environments,
    collect_segment_ids,
    compare_flags,
    describe_losses,
    describe_sides,
    find_last_change,
    find_projects_with_use,
    select_flags,
)
from projects.flags.lists.queries import list_environment_names
from projects.flags.lists.strategy_lines import Palette
from projects.history.queries import readable_events
from projects.models import Environment, Project, ProjectEnvironment, Segment
from projects.projects.head import make_project_head
from projects.projects.queries import list_environment_summaries, make_environment_document
from projects.states import IN_ENVIRONMENT

TYPES = ("development", "test", "preproduction", "production")
ENVIRONMENTS = ("Environments", reverse_lazy("environments"))


class EnvironmentsPage(ListPage):
    """The environments in their order, which no column changes."""

    template_name = "environments/environments.html"
    title = "Environments"
    lead = (
        "Shared by all projects, in the order in which every page lists them. "
        "A project's Environments tab compares them."
    )
    new = ("environment-new", "New environment")
    creates = Permission.ADMIN
    columns = (
        Column(
            "name",
            "Environment",
            cell='{% if caller.is_admin %}<a href="{% url "environment" row.name %}">{{ row.name }}</a>'
            "{% else %}<strong>{{ row.name }}</strong>{% endif %}",
        ),
        Column("type", "Type"),
        Column("enabled", "New projects", shown='yesno:"Use it,–"'),
        Column("projectCount", "Projects", numeric=True),
        Column("enabledToggleCount", "Flags on", numeric=True),
        Column("apiTokenCount", "API tokens", numeric=True),
        Column("", "Actions", cell='{% include "environments/move.html" %}', permission=Permission.ADMIN),
    )
    api_call = "GET /api/admin/environments"

    def get_rows(self, values: dict[str, str]) -> list[dict[str, Any]]:
        allowed = self.caller.readable_projects
        return list_environment_summaries(projects=None if allowed is None else sorted(allowed))


class EnvironmentForm(forms.Form):
    type = forms.CharField(
        max_length=100,
        help_text=f"{', '.join(TYPES[:-1])} or {TYPES[-1]}, or a word of your own. Changes in a production environment "
        "ask for confirmation.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "none"}),
    )
    enabled = forms.BooleanField(required=False, initial=True, label="Add to new projects")


class NewEnvironmentForm(EnvironmentForm):
    name = forms.CharField(
        max_length=100,
        help_text="Up to 100 letters, digits, - . _ ~. Cannot be changed.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "none", "autofocus": True}),
    )
    field_order = ["name"]


class NewEnvironment(FormPage):
    """The new environment comes last. Existing projects do not use it."""

    template_name = "console/form.html"
    title = "New environment"
    form_class: type[forms.Form] = NewEnvironmentForm
    button = "Create environment"
    parents = (ENVIRONMENTS,)
    api_call = "POST /api/admin/environments"
    api_example: Any = {"name": "staging", "type": "test"}
    permission = Permission.ADMIN

    def submit(self, form: Any) -> str:
        environment = actions.create_environment(form.cleaned_data, caller=self.caller)
        messages.success(self.request, f"Created environment {environment.name}. No project uses it yet.")
        return reverse("environment", args=[environment.name])


class EditEnvironment(EditPage, NewEnvironment):
    """Its type, whether new projects use it, and the projects that use it."""

    template_name = "environments/environment.html"
    form_class = EnvironmentForm
    button = "Save environment"
    title = "Environment {name}"
    api_call = "PUT /api/admin/environments/update/{name}"
    api_example = {"type": "test", "enabled": True}

    def find(self) -> None:
        self.environment = access_environment(self.kwargs["name"])
        super().find()

    def get_events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller)
        return events.filter(type=EventType.ENVIRONMENT_UPDATED, subject=self.environment.pk)

    def get_current_document(self) -> dict[str, Any]:
        return make_environment_document(self.environment)

    def get_initial(self) -> dict[str, Any]:
        return {name: getattr(self.environment, name) for name in EnvironmentForm.base_fields}

    def submit(self, form: Any) -> str:
        name, expected = self.kwargs["name"], self.version.expected
        actions.update_environment(name, form.cleaned_data, expected=expected, caller=self.caller)
        return self.done(f"Changed environment {name}.", reverse("environments"))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        projects: Listing[Project] = Listing(
            self.request.GET, find_projects_with_use(self.environment, self.caller), columns=()
        )
        links = ProjectEnvironment.objects.filter(
            environment=self.environment, project__in=list(projects.rows)
        )
        defaults = dict(links.values_list("project_id", "default_strategy"))
        return super().get_context_data(
            environment=self.environment,
            projects=projects,
            rows=[(project, hash_document(defaults.get(project.pk))) for project in projects.rows],
            **kwargs,
        )


class MoveEnvironment(ActionPage):
    """Moves an environment ``up`` or ``down`` by one position. Renumbers all in their order."""

    success_url = reverse_lazy("environments")

    def act(self) -> str:
        name, direction = self.kwargs["name"], self.request.POST.get("move", "")
        access_environment(name)
        names = list(Environment.objects.values_list("name", flat=True))
        index = names.index(name)
        other = index + {"up": -1, "down": 1}.get(direction, 0)
        if not 0 <= other < len(names) or other == index:
            raise ValidationError.at("move", "must be up or down, and not beyond the ends of the list")
        names[index], names[other] = names[other], names[index]
        orders = {each: number for number, each in enumerate(names, start=1)}
        actions.sort_environments(orders, caller=self.caller)
        return f"Moved {name} {direction}."


class DeleteEnvironment(ConfirmPage):
    asks_why = True
    title = "Delete environment {name}"
    api_call = "DELETE /api/admin/environments/{name}"

    def get_breadcrumbs(self) -> Breadcrumbs:
        name = self.kwargs["name"]
        return (ENVIRONMENTS, (name, reverse("environment", args=[name])))

    def plan(self) -> dict[str, Any]:
        environment = access_environment(self.kwargs["name"])
        self.caller.check(Permission.ADMIN)
        blocked = ""
        try:
            actions.check_environment_is_unused(environment)
        except Conflict as error:
            blocked = error.message
        return {
            "removed_items": list(describe_losses(environment, self.caller)),
            "kept": "The audit log and usage reports are kept.",
            "blocked": blocked,
            "hidden": [
                ("expected", FormVersion.of(make_environment_document(environment), self.get_events()))
            ],
        }

    def get_events(self) -> QuerySet[AuditEvent]:
        return readable_events(self.caller).filter(subject=self.kwargs["name"])

    def act(self) -> tuple[str, str]:
        name = self.kwargs["name"]
        expected = FormVersion.sent(self.request.POST).expected
        actions.delete_environment(name, expected=expected, caller=self.caller)
        return f"Deleted environment {name}.", reverse("environments")


class ComparePage(InProjectPage, ListPage):
    template_name = "environments/compare.html"
    title = "Environments"
    csv_name = "{project_id}-environments"
    columns = (
        Column("flag", "Flag"),
        Column("from", "From"),
        Column("to", "To"),
        Column("differs", "Differs in"),
    )
    filters = (
        Filter("q", "Name, description or tag"),
        Filter("in", "Differs in", list(KINDS.items())),
        Filter("show", "Flags", [(ALL, "all"), (SAME, "the same")]),
    )

    def find(self) -> None:
        super().find()
        self.names = list_environment_names(self.project)
        source, target = self.request.GET.get("from", ""), self.request.GET.get("to", "")
        self.environments = choose_environments(self.names, source, target) if self.names else ("", "")

    def get_rows(self, values: dict[str, str]) -> list[ComparedFlag]:
        self.flags = compare_flags(self.project, self.environments, text=values["q"])
        return select_flags(self.flags, show=values["show"], kind=values["in"])

    def get_csv_lines(self, rows: Sequence[ComparedFlag]) -> Iterator[Sequence[Any]]:
        names = self.segment_names(rows)
        for flag in rows:
            sides = describe_sides(flag.pair, names)
            yield (flag.name, *sides, ", ".join(flag.differences))

    def segment_names(self, flags: Iterable[ComparedFlag]) -> dict[int, str]:
        return Segment.objects.names(collect_segment_ids(flags))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        listing, places = kwargs["listing"], self.environments
        flags = list(listing.rows)
        changes = read_last_changes([flag.name for flag in flags], places)
        segments, palette = self.segment_names(flags), Palette()
        return super().get_context_data(
            **make_project_head(self.project, "environments-compare", caller=self.caller),
            source=places[0],
            target=places[1],
            swapped=listing.url(**{"from": places[1], "to": places[0]}),
            rows=[
                (flag, flag.cells(places, segments, palette), find_last_change(changes[flag.name], places))
                for flag in flags
            ],
            segments=list(self.segments(listing)),
            set_chips=[chip for chip in set_chips(listing) if chip.label != "Flags"],
            free_chips=free_chips(listing, ("in",)),
            kept=[pair for pair in listing.kept if pair[0] not in ("from", "to")],
            ticked=self.request.GET.getlist("name"),
            may_promote=self.may_promote,
            matching=self.matching(listing),
            compared=len(self.flags),
            **kwargs,
        )

    def segments(self, listing: Listing[ComparedFlag]) -> Iterator[tuple[str, str, int, bool]]:
        differing = sum(bool(flag.kinds) for flag in self.flags)
        show = self.request.GET.get("show", DIFFERS)
        counts = ((ALL, len(self.flags)), (DIFFERS, differing), (SAME, len(self.flags) - differing))
        for (key, count), label in zip(counts, ("All", "Differs", "Same"), strict=True):
            yield label, listing.url(show=key or None, **{"in": None, "name": None}), count, key == show

    @cached_property
    def may_promote(self) -> bool:
        scope = {"project": self.project.pk, "environment": self.environments[1]}
        return (
            self.environments[0] != self.environments[1]
            and self.project.archived_at is None
            and any(self.caller.can(permission, **scope) for permission in IN_ENVIRONMENT)
        )

    def matching(self, listing: Listing[ComparedFlag]) -> str:
        """The query string that selects all flags of the list, "" if they are on one page."""
        return self.request.GET.urlencode() or "q=" if listing.page.has_other_pages() else ""

    def get_curl(self) -> str:
        if len(self.names) < 2:
            return ""
        names = [flag.name for flag in self.flags if flag.kinds][:3]
        body = {"from": self.environments[0], "to": self.environments[1], "features": names, "planOnly": True}
        return curl_for(self.request, "POST", f"{api_path(self.project.pk)}/environments/promote", body)
