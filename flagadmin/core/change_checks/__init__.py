"""Checks of a change as a whole: once all of it is written, before it is committed.

An app registers what it wants to see hold. `projects.access` begins the checks of each project that it locks for a
change, if the project asks for them. A request may say that it wants to make the change anyway.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from flagadmin.core.db.transactions import make_at_end_of_action
from flagadmin.core.errors import MAX_DETAILS, AppError, Conflict, Problem
from flagadmin.core.wording import pluralize

MAX_NAMED = 3
"""Refusing projects that a message names."""


class BrokenExpectationsConflict(Conflict):
    """409: the change breaks expectations of saved contexts, and the project refuses that."""

    name = "BrokenExpectationsError"


class Refusal(Exception):
    """A check refuses a change.

    It is no AppError itself, so that forms and buttons, which show those, let it through: `ConsolePage` asks what to
    do.
    """

    title = ""
    template_name = ""
    """The page that asks. It has the refusal as `error`."""
    answer_field = ""
    """The form field that the page adds to those that were sent."""
    status = Conflict.status

    @property
    def message(self) -> str:
        """Explains what is refused and why, without what an API client may do about it."""
        return self.as_app_error().message

    def as_app_error(self) -> AppError:
        raise NotImplementedError

    def unite(self, refusals: "Sequence[Refusal]") -> "Refusal":
        """One that stands for all of these, of several projects: the first of them."""
        return self

    def may_be_skipped_by(self, caller: Any) -> bool:
        """Whether the caller may make the change all the same."""
        return False

    def settle(self, answers: Mapping[str, str], caller: Any) -> str | None:
        """Does what the page's form asks for. Returns the URL to show then; None: there is nothing to do yet."""
        return None


class BrokenExpectations(Refusal):
    """A change breaks ``count`` expectations. The first have a sentence each, by saved context, and a JSON document."""

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


class Watch:
    """The result of a check that looks at single flags: before they change, and, when it is called, after they have."""

    def look_at(self, flags: Collection[str] | None) -> None:
        """Called before these flags of the project change; None: before anything may."""
        raise NotImplementedError

    def __call__(self) -> Refusal | None:
        raise NotImplementedError


Check = Callable[[str], Callable[[], Refusal | None]]
"""Looks at a project (its id) before it changes. Returns what is called afterwards, and says why it is refused."""
_checks: list[Check] = []


class _Running:
    """The checks of all projects that an action changes. Called at its end, they refuse it together."""

    def __init__(self) -> None:
        self._ends: dict[tuple[Check, str], Callable[[], Refusal | None]] = {}

    def begin(self, check: Check, project_id: str, flags: Collection[str] | None) -> None:
        if (check, project_id) not in self._ends:
            self._ends[check, project_id] = check(project_id)
        end = self._ends[check, project_id]
        if isinstance(end, Watch):
            end.look_at(flags)

    def __call__(self) -> None:
        refusals = [refusal for end in self._ends.values() if (refusal := end()) is not None]
        broken = [refusal for refusal in refusals if isinstance(refusal, BrokenExpectations)]
        if others := [refusal for refusal in refusals if refusal not in broken]:
            raise others[0].unite(others)
        if broken:
            raise unite_refusals(broken)


def unite_refusals(refusals: Sequence[BrokenExpectations]) -> BrokenExpectations:
    """One refusal of all the projects. Each has its share of the problems that a refusal names."""
    limit = max(1, MAX_DETAILS // len(refusals))
    return BrokenExpectations(
        list(dict.fromkeys(project for refusal in refusals for project in refusal.projects)),
        [problem for refusal in refusals for problem in refusal.problems[:limit]][:MAX_DETAILS],
        [document for refusal in refusals for document in refusal.documents[:limit]][:MAX_DETAILS],
        sum(refusal.count for refusal in refusals),
    )


def register(check: Check) -> None:
    _checks.append(check)


def begin(project_id: str, flags: Collection[str] | None = None) -> None:
    """Begins the checks of a project that is locked and unchanged. They end with the action that is running.

    With ``flags``, only these are about to change.
    """
    if running := make_at_end_of_action(_Running):
        for check in _checks:
            running.begin(check, project_id, flags)
