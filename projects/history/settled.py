"""Tells up to which id the audit log is settled."""

from flagadmin.core.hook import Hook

read_settled_id: Hook[[], int] = Hook(lambda: 0)
"""No event with this id or a lower one can appear any more. 0 if nobody knows."""
