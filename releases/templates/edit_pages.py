"""Changes release templates in the console: their names and milestones. Strategies have a page of their own."""

from typing import Any

from django.urls import reverse
from django.utils.functional import cached_property

from flagadmin.core.document import Document
from flagadmin.core.errors import ValidationError
from flagadmin.core.wording import pluralize
from groups.console import ActionPage, Breadcrumbs, ConfirmPage, ConsolePage
from releases.models import ReleaseTemplate
from releases.plans.forms import read_transition
from releases.templates import actions
from releases.templates.documents import find_by_id, template_document
from releases.templates.pages import DELETE, TEMPLATES, UPDATE
from releases.templates.queries import find_template


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
    """Its name and what the next one waits for."""

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
    def get_title(self) -> str:
        return f"Delete release template {self.template.name}"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (TEMPLATES, (self.template.name, self.get_success_url()))

    def plan(self) -> dict[str, Any]:
        actions.check_scope(self.caller, *DELETE, self.template.project_id)
        milestones = pluralize(self.template.milestones.count(), "milestone")
        return {
            "removed_items": [f"release template {self.template.name} with {milestones}"],
            "kept": "Plans that were made from it stay.",
            "button": f"Delete release template {self.template.name}",
            "cancel": self.get_success_url(),
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
            "cancel": self.get_success_url(),
        }

    def act(self) -> tuple[str, str]:
        key = self.kwargs["milestone_id"]
        self.change(lambda milestones: milestones.remove(find_by_id(milestones, key, "Milestone")))
        return "Removed the milestone.", self.get_success_url()
