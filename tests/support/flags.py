"""Flags for tests, made straight in the database."""

from typing import Any

from django.utils import timezone

from projects.models import Dependency, Environment, Flag, FlagEnvironment, Project, Strategy


def make_flag(name: str, project: Project | str = "shop", *, archived: bool = False, **fields: Any) -> Flag:
    """A flag, off in all environments."""
    now = timezone.now()
    flag = Flag.objects.create(
        name=name,
        project_id=getattr(project, "pk", project),
        created_at=now,
        archived_at=now if archived else None,
        **fields,
    )
    FlagEnvironment.objects.bulk_create(
        FlagEnvironment(flag=flag, environment=environment) for environment in Environment.objects.all()
    )
    return flag


def add_strategy(
    flag: Flag, environment: str = "development", name: str = "default", **fields: Any
) -> Strategy:
    return Strategy.objects.create(flag=flag, environment_id=environment, name=name, **fields)


def switch_on(flag: Flag, environment: str = "development") -> None:
    FlagEnvironment.objects.filter(flag=flag, environment=environment).update(enabled=True)


def depend(child: Flag, parent: Flag, **fields: Any) -> Dependency:
    return Dependency.objects.create(flag=child, parent=parent, **fields)
