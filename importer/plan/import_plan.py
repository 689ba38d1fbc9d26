"""What happens to one flag."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from importer.plan.stored import Document, StoredFlag


class Action(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    SAME = "same"
    SKIP = "skip"
    REFUSE = "refuse"


@dataclass(slots=True)
class FlagPlan:
    """What happens to one flag. ``before`` is None for a new one, ``after`` for one that is skipped or refused."""

    name: str
    path: str
    action: Action
    stored: StoredFlag | None = None
    after: Document | None = None
    feature: Any = None
    reason: str = ""

    @property
    def before(self) -> Document | None:
        return self.stored.document if self.stored and self.after is not None else None
