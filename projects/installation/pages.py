"""/installation/: maintenance mode, the frontend API's origins, and statistics."""

from typing import Any

from django import forms
from django.conf import settings
from django.urls import reverse, reverse_lazy

from flagadmin.core.errors import AppError
from flagadmin.core.installation.state import forget, is_in_maintenance, read_frontend_origins
from groups.console import ActionPage, Caller, FormPage, Permission
from groups.login.links import is_mail_on
from projects.installation import actions
from projects.installation.statistics import flatten_statistics, read_statistics

# Labels of the statistics that the page shows, by their names in the API.
COUNTS = {
    "Flags": (
        ("Projects", "projects"),
        ("Flags", "featureToggles"),
        ("Archived flags", "archivedFeatureToggles"),
        ("Environments", "environments"),
        ("Segments", "segments"),
        ("Context fields", "contextFields"),
        ("Strategy types", "strategies"),
        ("Most strategies of a flag in one environment", "maxEnvironmentStrategies"),
        ("Most constraints of a strategy", "maxConstraints"),
        ("Most values of a constraint", "maxConstraintValues"),
    ),
    "People and access": (
        ("Users", "users"),
        ("Users without permissions", "readOnlyUsers"),
        ("Service accounts", "serviceAccounts"),
        ("Groups", "groups"),
        ("Roles", "roles"),
        ("Custom root roles", "customRootRoles"),
        ("Custom root roles in use", "customRootRolesInUse"),
        ("Admin tokens", "apiTokens.admin"),
        ("Backend tokens", "apiTokens.backend"),
        ("Backend tokens created as client tokens", "apiTokens.client"),
        ("Frontend tokens", "apiTokens.frontend"),
    ),
    "Use": (
        ("Applications", "clientApps.allTime"),
        ("Imports", "featureImports"),
        ("Exports", "featureExports"),
        ("Hourly counts of evaluations stored yesterday", "previousDayMetricsBucketsCount.enabledCount"),
        ("Hourly counts of variants stored yesterday", "previousDayMetricsBucketsCount.variantCount"),
    ),
}
PERIODS = (7, 30, 60, 90)
BY_PERIOD = (
    ("Active users", "activeUsers.last{}"),
    ("Active applications", "clientApps.{}d"),
    ("Changes in production", "productionChanges.last{}"),
)


class OriginsForm(forms.Form):
    origins = forms.CharField(
        label="Allowed origins",
        required=False,
        max_length=50_000,
        help_text="Pages of these origins may call the frontend API and OFREP in browsers (CORS). One per line, "
        "such as https://app.example.org. * allows all. Leave empty to allow none.",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )


class InstallationPage(FormPage):
    template_name = "installation/installation.html"
    title = "Installation"
    form_class = OriginsForm
    api_call = "GET /api/admin/instance-admin/statistics"

    def find(self) -> None:
        self.caller.check_any((*actions.MAY_SET_MAINTENANCE, Permission.UPDATE_CORS))
        forget()

    def get_initial(self) -> dict[str, Any]:
        return {"origins": "\n".join(read_frontend_origins())}

    def submit(self, form: Any) -> str:
        actions.set_frontend_origins(form.cleaned_data["origins"].split(), caller=self.caller)
        return self.done("Saved the allowed origins.", reverse("installation"))

    def show_refusal(self, error: AppError, form: forms.BaseForm) -> None:
        """Each problem names one line; all of them belong to the only field."""
        for message in [problem.message for problem in error.details] or [error.message]:
            form.add_error("origins", message)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        caller = self.caller
        return super().get_context_data(
            **{
                "is_in_maintenance": is_in_maintenance(),
                "may_set_maintenance": caller.can(Permission.UPDATE_MAINTENANCE_MODE),
                "is_admin": caller.is_admin,
                "mail_server": settings.EMAIL_HOST and f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}",
                "mail_from": settings.DEFAULT_FROM_EMAIL,
                "is_mail_on": is_mail_on(),
                "may_set_origins": caller.can(Permission.UPDATE_CORS),
                **(make_statistics_context(caller) if caller.is_admin else {}),
                **kwargs,
            }
        )


def make_statistics_context(caller: Caller) -> dict[str, Any]:
    counts = flatten_statistics(read_statistics(caller))
    return {
        "version": counts["versionOSS"],
        "instance_id": counts["instanceId"],
        "is_sign_on_enabled": counts["OIDCenabled"] or counts["SAMLenabled"],
        "is_password_enabled": counts["passwordAuthEnabled"],
        "counts": {
            subject: [(label, counts[name]) for label, name in rows] for subject, rows in COUNTS.items()
        },
        "periods": PERIODS,
        "by_period": [
            (label, [(days, counts.get(name.format(days))) for days in PERIODS]) for label, name in BY_PERIOD
        ],
    }


class SetMaintenance(ActionPage):
    success_url = reverse_lazy("installation")

    def act(self) -> str:
        is_on = self.request.POST.get("enabled") == "yes"
        actions.set_maintenance(is_on, caller=self.caller)
        return "Maintenance mode is on." if is_on else "Maintenance mode has ended."
