"""Bodies of safeguards."""

from rest_framework import serializers

from flagadmin.core.http.fields import Body, ListOf, MapOf
from releases.models import Safeguard
from releases.safeguards.rules import AGGREGATIONS, TIME_RANGES


class MetricBody(Body):
    metricName = serializers.CharField(
        max_length=2000, help_text="An impact metric; external: a query in PromQL; alert: its name."
    )
    timeRange = serializers.ChoiceField(choices=list(TIME_RANGES), default="hour")
    aggregationMode = serializers.ChoiceField(choices=list(AGGREGATIONS), default="avg")
    labelSelectors = MapOf(
        child=ListOf(child=serializers.CharField(max_length=255), max_length=100),
        max_length=20,
        required=False,
        default=dict,
        help_text="Values by label. `*` is any.",
    )
    comparesWithout = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Compare users with the flag with those without, where a label of the metric says who has it.",
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


class SafeguardBody(Body):
    id = serializers.CharField(max_length=26, required=False, help_text="Of the one to change.")
    title = serializers.CharField(max_length=255, required=False, allow_blank=True, default="")
    impactMetric = MetricBody()
    triggerCondition = TriggerBody(required=False, help_text="When it is breached. Not for alerts.")
    action = ActionBody(
        required=False, help_text="What is done then: pause (the default), stepBack or turnOff."
    )
