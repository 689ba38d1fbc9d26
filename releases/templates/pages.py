"""Console pages of release templates: their list, one with its milestones, and a new one of steps.

Strategies of milestones have a page of their own (`strategy_page.py`).
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.urls import reverse, reverse_lazy
from django.utils.functional import cached_property

from flagadmin.core.document import Document
from flagadmin.core.errors import ValidationError, pluralize
from flagadmin.core.lists.pages import Column, Filter
from groups.console import ActionPage, Breadcrumbs, ConfirmPage, ConsolePage, ListPage, Permission, SubmitPage
from playground.engine.strategy_types import STRATEGY_TYPES
from projects.access import list_projects_with
from projects.models import Project, Segment
from projects.strategies.rules import StrategyDefaults, make_parameters
from projects.strategies.sentences import Summary, describe_variants, summarize_strategy
from releases.models import Milestone, ReleaseTemplate
from releases.plans.forms import INTERVALS, ROLLOUTS, WINDOWS, read_rollouts, read_transition
from releases.plans.progress import say_transition
from releases.templates import actions
from releases.templates.queries import (
    find_by_id,
    find_template,
    readable_templates,
    template_document,
    without_defaults,
)

TEMPLATES = ("Release templates", reverse_lazy("release-templates"))
CREATE, OWN = Permission.RELEASE_PLAN_TEMPLATE_CREATE, Permission.UPDATE_PROJECT_RELEASE_TEMPLATE
UPDATE = (Permission.RELEASE_PLAN_TEMPLATE_UPDATE, OWN)
DELETE = (Permission.RELEASE_PLAN_TEMPLATE_DELETE, OWN)


class TemplatesPage(ListPage):
    title = "Release templates"
    lead = "Rollouts in steps. A release plan of a flag can start from one."
    noun = "release template,release templates"
    new = ("release-template-new", "New template")
    none_yet = "No release templates yet. A template is a rollout in steps, for any flag."
    begin = ("release-template-new", "Create the first template")
    default_sort = "name"
    columns = (
        Column(
            "name",
            "Template",
            by=("name", "id"),
            link='{% url "release-template" row.pk %}',
            below="description|truncatechars:120",
        ),
        Column("project", "Project", by=("project__name", "name"), csv="project_id", none="all"),
        Column(
            "milestones",
            "Milestones",
            csv=lambda row: ", ".join(milestone.name for milestone in row.milestones.all()),
            cell="{% for milestone in row.milestones.all %}{{ milestone.name }}{% if not forloop.last %} "
            '<span aria-hidden="true">→</span><span class="unseen">then</span> {% endif %}{% endfor %}',
        ),
        Column("created", "Created", by=("created_at",), shown="day"),
    )
    filters = (Filter("q", "Template", by=("name",)),)
    api_call = "GET /api/admin/release-plan-templates"

    def get_rows(self, values: dict[str, str]) -> QuerySet[ReleaseTemplate]:
        return readable_templates(self.caller).filter(archived_at=None).select_related("project").order_by()

    def may_create(self) -> bool:
        return self.caller.can(CREATE) or bool(list_projects_with(self.caller, OWN))


class TemplatePage(ConsolePage):
    """Its milestones with their strategies, each with the actions that the caller may take."""

    title = "{page.template.name}"
    parents = (TEMPLATES,)
    template_name = "plans/template.html"

    def find(self) -> None:
        self.template = find_template(self.caller, self.kwargs["template_id"])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        template = self.template
        own = template.project_id and self.caller.can(OWN, project=template.project_id)
        milestones = list(template.milestones.all())
        keys = {key for each in milestones for strategy in each.strategies for key in strategy["segments"]}
        names = Segment.objects.names(keys)
        lines = [
            (
                milestone,
                [describe_strategy(strategy, names) for strategy in milestone.strategies],
                say_transition(milestone.transition),
            )
            for milestone in milestones
        ]
        return super().get_context_data(
            template=template,
            lines=lines,
            descents=list(find_descents(milestones)),
            may_edit=own or self.caller.can(Permission.RELEASE_PLAN_TEMPLATE_UPDATE),
            intervals=INTERVALS,
            windows=WINDOWS,
            may_archive=own or self.caller.can(Permission.RELEASE_PLAN_TEMPLATE_UPDATE),
            may_delete=own or self.caller.can(Permission.RELEASE_PLAN_TEMPLATE_DELETE),
            **kwargs,
        )


def find_descents(milestones: Iterable[Milestone]) -> Iterator[tuple[str, str]]:
    """Yields the names of each milestone and its successor, if the latter reaches fewer users."""
    for milestone, following in pairwise(milestones):
        rollout, next_rollout = map(_read_rollout, (milestone, following))
        if not rollout or not next_rollout or next_rollout.users != rollout.users:
            continue
        if next_rollout.share < rollout.share:
            yield milestone.name, following.name


class Rollout(NamedTuple):
    share: int
    users: Any
    """The users whose share it is."""


def _read_rollout(milestone: Milestone) -> Rollout | None:
    """A milestone with a single rollout, completed as for a plan's flag, else None."""
    if len(milestone.strategies) != 1:
        return None
    [strategy] = milestone.strategies
    kind = STRATEGY_TYPES.get(strategy["name"])
    if not kind or not kind.percentage:
        return None
    parameters = make_parameters(strategy["name"], strategy["parameters"], StrategyDefaults(flag=""))
    stickiness = kind.stickiness or parameters.get("stickiness")
    users = (stickiness, strategy["constraints"], sorted(strategy["segments"]))
    return Rollout(kind.threshold(parameters), users)


def describe_strategy(strategy: Any, segments: dict[int, str]) -> tuple[str, Summary, str]:
    """Its id, its sentence, and its title and variants."""
    facts = (strategy["title"], describe_variants(strategy["variants"]))
    return (
        strategy["id"],
        summarize_strategy(without_defaults(strategy), segments=segments),
        ", ".join(filter(None, facts)),
    )


class NewTemplatePage(SubmitPage):
    """A template whose milestones are shares of users, which can be changed afterwards."""

    template_name = "plans/template_new.html"
    title = "New release template"
    parents = (TEMPLATES,)

    def find(self) -> None:
        """Raises NoAccess."""
        if not list_projects_with(self.caller, OWN):
            self.caller.check(CREATE)

    def submit(self) -> str:
        project_id = self.request.POST.get("project") or None
        template = actions.create_template(self.values(), project_id=project_id, caller=self.caller)
        return reverse("release-template", args=[template.pk])

    def values(self) -> dict[str, Any]:
        post = self.request.POST
        transition = read_transition(post)
        milestones = [
            {
                "name": f"{rollout} %",
                "strategies": [{"name": "flexibleRollout", "parameters": {"rollout": f"{rollout}"}}],
                "transitionCondition": transition,
            }
            for rollout in read_rollouts(post.get("rollouts", ""))
        ]
        name = post.get("name", "").strip() or "Untitled"
        return {"name": name, "description": post.get("description", "").strip(), "milestones": milestones}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        projects = Project.objects.readable_by(self.caller).order_by("name", "id")
        own = [project for project in projects if self.caller.can(OWN, project=project.pk)]
        return super().get_context_data(
            everywhere=self.caller.can(CREATE),
            projects=own,
            rollouts=ROLLOUTS,
            intervals=INTERVALS,
            windows=WINDOWS,
            **kwargs,
        )


class OnTemplate(ConsolePage):
    @cached_property
    def template(self) -> ReleaseTemplate:
        return find_template(self.caller, self.kwargs["template_id"])

    def get_success_url(self) -> str:
        return reverse("release-template", args=[self.kwargs["template_id"]])

    def change(self, edit: actions.Edit) -> None:
        template = self.template
        actions.edit_milestones(template.pk, edit, project_id=template.project_id, caller=self.caller)


class TemplateAction(OnTemplate, ActionPage):
    def name(self) -> str:
        """Raises ValidationError."""
        if not (name := self.request.POST.get("name", "").strip()):
            raise ValidationError.at("name", "Enter a name.")
        return name


class SetDetails(TemplateAction):
    def act(self) -> str:
        template = self.template
        values = {"name": self.name(), "description": self.request.POST.get("description", "").strip()}
        actions.update_template(template.pk, values, project_id=template.project_id, caller=self.caller)
        return f"Saved {values['name']}."


class AddMilestone(TemplateAction):
    def act(self) -> str:
        milestone: Document = {"id": "", "name": self.name(), "strategies": [], "transitionCondition": None}
        self.change(lambda milestones: milestones.append(milestone))
        return f"Added {milestone['name']}."


class SetMilestone(TemplateAction):
    """Sets its name and the condition of the next one."""

    def act(self) -> str:
        post, key = self.request.POST, self.kwargs["milestone_id"]
        name = self.name()

        def edit(milestones: list[Document]) -> None:
            milestone = find_by_id(milestones, key, "Milestone")
            transition = read_transition(post, milestone["transitionCondition"])
            milestone.update(name=name, transitionCondition=transition)

        self.change(edit)
        return f"Saved {name}."


class ArchiveTemplate(TemplateAction):
    def get_success_url(self) -> str:
        return reverse("release-templates")

    def act(self) -> str:
        template = self.template
        actions.archive_template(template.pk, project_id=template.project_id, caller=self.caller)
        return f"Archived {template.name}."


class RemoveTemplate(ConfirmPage, OnTemplate):
    title = "Delete release template {page.template.name}"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (TEMPLATES, (self.template.name, self.get_success_url()))

    def plan(self) -> dict[str, Any]:
        actions.check_scope(self.caller, *DELETE, self.template.project_id)
        milestones = pluralize(self.template.milestones.count(), "milestone")
        return {
            "removed_items": [f"release template {self.template.name} with {milestones}"],
            "kept": "Plans that were made from it stay.",
        }

    def act(self) -> tuple[str, str]:
        template = self.template
        actions.delete_template(template.pk, project_id=template.project_id, caller=self.caller)
        return f"Deleted {template.name}.", reverse("release-templates")


class RemoveMilestone(ConfirmPage, OnTemplate):
    def get_title(self) -> str:
        return f"Remove milestone {self.milestone()['name']}?"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (TEMPLATES, (self.template.name, self.get_success_url()))

    def milestone(self) -> Document:
        milestones = template_document(self.template)["milestones"]
        return find_by_id(milestones, self.kwargs["milestone_id"], "Milestone")

    def plan(self) -> dict[str, Any]:
        update, own = UPDATE
        actions.check_scope(self.caller, update, own, self.template.project_id)
        number = len(self.milestone()["strategies"])
        return {
            "lead": f"It is removed from {self.template.name}, with {pluralize(number, 'strategy', 'strategies')}. "
            "Plans that were made from the template stay.",
            "button": "Remove milestone",
        }

    def act(self) -> tuple[str, str]:
        key = self.kwargs["milestone_id"]
        self.change(lambda milestones: milestones.remove(find_by_id(milestones, key, "Milestone")))
        return "Removed the milestone.", self.get_success_url()
