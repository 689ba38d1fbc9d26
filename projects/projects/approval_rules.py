"""Rules for the number of approvals that a change request needs, by its effect. The first matching rule applies.

A rule is stored as ``{condition, requiredApprovals}``, with ``percent`` or ``tag`` if its condition takes one. Changes
without a matching rule need ``ProjectEnvironment.required_approvals``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flagadmin.core.errors import Problem
from flagadmin.core.wording import choices

MAX_APPROVALS = 10
MAX_RULES = 10
CHANGES_USERS = "changesUsers"
CHANGES_SAVED_CONTEXT = "changesSavedContext"
BREAKS_EXPECTATION = "breaksExpectation"
TOUCHES_TAG = "touchesTag"
ONLY_TURNS_OFF = "onlyTurnsOff"
CONDITIONS = {
    ONLY_TURNS_OFF: "only turns flags off",
    CHANGES_USERS: "changes more than … % of generated users",
    CHANGES_SAVED_CONTEXT: "changes a saved context",
    BREAKS_EXPECTATION: "breaks an expectation",
    TOUCHES_TAG: "touches a flag tagged …",
}
"""The conditions in words, with … for the rule's ``percent`` or ``tag``."""
TAKES = {CHANGES_USERS: "percent", TOUCHES_TAG: "tag"}

Rule = Mapping[str, Any]


def describe_rule(rule: Rule) -> str:
    """`changes more than 5 % of generated users`."""
    value = rule.get(TAKES.get(rule["condition"], ""))
    text = f"{value:g}" if isinstance(value, int | float) else str(value)
    return CONDITIONS[rule["condition"]].replace("…", text)


def rules_problems(rules: Sequence[Rule], path: str) -> Iterator[Problem]:
    if len(rules) > MAX_RULES:
        yield Problem(path, f"must be at most {MAX_RULES}, not {len(rules)}")
    for index, rule in enumerate(rules):
        yield from _rule_problems(rule, f"{path}[{index}]")


def _rule_problems(rule: Rule, path: str) -> Iterator[Problem]:
    condition, approvals = rule["condition"], rule["requiredApprovals"]
    if condition not in CONDITIONS:
        yield Problem(f"{path}.condition", f"must be one of {choices(CONDITIONS)}, not {condition}")
    if not 0 <= approvals <= MAX_APPROVALS:
        yield Problem(f"{path}.requiredApprovals", f"must be 0 to {MAX_APPROVALS}, not {approvals}")
    if condition == CHANGES_USERS and not 0 <= (rule.get("percent") or 0) < 100:
        yield Problem(f"{path}.percent", f"must be from 0 to below 100, not {rule['percent']:g}")
    if condition == CHANGES_USERS and rule.get("percent") is None:
        yield Problem(f"{path}.percent", "is missing: more than how many percent of the users")
    if condition == TOUCHES_TAG and not all((rule.get("tag") or "").partition(":")):
        yield Problem(f"{path}.tag", "must be a tag as type:value")


def make_rule_document(rule: Rule) -> dict[str, Any]:
    """The stored form, without members that its condition does not take."""
    members = ("condition", "requiredApprovals", TAKES.get(rule["condition"], ""))
    return {name: rule[name] for name in members if name in rule}
