"""Refuses changes after which a JSON payload does not satisfy the payload schema of its flag.

`projects.access` starts it for each locked project that has schemas, so that it covers every way of changing flags: the
API, forms, imports, flags as code, promotions, reverts, change requests and release plans.
"""

from collections import defaultdict
from collections.abc import Collection

from flagadmin.core.db.transactions import make_at_end_of_action
from projects.flags.payloads.stored import check_stored


class _AtEnd:
    def __init__(self) -> None:
        self._flags: defaultdict[str, set[str]] = defaultdict(set)
        self._with_changed: set[str] = set()

    def add(self, project_id: str, flags: Collection[str] | None) -> None:
        self._flags[project_id].update(flags or ())
        if flags is None:
            self._with_changed.add(project_id)

    def __call__(self) -> None:
        for project_id, flags in self._flags.items():
            check_stored(project_id, flags, with_changed=project_id in self._with_changed)


def begin(project_id: str, flags: Collection[str] | None) -> None:
    """Checks these flags of the project, or all that have changed, at the end of the running action.

    Then the action raises ValidationError.
    """
    if at_end := make_at_end_of_action(_AtEnd):
        at_end.add(project_id, flags)
