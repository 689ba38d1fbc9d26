"""Determines the permissions that an import requires."""

from collections.abc import Iterable, Sequence
from typing import Any

from groups.access import Caller
from groups.permissions import Permission
from importer.plan.entries import Entries
from importer.plan.import_plan import FlagPlan
from importer.plan.references import References


def list_needed_permissions(
    flags: Sequence[FlagPlan], entries: Entries, references: References
) -> list[Permission]:
    """The permissions needed to import ``flags`` (all but the skipped ones), in the reference's order."""
    listed = [entries.flags[flag.name] for flag in flags]
    replaces_strategies = any(flag.feature is not None and _has_stored(flag, "strategies") for flag in flags)
    changes_variants = any(
        entry.variants is not None and (entry.variants[1] or _has_stored(flag, "variants"))
        for flag, entry in zip(flags, listed, strict=True)
    )
    needed = {
        Permission.CREATE_CONTEXT_FIELD: bool(references.new_fields),
        Permission.CREATE_FEATURE_STRATEGY: any(entry.strategies for entry in listed)
        or any(entry.enabled and entry.enabled[1] for entry in listed),
        Permission.DELETE_FEATURE_STRATEGY: replaces_strategies,
        Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS: changes_variants,
        Permission.CREATE_FEATURE: any(flag.stored is None for flag in flags),
        Permission.UPDATE_FEATURE: True,
        Permission.CREATE_TAG_TYPE: bool(references.new_tag_types),
        Permission.CREATE_SEGMENT: bool(references.new_segments),
        Permission.DELETE_FEATURE: any(flag.before and flag.becomes_archived for flag in flags),
        Permission.UPDATE_FEATURE_ENVIRONMENT: any(
            _only_turns_off(flag) and not entry.strategies for flag, entry in zip(flags, listed, strict=True)
        ),
        Permission.UPDATE_FEATURE_DEPENDENCY: changes_parents(flags),
    }
    return [permission for permission, is_needed in needed.items() if is_needed]


def _only_turns_off(flag: FlagPlan) -> bool:
    """Whether it turns off a flag whose strategies stay: whoever replaces them has a permission of the environment."""
    if flag.before is None or flag.after is None or flag.becomes_archived:
        return False
    is_turned_off = flag.before["enabled"] and not flag.after["enabled"]
    return is_turned_off and not (flag.feature is not None and _has_stored(flag, "strategies"))


def changes_parents(flags: Iterable[FlagPlan]) -> bool:
    """Whether a flag that is there gets other parents, which can turn it off in every environment."""
    return any(
        flag.before and flag.after and flag.before["parents"] != flag.after["parents"] for flag in flags
    )


def change_permissions(flags: Iterable[FlagPlan], *, switch: bool = True) -> list[Permission]:
    """Returns the permissions that these changes in one environment need, each made separately.

    If strategies differ, as many as exist on both sides are changed, the others added or removed. Without ``switch``,
    flags are turned off only as they are when they lose their last strategy, which needs no permission.
    """
    pairs = [(flag.before, flag.after) for flag in flags if flag.before and flag.after]
    removed_and_added = [
        _count_differing(before["strategies"], after["strategies"]) for before, after in pairs
    ]
    needed = {
        Permission.CREATE_FEATURE_STRATEGY: any(added > removed for removed, added in removed_and_added),
        Permission.UPDATE_FEATURE_STRATEGY: any(
            min(counts) > 0 or (not any(counts) and before["strategies"] != after["strategies"])
            for (before, after), counts in zip(pairs, removed_and_added, strict=True)
        ),
        Permission.DELETE_FEATURE_STRATEGY: any(removed > added for removed, added in removed_and_added),
        Permission.UPDATE_FEATURE_ENVIRONMENT: switch
        and any(before["enabled"] != after["enabled"] for before, after in pairs),
        Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS: any(
            before["variants"] != after["variants"] for before, after in pairs
        ),
    }
    return [permission for permission, is_needed in needed.items() if is_needed]


def _count_differing(before: Sequence[Any], after: Sequence[Any]) -> tuple[int, int]:
    """Counts the strategies that are removed, and those added."""
    removed, added = list(before), []
    for strategy in after:
        if strategy in removed:
            removed.remove(strategy)
        else:
            added.append(strategy)
    return len(removed), len(added)


def _has_stored(flag: FlagPlan, part: str) -> bool:
    return bool((flag.before or {}).get(part))


def find_missing_permissions(
    needed: Iterable[Permission], project: str, environment: str, *, caller: Caller
) -> list[Permission]:
    return [p for p in needed if not caller.can(p, project=project, environment=environment)]
