"""Serializers of the installation's settings and statistics, in the reference server's shapes."""

from typing import Any

from django.conf import settings
from rest_framework import serializers

from flagadmin import __version__
from flagadmin.core.http.fields import MAX_NAME_LENGTH, Body, ListOf, Texts
from flagadmin.core.installation.state import is_in_maintenance, read_frontend_origins
from projects.installation.rules import MAX_ORIGINS
from projects.limits import Limits


class Maintenance(serializers.Serializer):
    enabled = serializers.BooleanField()


class MaintenanceBody(Body):
    enabled = serializers.BooleanField()


class Origins(serializers.Serializer):
    frontendApiOrigins = Texts()


class OriginsBody(Body):
    frontendApiOrigins = ListOf(
        child=serializers.CharField(max_length=MAX_NAME_LENGTH),
        max_length=MAX_ORIGINS,
        help_text="Such as https://app.example.org; * for all. Empty: no page of another origin.",
    )


class ResourceLimits(serializers.Serializer):
    """Only what has a limit here."""

    segmentValues = serializers.IntegerField()
    strategySegments = serializers.IntegerField()
    featureEnvironmentStrategies = serializers.IntegerField()
    constraints = serializers.IntegerField()
    constraintValues = serializers.IntegerField()
    featureFlags = serializers.IntegerField()


class CurrentVersion(serializers.Serializer):
    oss = serializers.CharField()
    enterprise = serializers.CharField(help_text="Always empty.")


class VersionInfo(serializers.Serializer):
    current = CurrentVersion()
    latest = serializers.DictField(help_text="Always empty: nothing is fetched from elsewhere.")


class UiConfig(serializers.Serializer):
    """The server's settings that a console needs."""

    name = serializers.CharField()
    environment = serializers.CharField(help_text="Always Open Source.")
    version = serializers.CharField()
    unleashUrl = serializers.CharField(help_text="The address of this installation.")
    baseUriPath = serializers.CharField(help_text="Always empty.")
    authenticationType = serializers.CharField(help_text="Always open-source.")
    disablePasswordAuth = serializers.BooleanField()
    emailEnabled = serializers.BooleanField(help_text="Always false: no email is sent.")
    maintenanceMode = serializers.BooleanField()
    frontendApiOrigins = Texts()
    resourceLimits = ResourceLimits()
    versionInfo = VersionInfo()
    flags = serializers.DictField(help_text="Always empty.")


class ByType(serializers.Serializer):
    admin = serializers.IntegerField()
    client = serializers.IntegerField(help_text="Backend tokens created under their older name.")
    backend = serializers.IntegerField()
    frontend = serializers.IntegerField()


class ByDays(serializers.Serializer):
    last30 = serializers.IntegerField()
    last60 = serializers.IntegerField()
    last90 = serializers.IntegerField()


class ActiveUsers(ByDays):
    last7 = serializers.IntegerField()


class Buckets(serializers.Serializer):
    enabledCount = serializers.IntegerField()
    variantCount = serializers.IntegerField()


class ApplicationRange(serializers.Serializer):
    range = serializers.CharField(help_text="7d, 30d or allTime.")
    count = serializers.IntegerField()


class Statistics(serializers.Serializer):
    """Counted when the request is made."""

    timestamp = serializers.DateTimeField()
    instanceId = serializers.CharField()
    versionOSS = serializers.CharField(help_text="flagadmin's version.")
    users = serializers.IntegerField()
    serviceAccounts = serializers.IntegerField()
    apiTokens = ByType()
    activeUsers = ActiveUsers(help_text="Who logged in or used a personal token.")
    readOnlyUsers = serializers.IntegerField(help_text="Users without any permission to change something.")
    groups = serializers.IntegerField()
    roles = serializers.IntegerField()
    customRootRoles = serializers.IntegerField()
    customRootRolesInUse = serializers.IntegerField()
    featureToggles = serializers.IntegerField()
    archivedFeatureToggles = serializers.IntegerField()
    projects = serializers.IntegerField()
    environments = serializers.IntegerField()
    contextFields = serializers.IntegerField()
    segments = serializers.IntegerField()
    strategies = serializers.IntegerField(help_text="Strategy types.")
    maxEnvironmentStrategies = serializers.IntegerField()
    maxConstraints = serializers.IntegerField()
    maxConstraintValues = serializers.IntegerField()
    SAMLenabled = serializers.BooleanField(help_text="Always false.")
    OIDCenabled = serializers.BooleanField()
    SCIMenabled = serializers.BooleanField()
    passwordAuthEnabled = serializers.BooleanField()
    clientApps = ApplicationRange(many=True)
    featureExports = serializers.IntegerField()
    featureImports = serializers.IntegerField()
    productionChanges = ByDays(help_text="Events in production environments.")
    previousDayMetricsBucketsCount = Buckets(help_text="Hourly counts of the previous day, in UTC.")


def make_ui_config(address: str) -> dict[str, Any]:
    limits = Limits.from_settings()
    return {
        "name": "flagadmin",
        "environment": "Open Source",
        "version": __version__,
        "unleashUrl": address,
        "baseUriPath": "",
        "authenticationType": "open-source",
        "disablePasswordAuth": not settings.PASSWORD_LOGIN,
        "emailEnabled": False,
        "maintenanceMode": is_in_maintenance(),
        "frontendApiOrigins": list(read_frontend_origins()),
        "resourceLimits": {
            "segmentValues": limits.segment_values,
            "strategySegments": limits.segments,
            "featureEnvironmentStrategies": limits.strategies,
            "constraints": limits.constraints,
            "constraintValues": limits.constraint_values,
            "featureFlags": limits.flags,
        },
        "versionInfo": {"current": {"oss": __version__, "enterprise": ""}, "latest": {}},
        "flags": {},
    }
