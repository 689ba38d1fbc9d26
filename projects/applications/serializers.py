"""Request and response serializers of applications and reported usage."""

from rest_framework import serializers

from flagadmin.core.http.fields import Body, ListOf, Texts
from projects.flags.serializers import SeenFlag


class ApplicationSdk(serializers.Serializer):
    name = serializers.CharField(help_text="SDK package name.")
    versions = Texts(help_text="Versions in use, in version order.")


class ProjectApplicationRecord(serializers.Serializer):
    name = serializers.CharField(help_text="Application name, same as `appName` in the SDK configuration.")
    environments = Texts(help_text="Environments in which it evaluated flags of the project.")
    instances = Texts(
        help_text="Its instances seen in the last 7 days, at most 100 (both configurable).",
    )
    sdks = ApplicationSdk(many=True, help_text="SDKs of those instances.")
    instanceCount = serializers.IntegerField(help_text="Number of instances, listed or not.")
    lastSeen = serializers.DateTimeField(help_text="Time of its last report.")


class ProjectApplications(serializers.Serializer):
    total = serializers.IntegerField(help_text="Number of matching applications on all pages.")
    applications = ProjectApplicationRecord(many=True)


class ApplicationUsage(serializers.Serializer):
    project = serializers.CharField()
    environments = Texts()


class ApplicationBase(serializers.Serializer):
    appName = serializers.CharField()
    createdAt = serializers.DateTimeField(help_text="Time of its first report.")
    description = serializers.CharField(allow_null=True)
    url = serializers.CharField(allow_null=True)
    color = serializers.CharField(allow_null=True)
    icon = serializers.CharField(allow_null=True)


class ApplicationOverview(ApplicationBase):
    strategies = Texts()
    usage = ApplicationUsage(many=True)


class Applications(serializers.Serializer):
    applications = ApplicationOverview(many=True)
    total = serializers.IntegerField()


class InstanceRecord(serializers.Serializer):
    instanceId = serializers.CharField()
    sdkVersion = serializers.CharField(allow_null=True)
    sdkFlavor = serializers.CharField(
        allow_null=True, help_text="The framework integration around the SDK: `fastapi:1.2.0`."
    )
    sdkType = serializers.CharField()
    environment = serializers.CharField()
    platformName = serializers.CharField(allow_null=True)
    platformVersion = serializers.CharField(allow_null=True)
    lastSeen = serializers.DateTimeField()
    createdAt = serializers.DateTimeField()
    appName = serializers.CharField(required=False)


class ApplicationDetail(ApplicationBase):
    strategies = serializers.ListField(child=serializers.DictField())
    instances = InstanceRecord(many=True, help_text="At most 100 (configurable).")
    instanceCount = serializers.IntegerField()
    seenToggles = SeenFlag(many=True)
    links = serializers.DictField(child=serializers.CharField())
    ignored = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="New instances, variants and unknown flags of the last two days that exceeded a limit and were not "
        "stored.",
    )


class IgnoredReport(serializers.Serializer):
    hour = serializers.DateTimeField(help_text="Start of the hour.")
    kind = serializers.ChoiceField(
        choices=["application", "instance", "variant", "impact metric", "unknown flag", "flag count"]
    )
    tokenName = serializers.CharField(
        allow_null=True, help_text="Token whose new applications or invalid counts were ignored."
    )
    appName = serializers.CharField(
        allow_null=True, help_text="Application whose instances, variants or unknown flags were."
    )
    count = serializers.IntegerField()


class IgnoredReports(serializers.Serializer):
    ignored = IgnoredReport(many=True)


class UnknownFlagPlace(serializers.Serializer):
    environment = serializers.CharField()
    seenAt = serializers.DateTimeField()


class UnknownFlagReport(serializers.Serializer):
    appName = serializers.CharField()
    environments = UnknownFlagPlace(many=True)


class UnknownFlagRecord(serializers.Serializer):
    name = serializers.CharField()
    lastSeenAt = serializers.DateTimeField()
    lastEventAt = serializers.DateTimeField(
        allow_null=True, help_text="The last event of a flag of this name, which has been deleted."
    )
    reports = UnknownFlagReport(many=True)


class UnknownFlags(serializers.Serializer):
    unknownFlags = UnknownFlagRecord(many=True)


class ApplicationNotes(Body):
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    url = serializers.CharField(required=False, allow_null=True, allow_blank=True, max_length=2_000)
    color = serializers.CharField(required=False, allow_null=True, allow_blank=True, max_length=50)
    icon = serializers.CharField(required=False, allow_null=True, allow_blank=True, max_length=255)
    strategies = ListOf(
        child=serializers.CharField(max_length=255),
        required=False,
        help_text="Names of the strategy types it supports.",
    )


class Instances(serializers.Serializer):
    instances = InstanceRecord(many=True)


class HourUsage(serializers.Serializer):
    environment = serializers.CharField()
    timestamp = serializers.DateTimeField()
    yes = serializers.IntegerField()
    no = serializers.IntegerField()


class FlagUser(serializers.Serializer):
    appName = serializers.CharField()
    environment = serializers.CharField()
    lastSeenAt = serializers.DateTimeField()


class FeatureUsageBase(serializers.Serializer):
    version = serializers.IntegerField()
    maturity = serializers.CharField()
    featureName = serializers.CharField()


class FeatureUsage(FeatureUsageBase):
    lastHourUsage = HourUsage(many=True)
    seenApplications = Texts()
    usage = FlagUser(many=True, help_text="Applications that evaluated it, by environment, latest first.")


class RawHourUsage(HourUsage):
    featureName = serializers.CharField()
    appName = serializers.CharField()
    variants = serializers.DictField(child=serializers.IntegerField())


class RawFeatureUsage(FeatureUsageBase):
    data = RawHourUsage(many=True)  # type: ignore[assignment]


class EnvironmentIssues(serializers.Serializer):
    missingFeatures = Texts(help_text="Flags that it reported in the last two days though they do not exist.")
    outdatedSdks = Texts(help_text="Always empty: no SDK is reported as outdated.")


class EnvironmentOfApplication(serializers.Serializer):
    name = serializers.CharField()
    instanceCount = serializers.IntegerField()
    sdks = Texts(help_text="name:version")
    frontendSdks = Texts()
    backendSdks = Texts()
    lastSeen = serializers.DateTimeField()
    issues = EnvironmentIssues()


class ApplicationIssues(serializers.Serializer):
    missingStrategies = Texts(help_text="Strategy types it supports that do not exist here.")


class ApplicationAtAGlance(serializers.Serializer):
    """An application's projects, and by environment its instances and SDKs."""

    projects = Texts(help_text="Projects whose flags it evaluated.")
    featureCount = serializers.IntegerField(help_text="Number of flags it evaluated.")
    environments = EnvironmentOfApplication(many=True)
    issues = ApplicationIssues()
