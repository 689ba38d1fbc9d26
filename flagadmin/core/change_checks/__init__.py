"""Checks a change as a whole, after it is written and before it is committed.

An app registers its checks. `projects.access` starts them for each project that it locks for a change, if the project
asks for them. A request may override them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from flagadmin.core.db.transactions import is_whole_action, make_at_end_of_action
from flagadmin.core.errors import MAX_DETAILS, AppError, Conflict, Problem, pluralize

MAX_NAMED = 3
"""Refusing projects named in a message."""


class BrokenExpectationsConflict(Conflict):
    """409: the change breaks expectations of saved contexts, and the project refuses such changes."""

    name = "BrokenExpectationsError"


class Refusal(Exception):
    """A check refuses a change.

    It is not an AppError, so that forms and buttons, which show those, let it through: `ConsolePage` then asks the user
    how to proceed.
    """

    title = ""
    template_name = ""
    """The page that asks the user. It has the refusal as `error`."""
    answer_field = ""
    """The form field that the page adds to the submitted ones."""
    status = Conflict.status

    @property
    def message(self) -> str:
        """Explains the refusal and its reason, without advice for API clients."""
        return self.as_app_error().message

    def as_app_error(self) -> AppError:
        raise NotImplementedError

    def unite(self, refusals: "Sequence[Refusal]") -> "Refusal":
        """Combines the refusals of several projects into the first one."""
        return self

    def may_be_skipped_by(self, caller: Any) -> bool:
        """Whether the caller may make the change anyway."""
        return False


class BrokenExpectations(Refusal):
    """A change breaks ``count`` expectations. Each of the first ones has a sentence and a JSON document."""

    title = "Expectations would break"
    template_name = "console/save_anyway.html"
    answer_field = "ignore_expectations"

    def __init__(
        self, projects: Sequence[str], problems: Sequence[Problem], documents: Sequence[Any], count: int
    ) -> None:
        super().__init__(projects, problems, documents, count)
        self.projects, self.problems, self.documents, self.count = projects, problems, documents, count

    @property
    def more(self) -> int:
        return self.count - len(self.problems)

    @property
    def refusing(self) -> str:
        """`project a refuses`, `projects a, b, c and 7 more refuse`."""
        if len(self.projects) == 1:
            return f"project {self.projects[0]} refuses"
        more = len(self.projects) - MAX_NAMED
        named = [*self.projects[:MAX_NAMED], *([f"{more:,} more"] if more > 0 else [])]
        return f"projects {', '.join(named[:-1])} and {named[-1]} refuse"

    @property
    def message(self) -> str:
        expectations = pluralize(self.count, "expectation")
        return f"This breaks {expectations}, which {self.refusing}. Nothing was saved."

    def as_app_error(self) -> AppError:
        return BrokenExpectationsConflict(
            f"{self.message} With ignoreExpectations=true it is saved anyway.",
            details=self.problems,
            count=self.count,
            extra={"expectations": list(self.documents)},
        )


class KnownChange(NamedTuple):
    """The members that ``flags`` get, by name and environment ("" for all), and ``segments``, by id.

    None instead of the members of a flag archives it. A flag that does not exist yet, or is archived, has all members.
    ``deleted``: names of flags. ``keeps_expectations``: whether no saved context changes.
    """

    flags: Mapping[tuple[str, str], Mapping[str, Any] | None] = {}
    segments: Mapping[int, Mapping[str, Any]] = {}
    deleted: Collection[str] = ()
    keeps_expectations: bool = True

    @property
    def archived(self) -> set[str]:
        return {name for (name, _), members in self.flags.items() if members is None}


class Watch:
    """The result of a check of single flags: it looks at them before they change and, when called, afterwards."""

    def look_at(self, flags: Collection[str] | None) -> None:
        """Called before these flags of the project change; with None, before anything in it may change."""

    def foresee(self, known: "KnownChange") -> Refusal | None:
        """The refusal of a change that is not written yet; None if there is none, or it is only known afterwards."""
        return None

    def __call__(self) -> Refusal | None:
        raise NotImplementedError


Check = Callable[[str, Any], Watch | None]
"""The watch of a project (its id) that a caller is about to change; None if it refuses nothing."""
_checks: list[Check] = []


class _Running:
    """The checks of all projects that an action changes. Called at its end, they refuse the action together."""

    def __init__(self) -> None:
        self._watches: dict[tuple[Check, str], Watch | None] = {}

    def begin(self, check: Check, project_id: str, flags: Collection[str] | None, caller: Any) -> None:
        if (check, project_id) not in self._watches:
            self._watches[check, project_id] = check(project_id, caller)
        if watch := self._watches[check, project_id]:
            watch.look_at(flags)

    def foresee(self, known: KnownChange) -> None:
        self._refuse(watch.foresee(known) for watch in self._watches.values() if watch)

    def __call__(self) -> None:
        self._refuse(watch() for watch in self._watches.values() if watch)

    def _refuse(self, results: Iterable[Refusal | None]) -> None:
        refusals = [refusal for refusal in results if refusal is not None]
        broken = [refusal for refusal in refusals if isinstance(refusal, BrokenExpectations)]
        if others := [refusal for refusal in refusals if refusal not in broken]:
            raise others[0].unite(others)
        if broken:
            raise unite_refusals(broken)


def unite_refusals(refusals: Sequence[BrokenExpectations]) -> BrokenExpectations:
    """One refusal for all projects. Each gets an equal share of the problems that a refusal may list."""
    limit = max(1, MAX_DETAILS // len(refusals))
    return BrokenExpectations(
        list(dict.fromkeys(project for refusal in refusals for project in refusal.projects)),
        [problem for refusal in refusals for problem in refusal.problems[:limit]][:MAX_DETAILS],
        [document for refusal in refusals for document in refusal.documents[:limit]][:MAX_DETAILS],
        sum(refusal.count for refusal in refusals),
    )


def register(check: Check) -> None:
    _checks.append(check)


def begin(project_id: str, flags: Collection[str] | None = None, *, caller: Any) -> None:
    """Begins the checks of a project that is locked and still unchanged. They end with the running action.

    With ``flags``, only these are about to change.
    """
    if running := make_at_end_of_action(_Running):
        for check in _checks:
            running.begin(check, project_id, flags, caller)


def foresee(known: KnownChange) -> None:
    """Raises the refusal of the running action, if it makes only this change. Check the comment before."""
    if is_whole_action() and (running := make_at_end_of_action(_Running)):
        running.foresee(known)
