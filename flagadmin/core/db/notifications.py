"""Triggers that notify the workers of a committed change (PostgreSQL's NOTIFY), so that none has to wait for it.

A notification carries nothing and may be lost: whoever listens reads what has changed.
"""

from typing import Any

import pgtrigger

CHANNEL = "flagadmin_changes"


def notify_trigger(operation: Any) -> pgtrigger.Trigger:
    """Makes a trigger that notifies of each changed row. PostgreSQL sends equal notifications of a transaction once."""
    return pgtrigger.Trigger(
        name="notify",
        level=pgtrigger.Row,
        when=pgtrigger.After,
        operation=operation,
        func=f"PERFORM pg_notify('{CHANNEL}', ''); RETURN NULL;",
    )
