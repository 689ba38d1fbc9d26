"""Issues: reasons why an import, or one of its flags, cannot be applied."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from flagadmin.core.errors import NoAccess, Problem
from groups.access import describe_place
from groups.permissions import Permission
from groups.roles.subjects import name_permission


class IssueKind(Enum):
    """Kinds that the reference's ``validate`` reports in a special format. VALUE is any other issue.

    With PROJECT, there is no active project to import into.
    """

    STRATEGY_TYPE = auto()
    CONTEXT_FIELD = auto()
    OTHER_PROJECT = auto()
    DUPLICATE = auto()
    PATTERN = auto()
    FLAG_LIMIT = auto()
    SEGMENT = auto()
    DEPENDENCY = auto()
    PROJECT = auto()
    VALUE = auto()


@dataclass(frozen=True, slots=True)
class Issue:
    """The reason why something cannot be imported. ``flag`` is affected, ``item`` is the name that ``validate`` lists.

    ``users`` are the flags that cannot be imported because they use the invalid item, such as a segment.
    """

    kind: IssueKind
    path: str
    message: str
    flag: str | None = None
    item: str | None = None
    users: tuple[str, ...] = ()

    def problem(self) -> Problem:
        names_flag = not self.flag or self.flag in self.message
        return Problem(self.path, self.message if names_flag else f"{self.flag}: {self.message}")


def make_no_access(missing: Sequence[Permission], project: str) -> NoAccess:
    """A NoAccess error for all missing permissions: `You need the "Create flags" and … permissions in Shop.`"""
    names = " and ".join(f'"{name_permission(permission)}"' for permission in missing)
    noun = "permission" if len(missing) == 1 else "permissions"
    return NoAccess.missing(missing, f"You need the {names} {noun}{describe_place(project)}.")
