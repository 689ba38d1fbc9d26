"""Creates flags for tests directly in the database."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils import timezone

from projects.models import (
    Dependency,
    Environment,
    Flag,
    FlagEnvironment,
    Project,
    Strategy,
    StrategySegment,
)


def make_flag(
    name: str,
    project: Project | str = "shop",
    *,
    environment: str = "development",
    enabled: bool = False,
    strategies: Iterable[Mapping[str, Any]] = (),
    variants: Iterable[Any] = (),
    archived: bool = False,
    **fields: Any,
) -> Flag:
    """Creates a flag with a row in every environment.

    ``enabled``, ``strategies`` (arguments of ``add_strategy``) and ``variants`` apply to ``environment``. In
    the other environments the flag is off and has no strategies or variants.
    """
    now = timezone.now()
    if archived:
        fields["archived_at"] = now
    flag = Flag.objects.create(
        name=name, project_id=getattr(project, "pk", project), **({"created_at": now} | fields)
    )
    FlagEnvironment.objects.bulk_create(
        FlagEnvironment(flag=flag, environment=row, enabled=enabled, variants=list(variants))
        if row.name == environment
        else FlagEnvironment(flag=flag, environment=row)
        for row in Environment.objects.all()
    )
    for order, strategy in enumerate(strategies):
        add_strategy(flag, environment, **({"sort_order": order} | strategy))
    return flag


def is_on(flag: str = "cart", environment: str = "production") -> bool:
    return FlagEnvironment.objects.get(flag__name=flag, environment=environment).enabled


def add_strategy(
    flag: Flag, environment: str = "development", name: str = "default", *, segments: Any = (), **fields: Any
) -> Strategy:
    strategy = Strategy.objects.create(flag=flag, environment_id=environment, name=name, **fields)
    StrategySegment.objects.bulk_create(
        StrategySegment(strategy=strategy, segment=segment) for segment in segments
    )
    return strategy


def switch_on(flag: Flag, environment: str = "development") -> None:
    FlagEnvironment.objects.filter(flag=flag, environment=environment).update(enabled=True)


def depend(child: Flag, parent: Flag, **fields: Any) -> Dependency:
    return Dependency.objects.create(flag=child, parent=parent, **fields)
