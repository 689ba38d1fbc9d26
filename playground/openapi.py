"""Serializers that only describe the playground in the OpenAPI document.

`playground.request` reads bodies, `playground.response.writer` writes answers.
"""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from flagadmin.core.http.fields import ListOf, MapOf, Texts
from flagadmin.core.http.openapi import read_sections
from playground.context_body import MAX_FIELDS, MAX_TEXT_LENGTH
from playground.request import MAX_ENVIRONMENTS, MAX_PROJECTS

SECTIONS = read_sections(__file__)


@extend_schema_field(
    {
        "oneOf": [
            {
                "type": "array",
                "items": {"type": "string", "maxLength": MAX_TEXT_LENGTH},
                "maxItems": MAX_PROJECTS,
            },
            {"type": "string", "enum": ["*"]},
        ],
        "example": ["default"],
    }
)
class ProjectsField(s.JSONField):
    """A list of project ids, or "*"."""


@extend_schema_field({"oneOf": [{"type": "boolean"}, {"type": "string", "enum": ["unknown"]}]})
class OutcomeField(s.JSONField):
    """true, false or "unknown"."""


class ContextText(s.CharField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            max_length=MAX_TEXT_LENGTH, required=False, allow_null=True, allow_blank=True, **kwargs
        )


class EvaluationContext(s.Serializer[Any]):
    appName = ContextText(help_text="Application name.")
    currentTime = s.DateTimeField(required=False, help_text="The time to evaluate at; now when absent.")
    properties = MapOf(
        child=ContextText(), max_length=MAX_FIELDS, required=False, help_text="Custom context fields."
    )
    remoteAddress = ContextText(help_text="Client address.")
    sessionId = ContextText(help_text="Session identifier.")
    userId = ContextText(help_text="User identifier.")


def _make_moment() -> s.DateTimeField:
    help_text = "A moment in the past or ahead; now when absent."
    return s.DateTimeField(required=False, allow_null=True, help_text=help_text)


def _make_notes() -> s.ListField:
    return Texts(required=False, help_text="What is to be known about `at`.")


class PlaygroundRequestSerializer(s.Serializer[Any]):
    environment = s.CharField(max_length=MAX_TEXT_LENGTH, help_text="The environment to evaluate in.")
    projects = ProjectsField(required=False, allow_null=True)
    context = EvaluationContext()  # type: ignore[assignment]  # a field's name, not DRF's own
    at = _make_moment()


class AdvancedPlaygroundRequestSerializer(s.Serializer[Any]):
    environments = ListOf(
        child=s.CharField(max_length=MAX_TEXT_LENGTH), min_length=1, max_length=MAX_ENVIRONMENTS
    )
    projects = ProjectsField(required=False, allow_null=True)
    context = EvaluationContext()  # type: ignore[assignment]  # a field's name, not DRF's own
    at = _make_moment()


class Payload(s.Serializer[Any]):
    type = s.ChoiceField(["json", "csv", "string", "number"])
    value = s.CharField()


class VariantOverride(s.Serializer[Any]):
    contextName = s.CharField()
    values = Texts()


class FeatureVariant(s.Serializer[Any]):
    name = s.CharField(help_text="Unique within the flag.")
    weight = s.FloatField(min_value=0, max_value=1000)
    weightType = s.ChoiceField(["variable", "fix"], required=False)
    stickiness = s.CharField(required=False)
    payload = Payload(required=False)
    overrides = VariantOverride(many=True, required=False)


class PlaygroundVariant(s.Serializer[Any]):
    name = s.CharField()
    enabled = s.BooleanField()
    payload = Payload(required=False)
    feature_enabled = s.BooleanField(required=False)
    featureEnabled = s.BooleanField(
        required=False,
        help_text="Same as feature_enabled, for environment variants and if there is no variant.",
    )


class EvaluatedConstraint(s.Serializer[Any]):
    contextName = s.CharField()
    operator = s.CharField()
    caseInsensitive = s.BooleanField(required=False)
    inverted = s.BooleanField(required=False)
    values = Texts(required=False)
    value = s.CharField(required=False)
    result = s.BooleanField()


class EvaluatedSegment(s.Serializer[Any]):
    id = s.IntegerField()
    name = s.CharField()
    result = s.BooleanField()
    constraints = EvaluatedConstraint(many=True)


class StrategyOutcome(s.Serializer[Any]):
    enabled = OutcomeField()
    evaluationStatus = s.ChoiceField(["complete", "incomplete", "unevaluated"])
    variant = PlaygroundVariant(required=False)
    variants = FeatureVariant(many=True, required=False)


class StrategyLinks(s.Serializer[Any]):
    edit = s.CharField(help_text="The console's page for this strategy.")


class Rollout(s.Serializer[Any]):
    bucket = s.IntegerField(
        allow_null=True,
        help_text="1 to 100; null if there is no value to hash: then it is off, or drawn on each call.",
    )
    threshold = s.FloatField(help_text="The rollout percentage: buckets up to it are on.")
    stickiness = s.CharField(help_text="What is hashed: a field of the context, `default` or `random`.")
    field = s.CharField(required=False, help_text="The field whose value was hashed.")
    value = s.CharField(required=False, help_text="The value that was hashed.")


class EvaluatedStrategy(s.Serializer[Any]):
    name = s.CharField()
    title = s.CharField(required=False)
    id = s.CharField()
    result = StrategyOutcome()
    disabled = s.BooleanField()
    segments = EvaluatedSegment(many=True)
    constraints = EvaluatedConstraint(many=True)
    parameters = s.DictField(child=s.CharField())
    links = StrategyLinks()
    rollout = Rollout(required=False)


class EvaluatedStrategies(s.Serializer[Any]):
    result = OutcomeField()
    data = EvaluatedStrategy(many=True)  # type: ignore[assignment]  # as above


class PlaygroundFeature(s.Serializer[Any]):
    name = s.CharField()
    projectId = s.CharField()
    strategies = EvaluatedStrategies()
    hasUnsatisfiedDependency = s.BooleanField()
    isEnabledInCurrentEnvironment = s.BooleanField()
    isEnabled = s.BooleanField()
    variant = PlaygroundVariant()
    variants = FeatureVariant(many=True)
    reason = s.CharField()
    unsatisfiedDependencies = Texts(required=False)


class PlaygroundResponse(s.Serializer[Any]):
    input = PlaygroundRequestSerializer()
    features = PlaygroundFeature(many=True)
    notes = _make_notes()


class AdvancedEvaluation(PlaygroundFeature):
    environment = s.CharField()
    context = s.DictField(child=s.CharField())  # type: ignore[assignment]  # as above


class AdvancedFeature(s.Serializer[Any]):
    name = s.CharField()
    projectId = s.CharField()
    environments = s.DictField(child=AdvancedEvaluation(many=True))


class AdvancedWarnings(s.Serializer[Any]):
    invalidContextProperties = Texts(required=False)


class AdvancedPlaygroundResponse(s.Serializer[Any]):
    features = AdvancedFeature(many=True)
    input = AdvancedPlaygroundRequestSerializer()
    warnings = AdvancedWarnings(required=False)
    notes = _make_notes()
