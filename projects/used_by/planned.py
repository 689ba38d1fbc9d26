"""Strategies that are kept for later, by apps above."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from flagadmin.core.hook import Hook


class PlannedUse(NamedTuple):
    """What has such a strategy, in ``words``, and its project; None: it is of all projects."""

    project: str | None
    words: str


find_planned: Hook[[Mapping[str, Any]], list[PlannedUse]] = Hook(lambda members: [])
"""What keeps a strategy with these members: ``{"segments": [3]}``, ``{"name": "betaUsers"}``. It only reads."""

find_segments_ahead: Hook[[int], set[int]] = Hook(lambda flag_id: set())
"""The segments of strategies that the flag gets later. It only reads."""
