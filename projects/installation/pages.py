"""/installation/: maintenance mode, the frontend API's origins, and statistics."""

from typing import Any

from django import forms
from django.contrib import messages
from django.urls import reverse

from flagadmin.core.errors import AppError
from flagadmin.core.installation.state import forget, frontend_origins, is_in_maintenance
from flagadmin.core.lists.pages import curl_for
from groups.console import ActionPage, FormPage
from groups.permissions import Permission
from projects.installation import actions
from projects.installation.statistics import flatten_statistics, statistics


class OriginsForm(forms.Form):
    origins = forms.CharField(
        label="Allowed origins",
        required=False,
        max_length=50_000,
        help_text="One per line, such as https://app.example.org. * allows all. Empty: no page of another origin.",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )


class InstallationPage(FormPage):
    template_name = "installation/installation.html"
    title = "Installation"
    form_class = OriginsForm

    def find(self) -> None:
        self.caller.check_any((*actions.MAY_SET_MAINTENANCE, Permission.UPDATE_CORS))
        forget()

    def get_initial(self) -> dict[str, Any]:
        return {"origins": "\n".join(frontend_origins())}

    def submit(self, form: Any) -> str:
        actions.set_frontend_origins(form.cleaned_data["origins"].split(), caller=self.caller)
        messages.success(self.request, "Saved the allowed origins.")
        return reverse("installation")

    def refused(self, error: AppError, form: forms.BaseForm) -> None:
        """Each problem names one line; they are all of the only field."""
        for message in [problem.message for problem in error.details] or [error.message]:
            form.add_error("origins", message)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        caller = self.caller
        counts = statistics(caller) if caller.is_admin else {}
        return super().get_context_data(
            **{
                "is_in_maintenance": is_in_maintenance(),
                "may_set_maintenance": caller.can(Permission.UPDATE_MAINTENANCE_MODE),
                "may_set_origins": caller.can(Permission.UPDATE_CORS),
                "counts": flatten_statistics(counts).items(),
                **kwargs,
            }
        )

    def curl(self) -> str:
        return curl_for(self.request, "GET", "/api/admin/instance-admin/statistics")


class SetMaintenance(ActionPage):
    def act(self) -> str:
        is_on = self.request.POST.get("enabled") == "yes"
        actions.set_maintenance(is_on, caller=self.caller)
        return "Maintenance mode is on." if is_on else "Maintenance mode has ended."

    def back(self) -> str:
        return reverse("installation")
