"""Determines the permissions that an import requires."""

from collections.abc import Iterable, Sequence

from groups.access import Caller
from groups.permissions import Permission
from importer.plan.entries import Entries
from importer.plan.import_plan import FlagPlan
from importer.plan.references import References


def needed_permissions(
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
    }
    return [permission for permission, is_needed in needed.items() if is_needed]


def _has_stored(flag: FlagPlan, part: str) -> bool:
    return bool((flag.before or {}).get(part))


def missing_permissions(
    needed: Iterable[Permission], project: str, environment: str, *, caller: Caller
) -> list[Permission]:
    return [p for p in needed if not caller.can(p, project=project, environment=environment)]
