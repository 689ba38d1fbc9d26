"""Loads recorded SDK requests and the reference's responses, and creates the flags of the recording."""

from typing import Any

from django.utils import timezone

from projects.models import Dependency, Flag, FlagEnvironment, Segment, Strategy, StrategySegment
from tests.support.vectors import load

FEATURES = "features, spec 5.2.0"


def recorded_cases(prefix: str) -> dict[str, dict[str, Any]]:
    """The cases whose path starts with ``prefix``, by name. ``answer`` is present if it was recorded."""
    recordings = load("sdk")
    return {
        case["name"]: case | ({"answer": recordings["answers"][case["answer"]]} if "answer" in case else {})
        for case in recordings["cases"]
        if case["path"].startswith(prefix)
    }


def make_recorded_flags() -> dict[int, int]:
    """Creates the recording's flags. Returns the ids of the new segments by those in the recording."""
    document = recorded_cases("/api/client/features")[FEATURES]["answer"]
    segments = {
        s["id"]: Segment.objects.create(name=s["name"], constraints=s["constraints"])
        for s in document["segments"]
    }
    for feature in document["features"]:
        make_recorded(feature, segments)
    for feature in document["features"]:
        for parent in feature.get("dependencies", ()):
            Dependency.objects.create(
                flag=Flag.objects.get(name=feature["name"]), parent=Flag.objects.get(name=parent["feature"])
            )
    return {theirs: ours.pk for theirs, ours in segments.items()}


def make_recorded(feature: dict[str, Any], segments: dict[int, Segment]) -> None:
    flag = Flag.objects.create(
        name=feature["name"],
        project_id="default",
        type=feature["type"],
        impression_data=feature["impressionData"],
        created_at=timezone.now(),
    )
    FlagEnvironment.objects.create(flag=flag, environment_id="development", enabled=feature["enabled"])
    for order, strategy in enumerate(feature["strategies"]):
        made = Strategy.objects.create(
            flag=flag,
            environment_id="development",
            sort_order=order,
            **{key: strategy[key] for key in ("name", "constraints", "parameters", "variants")},
        )
        for segment in strategy.get("segments", ()):
            StrategySegment.objects.create(strategy=made, segment=segments[segment])
