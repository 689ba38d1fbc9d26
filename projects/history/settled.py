"""Tells up to which id the audit log is settled."""

from flagadmin.core.hook import Hook

read_settled_id: Hook[[], int] = Hook(lambda: 0)
"""The id up to which no further event can appear. 0 if unknown."""
