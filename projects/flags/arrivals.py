"""Checks by an app above on flags that come to a project: moved from another, or created under a name."""

from collections.abc import Collection

from flagadmin.core.hook import Hook

check_arrivals: Hook[[Collection[str], str, str | None], None] = Hook(
    "projects.flags.arrivals.check_arrivals", lambda names, project_id, moved_from: None
)
"""Called with the names of the flags, their project and, if they are moved, the previous one. Raises Refusal."""
