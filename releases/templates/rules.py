"""Validates the milestones of release templates and plans."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from flagadmin.core.change_options import get_change_options
from flagadmin.core.db.lengths import length_problems
from flagadmin.core.document import Document
from flagadmin.core.errors import Problem
from projects.models import Flag
from projects.strategies.rules import StrategyDefaults, StrategyPlanner
from releases.models.plans import Milestone, make_ulid

MAX_MILESTONES, MAX_STRATEGIES = 30, 30
MAX_MINUTES = 366 * 24 * 60
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


def plan_milestones(
    milestones: Sequence[Mapping[str, Any]], *, project_id: str | None, flag: Flag | None = None
) -> tuple[list[Document], list[Problem]]:
    """The milestones in stored form, ``{id, name, strategies, transition}``, and their problems.

    For a flag, completes strategies as if they were added to it.
    """
    planned = [
        _plan_milestone(milestone, f"milestones[{index}]", project_id, flag)
        for index, milestone in enumerate(milestones)
    ]
    problems = [problem for _, milestone_problems in planned for problem in milestone_problems]
    ids: set[str] = set()
    for document, _ in planned:
        document["id"] = make_ulid() if document["id"] in ids else document["id"]
        ids.add(document["id"])
    if not 1 <= len(milestones) <= MAX_MILESTONES:
        text = f"must have 1 to {MAX_MILESTONES} milestones, not {len(milestones)}"
        problems.append(Problem("milestones", text))
    return [document for document, _ in planned], problems


def _plan_milestone(
    milestone: Mapping[str, Any], path: str, project_id: str | None, flag: Flag | None
) -> tuple[Document, list[Problem]]:
    strategies, problems = plan_strategies(
        milestone.get("strategies") or [], f"{path}.strategies", project_id=project_id, flag=flag
    )
    transition = milestone.get("transitionCondition")
    problems += length_problems(Milestone(name=milestone["name"]), name=f"{path}.name")
    problems += transition_problems(transition, f"{path}.transitionCondition")
    document = {
        "id": milestone.get("id") or make_ulid(),
        "name": milestone["name"],
        "strategies": strategies,
        "transition": tidy_transition(transition),
    }
    return document, problems


def plan_strategies(
    strategies: Sequence[Mapping[str, Any]], path: str, *, project_id: str | None, flag: Flag | None
) -> tuple[list[Document], list[Problem]]:
    """The strategies of a milestone in stored form, and their problems."""
    planner = MilestonePlanner(project_id, flag)
    documents: list[Document] = []
    problems: list[Problem] = []
    if len(strategies) > MAX_STRATEGIES:
        problems.append(
            Problem(path, f"must have at most {MAX_STRATEGIES} strategies, not {len(strategies)}")
        )
    for index, values in enumerate(strategies):
        document, strategy_problems = planner.plan(values, f"{path}[{index}]", index)
        documents.append(document)
        problems += strategy_problems
    return documents, problems


class MilestonePlanner:
    """Plans strategies of milestones. For a flag, completes them as if they were added to it."""

    def __init__(self, project_id: str | None, flag: Flag | None) -> None:
        self._planner, self._completes = StrategyPlanner(project_id or ""), flag is not None
        keeps = get_change_options().comes_from_elsewhere
        of_flag = (flag.name, flag.project.default_stickiness, keeps) if flag else ("",)
        self._defaults = StrategyDefaults(*of_flag)

    def plan(self, values: Mapping[str, Any], path: str, place: int) -> tuple[Document, list[Problem]]:
        """The strategy in stored form, and its problems."""
        named = {**values, "name": values.get("strategyName") or values.get("name") or ""}
        planned, problems = self._planner.plan(named, self._defaults, path)
        document: Document = {**planned, "id": values.get("id") or make_ulid(), "sortOrder": place}
        if not self._completes:  # missing values are completed for a plan's flag
            texts = values.get("parameters") or {}
            document["parameters"] = {
                key: text for key, text in document["parameters"].items() if texts.get(key) not in (None, "")
            }
        return document, problems


def transition_problems(transition: Mapping[str, Any] | None, path: str) -> Iterator[Problem]:
    """Yields the problems of ``{intervalMinutes?, window?: {zone, days, from, to}}``. None: by hand."""
    if transition is None:
        return
    minutes = transition.get("intervalMinutes")
    if minutes is not None and not 1 <= minutes <= MAX_MINUTES:
        yield Problem(f"{path}.intervalMinutes", f"must be 1 to {MAX_MINUTES}, not {minutes}")
    window = transition.get("window")
    if window is None:
        if minutes is None:
            yield Problem(path, "needs intervalMinutes, window or both")
        return
    yield from _window_problems(window, f"{path}.window")


def _window_problems(window: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if not is_zone(window["zone"]):
        yield Problem(f"{path}.zone", f"must be a time zone such as Europe/Oslo, not {window['zone']}")
    days = window["days"]
    if not days or not set(days) <= set(range(1, 8)):
        yield Problem(f"{path}.days", "must be days of the week, 1 (Monday) to 7 (Sunday)")
    times = window["from"], window["to"]
    for name, text in zip(("from", "to"), times, strict=True):
        if not _TIME.fullmatch(text):
            yield Problem(f"{path}.{name}", f"must be a time such as 09:00, not {text}")
            return
    if times[0] >= times[1]:
        yield Problem(f"{path}.to", f"must be later than {times[0]}")


def is_zone(name: str) -> bool:
    return name in available_timezones()


def get_zone(window: Mapping[str, Any]) -> ZoneInfo:
    return ZoneInfo(window["zone"])


def tidy_transition(transition: Mapping[str, Any] | None) -> Document | None:
    """The stored form, without null members, and with days in their order."""
    if not transition:
        return None
    tidied = {key: value for key, value in transition.items() if value is not None}
    if window := tidied.get("window"):
        tidied["window"] = {**window, "days": sorted(set(window["days"]))}
    return tidied
