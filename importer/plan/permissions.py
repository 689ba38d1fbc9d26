"""What an import needs its caller to hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from flagadmin import errors
from groups.access import Caller
from groups.permissions import Permission
from importer.plan.entries import Entries
from importer.plan.import_plan import Action

if TYPE_CHECKING:
    from importer.plan.build import Plan


def needed_permissions(plan: Plan, entries: Entries) -> list[Permission]:
    """What the caller must hold for what this plan does, in the order in which the reference lists them."""
    words = plan.words
    assert words is not None
    flags = [flag for flag in plan.flags.values() if flag.action is not Action.SKIP]
    said = [entries.flags[flag.name] for flag in flags]
    replaced = any(flag.feature is not None and (flag.before or {}).get("strategies") for flag in flags)
    variants = any(
        entry.variants is not None
        and (entry.variants[1] or (plan.flags[entry.name].before or {}).get("variants"))
        for entry in said
    )
    needed = {
        Permission.CREATE_CONTEXT_FIELD: bool(words.new_fields),
        Permission.CREATE_FEATURE_STRATEGY: any(entry.strategies for entry in said)
        or any(entry.enabled and entry.enabled[1] for entry in said),
        Permission.DELETE_FEATURE_STRATEGY: replaced,
        Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS: variants,
        Permission.CREATE_FEATURE: any(flag.stored is None for flag in flags),
        Permission.UPDATE_FEATURE: True,
        Permission.CREATE_TAG_TYPE: bool(words.new_tag_types),
        Permission.CREATE_SEGMENT: bool(words.new_segments),
        Permission.DELETE_FEATURE: any(
            flag.before and flag.after and flag.after["archived"] and not flag.before["archived"]
            for flag in flags
        ),
    }
    return [permission for permission, is_needed in needed.items() if is_needed]


def missing_permissions(
    needed: Iterable[Permission], project: str, environment: str, *, caller: Caller
) -> list[Permission]:
    return [p for p in needed if not caller.can(p, project=project, environment=environment)]


def no_access(missing: Sequence[Permission], project: str) -> errors.NoAccess:
    """The 403 that names all that is missing: `You need "create feature flags" and … in shop.`"""
    wanted = " and ".join(f'"{p.display[:1].lower()}{p.display[1:]}"' for p in missing)
    return errors.NoAccess.missing(missing, f"You need {wanted} in {project}.")
