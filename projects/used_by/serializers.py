"""Response serializers for the uses of a segment or a context field."""

from rest_framework import serializers


class StrategyUse(serializers.Serializer):
    id = serializers.UUIDField()
    projectId = serializers.CharField()
    featureName = serializers.CharField()
    strategyName = serializers.CharField()
    environment = serializers.CharField()


class DefaultStrategyUse(serializers.Serializer):
    projectId = serializers.CharField()
    environment = serializers.CharField()


class VariantsUse(DefaultStrategyUse):
    featureName = serializers.CharField()


class SegmentUse(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()


class ProjectUse(serializers.Serializer):
    id = serializers.CharField()


class SegmentUses(serializers.Serializer):
    strategies = StrategyUse(many=True)
    defaultStrategies = DefaultStrategyUse(many=True, help_text="Projects' default strategies.")
