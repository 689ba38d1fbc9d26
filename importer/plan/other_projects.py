"""Finds where the flags of an import are stored: refuses those of another project, and skips archived ones."""

from groups.access import Caller
from importer.plan.entries import Entry
from importer.plan.issues import Issue, IssueKind
from importer.plan.stored import StoredFlag
from importer.plan.target import Target


def is_skipped(entry: Entry, stored: StoredFlag | None) -> bool:
    """Whether the flag is skipped because it is archived.

    An import does not revive flags. Enabling an archived flag or adding links to it is refused.
    """
    if stored is None or not stored.archived or _stays_archived(entry, stored):
        return False
    return entry.links is None and (entry.feature is not None or entry.enabled is None)


def _stays_archived(entry: Entry, stored: StoredFlag) -> bool:
    """Whether the file also has the flag as archived, as a backup does. Its other data is then imported."""
    return bool(stored.document and entry.feature and entry.feature.get("archived"))


def describe_location(stored: StoredFlag | None, target: Target, caller: Caller) -> str:
    if stored is None or stored.project == target.project.id:
        return ""
    return f" in project {stored.project}" if caller.can_read(stored.project) else " in another project"


def find_location_issue(
    entry: Entry, stored: StoredFlag | None, target: Target, caller: Caller
) -> Issue | None:
    """A flag must be active in the target project, or be new and listed in ``features``."""
    name, path = entry.name, f"{entry.path}.name" if entry.feature is not None else entry.path
    if entry.parts is not None and (stored is None or stored.project != target.project.id):
        return Issue(IssueKind.VALUE, path, f"flag {name} not found in project {target.project.id}", name)
    if stored is None and entry.feature is None:
        message = f"flag {name} is neither in project {target.project.id} nor in data.features"
        return Issue(IssueKind.VALUE, path, message, name)
    if stored is not None and stored.project != target.project.id:
        where = describe_location(stored, target, caller).strip()
        return Issue(
            IssueKind.OTHER_PROJECT, path, f"{name} already exists {where}", name, f"{name} ({where})"
        )
    if stored is not None and stored.archived and not _stays_archived(entry, stored):
        return Issue(IssueKind.VALUE, path, f"{name} is archived. Restore it first", name)
    return None
