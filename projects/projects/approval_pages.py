"""/projects/ID/environments/ENVIRONMENT/approvals: the number of approvals for changes, by their effect."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import ValidationError
from flagadmin.core.wording import pluralize
from groups.console import Breadcrumbs, EditPage
from groups.models import Group
from projects.access import access_project
from projects.console import get_project_breadcrumbs, project_url
from projects.flags.environments.toggle import find_project_environment
from projects.history.queries import readable_events
from projects.projects.approval_rules import CONDITIONS, MAX_APPROVALS, MAX_RULES, TAKES, Rule
from projects.projects.environments import POLICY_PERMISSIONS, make_policy_document, set_policy
from projects.projects.head import make_project_head

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
