"""/api/admin/metrics/applications and /api/admin/client-metrics: applications and usage across projects."""

from django.db.models import Q, QuerySet
from django.urls import path
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import NotFound, ValidationError
from flagadmin.http.fields import Body, ListOf
from flagadmin.http.list_queries import ListFilter, list_parameters, sort_keys, terms_of
from flagadmin.http.openapi import refusals
from groups.access import Caller
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import readable_flags
from projects.applications import details as documents
from projects.applications.actions import delete_application, update_application
from projects.applications.ignored_reports import ignored_documents, ignored_of
from projects.flags.usage import flag_usage_document, raw_usage_document
from projects.models import ApplicationInstance, Flag

TAGS = ["Metrics"]
HOURS = 48  # how long hourly counts are kept


class ApplicationUsage(serializers.Serializer):
    project = serializers.CharField()
    environments = serializers.ListField(child=serializers.CharField())


class ApplicationBase(serializers.Serializer):
    appName = serializers.CharField()
    createdAt = serializers.DateTimeField(help_text="When it was first heard of.")
    description = serializers.CharField(allow_null=True)
    url = serializers.CharField(allow_null=True)
    color = serializers.CharField(allow_null=True)
    icon = serializers.CharField(allow_null=True)


class ApplicationOverview(ApplicationBase):
    strategies = serializers.ListField(child=serializers.CharField())
    usage = ApplicationUsage(many=True)


class Applications(serializers.Serializer):
    applications = ApplicationOverview(many=True)
    total = serializers.IntegerField()


class InstanceRecord(serializers.Serializer):
    instanceId = serializers.CharField()
    sdkVersion = serializers.CharField(allow_null=True)
    sdkFlavor = serializers.CharField(
        allow_null=True, help_text="What the SDK is wrapped in: `fastapi:1.2.0`."
    )
    sdkType = serializers.CharField()
    environment = serializers.CharField()
    platformName = serializers.CharField(allow_null=True)
    platformVersion = serializers.CharField(allow_null=True)
    lastSeen = serializers.DateTimeField()
    createdAt = serializers.DateTimeField()
    appName = serializers.CharField(required=False)


class SeenFlag(serializers.Serializer):
    name = serializers.CharField()
    description = serializers.CharField(allow_null=True)
    type = serializers.CharField()
    project = serializers.CharField()
    stale = serializers.BooleanField()
    createdAt = serializers.DateTimeField()
    impressionData = serializers.BooleanField()
    archived = serializers.BooleanField()


class ApplicationDetail(ApplicationBase):
    strategies = serializers.ListField(child=serializers.DictField())
    instances = InstanceRecord(many=True, help_text="At most 100 (a setting).")
    instanceCount = serializers.IntegerField()
    seenToggles = SeenFlag(many=True)
    links = serializers.DictField(child=serializers.CharField())
    ignored = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="New instances and variants that were beyond a limit in the last two days, and not kept.",
    )


class IgnoredReport(serializers.Serializer):
    hour = serializers.DateTimeField(help_text="Beginning of the hour.")
    kind = serializers.ChoiceField(choices=["application", "instance", "variant", "impact metric"])
    tokenName = serializers.CharField(allow_null=True, help_text="Token whose new applications were ignored.")
    appName = serializers.CharField(
        allow_null=True, help_text="Application whose instances or variants were."
    )
    count = serializers.IntegerField()


class IgnoredReports(serializers.Serializer):
    ignored = IgnoredReport(many=True)


class ApplicationNotes(Body):
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    url = serializers.CharField(required=False, allow_null=True, allow_blank=True, max_length=2_000)
    color = serializers.CharField(required=False, allow_null=True, allow_blank=True, max_length=50)
    icon = serializers.CharField(required=False, allow_null=True, allow_blank=True, max_length=255)
    strategies = ListOf(
        child=serializers.CharField(max_length=255),
        required=False,
        help_text="Names of strategy types it has.",
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
    seenApplications = serializers.ListField(child=serializers.CharField())
    usage = FlagUser(many=True, help_text="Who asked for it where, the latest first.")


class RawHourUsage(HourUsage):
    featureName = serializers.CharField()
    appName = serializers.CharField()
    variants = serializers.DictField(child=serializers.IntegerField())


class RawFeatureUsage(FeatureUsageBase):
    data = RawHourUsage(many=True)  # type: ignore[assignment]


class AllApplicationsFilter(ListFilter):
    default_limit = 1000
    sortBy = sort_keys("appName")

    def keep_matches(self, rows: QuerySet, name: str, value: str) -> QuerySet:
        wanted = Q()
        for term in terms_of(value):
            wanted |= Q(folded_name__contains=term.casefold())
        return rows.filter(wanted)


class ApplicationsView(APIView):
    @extend_schema(
        operation_id="getApplications",
        tags=TAGS,
        parameters=list_parameters(
            AllApplicationsFilter,
            query="Search over application names: caseless, anywhere in them; a comma means or.",
            sort_by="Field to sort by:",
        ),
        responses={200: Applications} | refusals(400, 403),
    )
    def get(self, request: ApiRequest) -> Response:
        """All applications that were heard of, with the projects whose flags they use."""
        asked = AllApplicationsFilter(request.query_params, documents.readable_applications(request.user))
        asked.check()
        page = asked.page(asked.qs.order_by("-name" if asked.descending else "name"))
        records = documents.overview_documents(request.user, page)
        return Response({"applications": records, "total": asked.qs.count()})


class ApplicationView(APIView):
    @extend_schema(
        operation_id="getApplication",
        tags=TAGS,
        responses={200: ApplicationDetail} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, name: str) -> Response:
        """One application: its instances, and the flags it asked for."""
        application = documents.access_application(request.user, name)
        record = documents.detail_document(request.user, application)
        return Response(record | {"ignored": ignored_of(application)})

    @extend_schema(
        operation_id="createApplication",
        tags=TAGS,
        request=ApplicationNotes,
        responses={202: None} | refusals(400, 403, 404, 415),
        examples=[
            OpenApiExample(
                "A page and a colour",
                {"url": "https://wiki.example/web", "color": "#005577"},
                request_only=True,
            )
        ],
    )
    def post(self, request: ApiRequest, name: str) -> Response:
        """Note what an application is. Only what is given changes; the application must have been heard of."""
        documents.access_application(request.user, name)
        request.user.check(Permission.UPDATE_APPLICATION)
        body = ApplicationNotes(data=request.data)
        body.is_valid(raise_exception=True)
        update_application(name, body.validated_data, caller=request.user)
        return Response(status=202)

    @extend_schema(operation_id="deleteApplication", tags=TAGS, responses={200: None} | refusals(403, 404))
    def delete(self, request: ApiRequest, name: str) -> Response:
        """Forget an application with its instances and usage. It comes back with its next report."""
        delete_application(name, caller=request.user)
        return Response()


class IgnoredReportsView(APIView):
    @extend_schema(
        operation_id="getIgnoredReports", tags=TAGS, responses={200: IgnoredReports} | refusals(403)
    )
    def get(self, request: ApiRequest) -> Response:
        """What SDKs reported beyond the limits of an hour in the last two days, by token or application."""
        return Response({"ignored": ignored_documents(request.user)})


class InstancesView(APIView):
    @extend_schema(
        operation_id="getApplicationEnvironmentInstances",
        tags=TAGS,
        responses={200: Instances} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, name: str, environment: str) -> Response:
        """The instances of an application in an environment."""
        application = documents.access_application(request.user, name)
        instances = ApplicationInstance.objects.filter(application=application, environment=environment)
        records = map(documents.instance_document, instances.order_by("instance_id"))
        return Response({"instances": list(records)})


class FeatureUsageView(APIView):
    @extend_schema(
        operation_id="getFeatureUsageSummary",
        tags=TAGS,
        responses={200: FeatureUsage} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, name: str) -> Response:
        """How often a flag was asked for in the last hour, and which applications ever asked for it."""
        return Response(flag_usage_document(readable_flag(request.user, name)))


class RawFeatureUsageView(APIView):
    @extend_schema(
        operation_id="getRawFeatureMetrics",
        tags=TAGS,
        parameters=[OpenApiParameter("hoursBack", int, description=f"1 to {HOURS}.", default=24)],
        responses={200: RawFeatureUsage} | refusals(400, 403, 404),
    )
    def get(self, request: ApiRequest, name: str) -> Response:
        """The counts of a flag by application, environment and hour."""
        flag = readable_flag(request.user, name)
        said = request.query_params.get("hoursBack") or "24"
        if not (said.isascii() and said.isdecimal() and len(said) < 4 and 1 <= int(said) <= HOURS):
            raise ValidationError.at("hoursBack", f"{said!r} is not a whole number from 1 to {HOURS}.")
        return Response(raw_usage_document(flag, hours_back=int(said)))


def readable_flag(caller: Caller, name: str) -> Flag:
    """Raises NotFound."""
    flag = readable_flags(caller).filter(name=name).first()
    if flag is None:
        raise NotFound(f"There is no flag {name}.")
    return flag


urlpatterns = [
    path("metrics/applications", ApplicationsView.as_view()),
    path("metrics/applications/<str:name>", ApplicationView.as_view()),
    path("metrics/ignored", IgnoredReportsView.as_view()),
    path("metrics/instances/<str:name>/environment/<str:environment>", InstancesView.as_view()),
    path("client-metrics/features/<str:name>", FeatureUsageView.as_view()),
    path("client-metrics/features/<str:name>/raw", RawFeatureUsageView.as_view()),
]
