"""Bodies and records of safeguards, and of charts of impact metrics."""

from rest_framework import serializers

from flagadmin.core.http.fields import Body, ListOf, MapOf, Texts
from releases.models import MetricChart, Safeguard
from releases.safeguards.rules import AGGREGATIONS, STEPS, TIME_RANGES


class SeriesBody(Body):
    """The selected part of a metric."""

    timeRange = serializers.ChoiceField(choices=list(TIME_RANGES), default="hour")
    aggregationMode = serializers.ChoiceField(choices=list(AGGREGATIONS), default="avg")
    labelSelectors = MapOf(
        child=ListOf(child=serializers.CharField(max_length=255), max_length=100),
        max_length=20,
        required=False,
        default=dict,
        help_text="Values by label. `*` is any.",
    )


class MetricBody(SeriesBody):
    metricName = serializers.CharField(
        max_length=2000, help_text="An impact metric; external: a query in PromQL; alert: its name."
    )
    comparesWithout = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Compare users with and without the flag, where a label of the metric tells them apart.",
    )

    includesFrontend = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Count what frontend tokens report, too. Their secrets are in every browser: anybody can send "
        "numbers that breach the safeguard, or hide that it is breached.",
    )

    def get_fields(self) -> dict[str, serializers.Field]:
        source = serializers.ChoiceField(
            choices=Safeguard.Source.values, required=False, default=Safeguard.Source.INTERNAL
        )
        return super().get_fields() | {"source": source}


class TriggerBody(Body):
    operator = serializers.ChoiceField(choices=[">", "<"])
    threshold = serializers.FloatField()


class ActionBody(Body):
    type = serializers.ChoiceField(choices=Safeguard.Action.values)


class FlagSafeguardBody(Body):
    """A safeguard of a flag in an environment: a breached one turns the flag off there."""

    id = serializers.CharField(max_length=26, required=False, help_text="Of the one to change.")
    title = serializers.CharField(max_length=255, required=False, allow_blank=True, default="")
    impactMetric = MetricBody()
    triggerCondition = TriggerBody(required=False, help_text="When it is breached. Not for alerts.")


class SafeguardBody(FlagSafeguardBody):
    """A safeguard of a release plan."""

    action = ActionBody(
        required=False, help_text="What is done then: pause (the default), stepBack or turnOff."
    )


class TriggerRecord(serializers.Serializer):
    operator = serializers.ChoiceField(choices=[">", "<"])
    threshold = serializers.FloatField()


class ActionRecord(serializers.Serializer):
    type = serializers.CharField(help_text="pause, stepBack or turnOff.")
    id = serializers.CharField()


class MetricRecord(serializers.Serializer):
    id = serializers.CharField()
    metricName = serializers.CharField()
    timeRange = serializers.CharField()
    aggregationMode = serializers.CharField()
    labelSelectors = serializers.DictField(child=Texts())
    comparesWithout = serializers.BooleanField(
        help_text="The number is that of users with the flag less that of those without."
    )
    includesFrontend = serializers.BooleanField(
        help_text="Whether numbers of frontend tokens count, too. Anybody with a browser can send some."
    )

    def get_fields(self) -> dict[str, serializers.Field]:
        source = serializers.CharField(help_text="internal, external or alert.")
        return super().get_fields() | {"source": source}


class SafeguardRecord(serializers.Serializer):
    id = serializers.CharField()
    title = serializers.CharField(allow_blank=True)
    action = ActionRecord()
    triggerCondition = TriggerRecord()
    impactMetric = MetricRecord()
    firingSince = serializers.DateTimeField(allow_null=True, help_text="Of an alert.")


class ChartBody(SeriesBody):
    id = serializers.CharField(max_length=26, required=False, help_text="Of the one to change.")
    metricName = serializers.CharField(max_length=255, help_text="An impact metric that SDKs report.")
    yAxisMin = serializers.ChoiceField(choices=MetricChart.YAxis.values, default=MetricChart.YAxis.AUTO)
    title = serializers.CharField(max_length=255, required=False, allow_blank=True, default="")


class ChartRecord(serializers.Serializer):
    id = serializers.CharField()
    title = serializers.CharField(allow_blank=True)
    displayName = serializers.CharField(help_text="Its title, or the name of the metric.")
    metricName = serializers.CharField()
    timeRange = serializers.ChoiceField(choices=list(TIME_RANGES))
    aggregationMode = serializers.ChoiceField(choices=list(AGGREGATIONS))
    labelSelectors = serializers.DictField(child=Texts())
    yAxisMin = serializers.ChoiceField(choices=MetricChart.YAxis.values)
    type = serializers.ChoiceField(
        choices=["counter", "gauge", "histogram", "unknown"], help_text="unknown: nothing has been reported."
    )
    step = serializers.ChoiceField(choices=list(STEPS.values()))
    mode = serializers.CharField(help_text="read, or write: you may change it.")


class ChartsRecord(serializers.Serializer):
    configs = ChartRecord(many=True)
