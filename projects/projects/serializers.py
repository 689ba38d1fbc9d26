"""Request and response bodies for projects."""

from typing import Any

from rest_framework import serializers

from flagadmin.core.http.fields import Body, BoundedTexts, NullableText
from projects.models import Project
from projects.projects.settings import SETTINGS, Setting


def _make_field(setting: Setting) -> serializers.Field:
    model_field: Any = Project._meta.get_field(setting.field)
    field_class, options = serializers.ModelSerializer().build_standard_field(setting.field, model_field)
    options |= {"required": False, "help_text": setting.help}
    if setting.field != setting.member:
        options["source"] = setting.field
    return field_class(**options)


class FeatureNaming(Body):
    pattern = serializers.CharField(
        allow_null=True,
        allow_blank=True,
        help_text="A regular expression (RE2) that names of new flags match as a whole.",
    )
    example = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)


class CommentLink(Body):
    pattern = serializers.CharField(help_text="A regular expression (RE2) for parts of comments.")
    url = serializers.CharField(
        help_text="Where such a part leads. `{match}` stands for it, or for the first group of the pattern."
    )


class LinkTemplate(Body):
    title = serializers.CharField(required=False, default=None, allow_null=True, allow_blank=True)
    urlTemplate = serializers.CharField(
        help_text="`{{feature}}` and `{{project}}` stand for the flag's name and the project's id."
    )


class ProjectChanges(Body):
    # A setting that has no field here gets that of its column.
    description = NullableText(required=False)
    mode = serializers.ChoiceField(
        Project.Mode.values,
        required=False,
        help_text="open: everyone with a root role can see the project and propose changes; protected: everyone with a "
        "root role can see it, but only members and admins can propose changes; private: only they can see it.",
    )
    defaultStickiness = serializers.CharField(
        source="default_stickiness",
        required=False,
        help_text="default, random, userId, sessionId or a context field.",
    )
    featureLimit = serializers.IntegerField(
        source="flag_limit", required=False, allow_null=True, min_value=1, help_text="null: no limit."
    )
    featureNaming = FeatureNaming(required=False, allow_null=True)
    commentLinks = CommentLink(
        source="comment_links",
        many=True,
        required=False,
        help_text="Links in comments, to tickets for example.",
    )
    linkTemplates = LinkTemplate(
        source="link_templates",
        many=True,
        required=False,
        help_text="Links that new flags get.",
    )

    def get_fields(self) -> dict[str, serializers.Field]:
        return {
            setting.member: _make_field(setting) for setting in SETTINGS if "." not in setting.member
        } | super().get_fields()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Converts the request's names to model fields."""
        if "featureNaming" in attrs:
            naming = attrs.pop("featureNaming") or {}
            attrs |= {
                setting.field: naming.get(member) or ""
                for setting in SETTINGS
                for parent, _, member in [setting.member.partition(".")]
                if parent == "featureNaming"
            }
        return attrs


class NewProject(ProjectChanges):
    id = serializers.CharField(
        required=False,
        allow_blank=True,
        allow_null=True,
        help_text="1 to 100 of letters, digits and - . _ ~; made from the name when absent.",
    )
    name = serializers.CharField(max_length=255)
    environments = BoundedTexts(
        required=False,
        allow_null=True,
        help_text="Names; absent: all that are enabled.",
    )


class ProjectRecord(ProjectChanges):
    id = serializers.CharField()
    createdAt = serializers.DateTimeField()
    archivedAt = serializers.DateTimeField(allow_null=True)
    environments = BoundedTexts(required=False)


class OnboardingStatus(serializers.Serializer):
    status = serializers.ChoiceField(
        ["onboarding-started", "first-flag-created", "onboarded"],
        help_text="Without flags; with flags that no SDK has evaluated yet; in use.",
    )
    feature = serializers.CharField(required=False, help_text="The first flag, while none is in use.")


class LatestOfProject(serializers.Serializer):
    """Recent activity of a project."""

    technicalDebt = serializers.IntegerField(
        help_text="Percent of the active flags that are stale or potentially stale."
    )
    potentiallyStaleFeatureCount = serializers.IntegerField(
        help_text="Active flags that are older than the expected lifetime of their type and not marked as stale."
    )
    lastUpdatedAt = serializers.DateTimeField(allow_null=True, help_text="Its last event.")
    lastReportedFlagUsage = serializers.DateTimeField(allow_null=True, help_text="The last report of an SDK.")
    onboardingStatus = OnboardingStatus()


class CountedProject(LatestOfProject):
    health = serializers.IntegerField(
        help_text="Percent of the active flags that are neither stale nor potentially stale."
    )
    favorite = serializers.BooleanField()
    featureCount = serializers.IntegerField(help_text="Active flags.")
    archivedFeatureCount = serializers.IntegerField()
    staleFeatureCount = serializers.IntegerField()
    owners = serializers.ListField(child=serializers.DictField())


class ProjectSummary(CountedProject):
    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    mode = serializers.ChoiceField(Project.Mode.values)
    defaultStickiness = serializers.CharField()
    memberCount = serializers.IntegerField(help_text="Users with access, also through a group, each once.")
    createdAt = serializers.DateTimeField()
    archivedAt = serializers.DateTimeField(allow_null=True)


class ProjectList(serializers.Serializer):
    version = serializers.IntegerField(help_text="Version of this format: 1.")
    projects = ProjectSummary(many=True)


class EnvironmentOfProject(serializers.Serializer):
    environment = serializers.CharField()
    defaultStrategy = serializers.DictField(required=False)


class FlagTypeCount(serializers.Serializer):
    type = serializers.CharField()
    count = serializers.IntegerField()


class ProjectStats(serializers.Serializer):
    """Statistics for the current window, the last thirty days, and for the thirty days before."""

    avgTimeToProdCurrentWindow = serializers.FloatField(
        help_text="Days from the creation of a flag to its first use in production."
    )
    createdCurrentWindow = serializers.IntegerField(help_text="Flags.")
    createdPastWindow = serializers.IntegerField()
    archivedCurrentWindow = serializers.IntegerField()
    archivedPastWindow = serializers.IntegerField()
    projectActivityCurrentWindow = serializers.IntegerField(help_text="Events, of the last 10,000.")
    projectActivityPastWindow = serializers.IntegerField()
    projectMembersAddedCurrentWindow = serializers.IntegerField()


class ProjectOverview(CountedProject, ProjectRecord):
    version = serializers.IntegerField(help_text="Version of this format: 1.")
    members = serializers.IntegerField()
    stats = ProjectStats()
    updatedAt = serializers.DateTimeField(help_text="Its last event, or its creation.")
    environments = EnvironmentOfProject(many=True)  # type: ignore[assignment]
    featureTypeCounts = FlagTypeCount(many=True)


class ProjectDetails(ProjectOverview):
    features = serializers.ListField(child=serializers.DictField(), help_text="Active flags, by name.")


class ProjectResources(serializers.Serializer):
    members = serializers.IntegerField(help_text="Users with access, also through a group, each once.")
    apiTokens = serializers.IntegerField(help_text="Tokens that name the project.")
    segments = serializers.IntegerField(help_text="Segments of the project.")


class DayOfActivity(serializers.Serializer):
    date = serializers.DateField()
    count = serializers.IntegerField(help_text="Events.")


class CurrentPercentage(serializers.Serializer):
    current = serializers.IntegerField()


class StageSummary(serializers.Serializer):
    averageDays = serializers.IntegerField(
        allow_null=True, help_text="Days that flags spent in the stage, of those that have left it."
    )
    currentFlags = serializers.IntegerField()


class ArchiveSummary(serializers.Serializer):
    currentFlags = serializers.IntegerField()
    last30Days = serializers.IntegerField(help_text="Archived in the last thirty days.")


class LifecycleSummary(serializers.Serializer):
    initial = StageSummary()
    preLive = StageSummary()
    live = StageSummary()
    completed = StageSummary()
    archived = ArchiveSummary()


class StaleFlags(serializers.Serializer):
    total = serializers.IntegerField(help_text="Stale and potentially stale flags.")


class ProjectStatus(serializers.Serializer):
    resources = ProjectResources()
    activityCountByDate = DayOfActivity(many=True, help_text="Days of the last year with events, in UTC.")
    health = CurrentPercentage()
    technicalDebt = CurrentPercentage()
    lifecycleSummary = LifecycleSummary()
    staleFlags = StaleFlags()


class ProjectId(Body):
    id = serializers.CharField()
