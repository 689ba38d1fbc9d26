"""/installation/: maintenance mode, the frontend API's origins, and statistics.

Counts the installation's contents at the time of the request.
"""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q
from django.urls import reverse, reverse_lazy
from django.utils import timezone

from flagadmin import __version__
from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.statements import fetch_row
from flagadmin.core.errors import AppError
from flagadmin.core.http.responses import iso
from flagadmin.core.installation.models import ROW, Installation
from flagadmin.core.installation.state import forget, is_in_maintenance, read_frontend_origins
from groups.console import ActionPage, Caller, FormPage, Permission
from groups.login.links import is_mail_on
from groups.login.sign_on.settings import OidcSettings, SamlSettings
from groups.models import ApiToken, Group, Role, User
from groups.scim.actions import load_settings
from projects.installation import actions
from projects.models import (
    Application,
    ApplicationInstance,
    ContextField,
    Environment,
    Flag,
    Project,
    Segment,
    StrategyType,
)

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


_MAX_ID = """
SELECT (SELECT coalesce(max(n), 0)
          FROM (SELECT count(*) AS n FROM projects_strategy GROUP BY flag_id, environment_id) AS counted),
       (SELECT coalesce(max(jsonb_array_length(constraints)), 0) FROM projects_strategy),
       (SELECT coalesce(max(jsonb_array_length(c -> 'values')), 0)
          FROM projects_strategy, jsonb_array_elements(constraints) AS c
         WHERE jsonb_typeof(c -> 'values') = 'array')
"""
_BUCKETS = """
SELECT count(*) FILTER (WHERE yes + no > 0), coalesce(sum((SELECT count(*) FROM jsonb_object_keys(variants))), 0)
  FROM projects_usagehour WHERE hour >= %s AND hour < %s
"""


def read_statistics(caller: Caller) -> dict[str, Any]:
    """Reads the statistics in the reference server's shape, without meaningless members. Raises NoAccess."""
    caller.check(Permission.ADMIN)
    now = timezone.now()
    installation = Installation.objects.filter(pk=ROW).first()
    return {
        "timestamp": iso(now),
        "instanceId": str(installation.instance_id) if installation else "",
        "versionOSS": __version__,
        **_count_people(now),
        **_count_subjects(),
        **_count_largest(),
        "SAMLenabled": isinstance(settings.SIGN_ON, SamlSettings),
        "OIDCenabled": isinstance(settings.SIGN_ON, OidcSettings),
        "SCIMenabled": load_settings().is_enabled,
        "passwordAuthEnabled": settings.PASSWORD_LOGIN,
        "clientApps": _count_applications(now),
        "featureExports": AuditEvent.objects.filter(type=EventType.FEATURES_EXPORTED.value).count(),
        "featureImports": AuditEvent.objects.filter(type=EventType.FEATURES_IMPORTED.value).count(),
        "productionChanges": _count_production_changes(now),
        "previousDayMetricsBucketsCount": _count_buckets(now),
    }


def _count_people(now: datetime) -> dict[str, Any]:
    people = User.objects.people()
    kinds = dict(ApiToken.objects.values_list("kind").annotate(Count("id")).order_by())
    clients = ApiToken.objects.filter(kind=ApiToken.Kind.BACKEND, type_name="client").count()
    return {
        "users": people.count(),
        "serviceAccounts": User.objects.service_accounts().count(),
        "apiTokens": {
            "admin": kinds.get(ApiToken.Kind.ADMIN, 0),
            "client": clients,
            "backend": kinds.get(ApiToken.Kind.BACKEND, 0) - clients,
            "frontend": kinds.get(ApiToken.Kind.FRONTEND, 0),
        },
        "activeUsers": {f"last{days}": _count_active(now - timedelta(days=days)) for days in (7, 30, 60, 90)},
        "readOnlyUsers": people.exclude(_match_any_permission()).count(),
        "groups": Group.objects.count(),
        "roles": Role.objects.count(),
        **_count_root_roles(),
    }


def _count_active(since: datetime) -> int:
    """People who logged in or used a personal token."""
    used = ApiToken.objects.filter(user=OuterRef("pk"), seen_at__gte=since)
    return User.objects.people().filter(Q(seen_at__gte=since) | Exists(used)).count()


def _match_any_permission() -> Q:
    roles = Role.objects.filter(permissions__isnull=False).values("pk")
    return (
        Q(root_role__in=roles)
        | Q(groups__root_role__in=roles)
        | Q(grants__role__in=roles)
        | Q(groups__grants__role__in=roles)
    )


def _count_root_roles() -> dict[str, int]:
    custom = Role.objects.filter(type=Role.Type.ROOT_CUSTOM)
    used = custom.filter(Q(users__isnull=False) | Q(groups__isnull=False)).distinct()
    return {"customRootRoles": custom.count(), "customRootRolesInUse": used.count()}


def _count_subjects() -> dict[str, int]:
    flags = Flag.objects.aggregate(
        active=Count("pk", filter=Q(archived_at=None)), archived=Count("pk", filter=~Q(archived_at=None))
    )
    return {
        "featureToggles": flags["active"],
        "archivedFeatureToggles": flags["archived"],
        "projects": Project.objects.count(),
        "environments": Environment.objects.count(),
        "contextFields": ContextField.objects.count(),
        "segments": Segment.objects.count(),
        "strategies": StrategyType.objects.count(),
    }


def _count_largest() -> dict[str, int]:
    strategies, constraints, values = fetch_row(_MAX_ID)
    return {
        "maxEnvironmentStrategies": strategies,
        "maxConstraints": constraints,
        "maxConstraintValues": values,
    }


def _count_applications(now: datetime) -> list[dict[str, Any]]:
    seen = {
        f"{days}d": ApplicationInstance.objects.filter(seen_at__gte=now - timedelta(days=days))
        .values("application_id")
        .distinct()
        .count()
        for days in (7, 30)
    }
    counts = seen | {"allTime": Application.objects.count()}
    return [{"range": name, "count": count} for name, count in counts.items()]


def _count_production_changes(now: datetime) -> dict[str, int]:
    production = Environment.objects.production().values("name")
    events = AuditEvent.objects.filter(environment__in=production, created_at__gte=now - timedelta(days=90))
    return events.aggregate(
        **{
            f"last{days}": Count("pk", filter=Q(created_at__gte=now - timedelta(days=days)))
            for days in (30, 60, 90)
        }
    )


def _count_buckets(now: datetime) -> dict[str, int]:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    enabled, variants = fetch_row(_BUCKETS, [today - timedelta(days=1), today])
    return {"enabledCount": enabled, "variantCount": int(variants)}


def flatten_statistics(counts: dict[str, Any]) -> dict[str, Any]:
    """One level: ``apiTokens.client``, ``clientApps.7d``."""
    flat: dict[str, Any] = {}
    for name, value in counts.items():
        if isinstance(value, list):
            value = {item["range"]: item["count"] for item in value}
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": number for inner, number in value.items()}
        else:
            flat[name] = value
    return flat
