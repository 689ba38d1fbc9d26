"""What a plan has to say: findings stand against the import, notes do not."""

from dataclasses import dataclass
from enum import Enum, auto

from flagadmin.errors import Problem


class Kind(Enum):
    """Of what kind a finding is; validate tells the kinds of the reference in its words."""

    STRATEGY_TYPE = auto()
    CONTEXT_FIELD = auto()
    OTHER_PROJECT = auto()
    DUPLICATE = auto()
    PATTERN = auto()
    FLAG_LIMIT = auto()
    SEGMENT = auto()
    DEPENDENCY = auto()
    VALUE = auto()
    """Anything the reference's validate does not tell of."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that stands against the import. ``flag`` is the flag it is about, ``item`` what validate lists.

    ``users`` are flags that cannot be imported because of it, where it is about something that they share.
    """

    kind: Kind
    path: str
    message: str
    flag: str | None = None
    item: str | None = None
    users: tuple[str, ...] = ()

    def problem(self) -> Problem:
        about = self.flag and self.flag not in self.message
        return Problem(self.path, f"{self.flag}: {self.message}" if about else self.message)
