"""Creates the initial rows, such as the default project, after every ``migrate`` and ``flush``."""

from typing import Any

from django.apps import apps as global_apps
from django.db import transaction

from playground.engine.strategy_types import STRATEGY_TYPES

DEFAULT_PROJECT = "default"
ENVIRONMENTS = (("development", "development", 2), ("production", "production", 3))
FLAG_TYPES = (
    ("release", "Release", "Rolls out a new or unfinished feature.", 40),
    ("experiment", "Experiment", "Compares variants in an A/B or multivariate test.", 40),
    ("operational", "Operational", "Moves from one implementation to another at little risk.", 7),
    ("kill-switch", "Kill switch", "Turns a feature off quickly when it causes trouble.", None),
    ("permission", "Permission", "Gives a feature to users by role or entitlement.", None),
    ("sunset", "Sunset", "Plans the removal of a feature.", 90),
)
CONTEXT_FIELDS = (
    ("environment", "Allows you to constrain on application environment", 0),
    ("userId", "Allows you to constrain on userId", 1),
    ("appName", "Allows you to constrain on application name", 2),
    ("currentTime", "Allows you to constrain on date values", 3),
    ("sessionId", "Allows you to constrain on sessionId", 4),
    ("remoteAddress", "Allows you to constrain on the address of the client", 5),
)


def seed_projects(using: str, apps: Any = global_apps, **kwargs: Any) -> None:
    """Adds rows that have never existed. Does not touch rows that users have changed or deleted."""
    try:
        models = {name: apps.get_model("projects", name) for name in _MODELS}
    except LookupError:  # migrated back to a version without this app
        return
    with transaction.atomic(using=using):
        _seed_vocabulary(using, models)
        if not models["Environment"].objects.using(using).exists():
            _seed_default_project(using, models)


_MODELS = (
    "Project",
    "Environment",
    "ProjectEnvironment",
    "FlagType",
    "StrategyType",
    "ContextField",
    "TagType",
)


def _seed_vocabulary(using: str, models: dict[str, Any]) -> None:
    models["FlagType"].objects.using(using).bulk_create(
        [
            models["FlagType"](id=kind, name=name, description=text, lifetime_days=days, sort_order=order)
            for order, (kind, name, text, days) in enumerate(FLAG_TYPES)
        ],
        ignore_conflicts=True,
    )
    offered = [kind for kind in STRATEGY_TYPES.values() if kind.title]
    for order, kind in enumerate(offered):
        models["StrategyType"].objects.using(using).update_or_create(
            name=kind.name,
            defaults={
                "title": kind.title,
                "description": kind.description,
                "parameters": [parameter.definition for parameter in kind.parameters],
                "built_in": True,
                "sort_order": order,
            },
        )
    if not models["ContextField"].objects.using(using).exists():
        models["ContextField"].objects.using(using).bulk_create(
            models["ContextField"](
                name=name, description=description, sort_order=order, stickiness=name == "sessionId"
            )
            for name, description, order in CONTEXT_FIELDS
        )
    if not models["TagType"].objects.using(using).exists():
        models["TagType"].objects.using(using).create(
            name="simple", description="Used to simplify filtering of features", icon="#", color="#FFFFFF"
        )


def _seed_default_project(using: str, models: dict[str, Any]) -> None:
    for name, kind, order in ENVIRONMENTS:
        models["Environment"].objects.using(using).create(name=name, type=kind, sort_order=order)
    project, _ = (
        models["Project"]
        .objects.using(using)
        .get_or_create(id=DEFAULT_PROJECT, defaults={"name": "Default", "description": "Default project"})
    )
    for name, _, _ in ENVIRONMENTS:
        models["ProjectEnvironment"].objects.using(using).create(project=project, environment_id=name)
