"""Determines the approvals that a request needs, from the first matching rule of its environment."""

from collections.abc import Iterator, Mapping
from math import sqrt
from typing import Any, NamedTuple

from flagadmin.core.lists.charts import format_percent
from flagadmin.core.wording import pluralize
from playground.comparison.who_changes import MAX_USERS
from projects.models import FlagTag, ProjectEnvironment
from projects.projects.approval_rules import (
    BREAKS_EXPECTATION,
    CHANGES_SAVED_CONTEXT,
    CHANGES_USERS,
    ONLY_TURNS_OFF,
    TOUCHES_TAG,
    describe_rule,
)
from releases.models import ChangeRequest
from releases.requests.approvers import find_strictest
from releases.requests.impact import list_descendants, list_touched_flags

TURNS_OFF = frozenset({"archiveFeature", "deleteStrategy"})
"""Actions that turn a flag off for some users, besides `updateEnabled`; their effect on others is measured."""


class Verdict(NamedTuple):
    """A rule, and whether it matches. ``why`` is a sentence. The last one is the default."""

    number: int
    words: str
    approvals: int
    holds: bool
    why: str

    @property
    def needs(self) -> str:
        return pluralize(self.approvals, "approval") if self.approvals else "no approval"


class _Facts(NamedTuple):
    request: ChangeRequest
    impact: Mapping[str, Any]

    def changes_users(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        generated, own = self.impact, self.impact.get("own")
        named = (generated.get("named") or {}).get("changed", 0)
        percent, words = _largest_share(generated), _share_words(generated, named)
        if named:
            words = " and ".join(
                [pluralize(named, "named user"), *([words] if generated["changed"] > named else [])]
            )
        if (users := generated["users"]) < MAX_USERS:
            words += (
                f", and at most {format_percent(percent)}: so many values leave time for {users:,} users only"
            )
        most = _share_of_most(generated)
        if most > percent:
            percent = most
            words += f", and {format_percent(most)} of those who meet the conditions of a strategy"
        if breached := generated.get("ifBreached"):
            worst = max(_largest_share(breached), _share_of_most(breached))
            percent = max(percent, worst)
            words += f", and {format_percent(worst)} if a safeguard is breached"
        if own:
            percent = max(percent, _share(own["changed"], own["users"]))
            words += f", and {own['changed']:,} of {own['users']:,} users in the file of {own['by']}"
        return percent > rule["percent"], f"This changes {words}."

    def changes_saved_context(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        certain, worst = ([saved["name"] for saved in impact["savedContexts"]] for impact in self._impacts)
        if certain or not worst:
            return bool(certain), f"{', '.join(certain[:3])} changes." if certain else "None changes."
        return True, f"{', '.join(worst[:3])} changes if a safeguard is breached."

    def breaks_expectation(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        certain, worst = (impact["brokenExpectations"] for impact in self._impacts)
        if certain or not worst:
            return bool(certain), f"This breaks {certain}." if certain else "This breaks none."
        return True, f"This breaks {worst} if a safeguard is breached."

    @property
    def _impacts(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The certain impact, and the one after a breached safeguard."""
        return self.impact, self.impact.get("ifBreached") or self.impact

    def touches_tag(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        kind, _, value = rule["tag"].partition(":")
        touched = list_touched_flags(self.request)
        tagged = FlagTag.objects.filter(
            tag_type=kind, value=value, flag__name__in=touched | list_descendants(touched)
        )
        names = list(tagged.order_by("flag__name").values_list("flag__name", flat=True))
        if not names:
            return False, "No flag here is, nor one that depends on these."
        name = next((each for each in names if each in touched), "")
        return True, f"{name} is." if name else f"{names[0]} is, which depends on a flag that this changes."

    def only_turns_off(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        for change in self.request.changes.all():
            off = change.action == "updateEnabled" and not change.payload["enabled"]
            if not off and change.action not in TURNS_OFF:
                return False, "Does not apply."
        if self.impact["onlyTurnsOff"]:
            return True, "It only turns flags off."
        return False, "It changes a result other than to off."


def _share(changed: int, users: int) -> float:
    return 100 * float(changed) / max(1, users)


def _largest_share(impact: Mapping[str, Any]) -> float:
    """The share of the generated users who change or, of fewer than usual, the largest one that may hide behind it.

    The author can add values to conditions until there is only time for 100 users, and try groups until 10 % of all
    users are hardly any of these: so the bound is that of a chance of one in three million (Wilson's, five deviations).
    """
    changed, users = impact["changed"], impact["users"]
    if users >= MAX_USERS:
        return _share(changed, users)
    return min(100.0, _share(changed + 12.5 + 5 * sqrt(changed + 6.25), users))


def _share_of_most(impact: Mapping[str, Any]) -> float:
    """The largest share of the users who meet the conditions of a strategy: real users may all meet them."""
    most = impact.get("mostAffected") or {"changed": 0, "users": 0}
    return _share(most["changed"], most["users"])


def _share_words(impact: Mapping[str, Any], named: int) -> str:
    """The percentage without the named users, whose number is added."""
    return format_percent(_share(impact["changed"] - named, impact["users"]))


_CHECKS = {
    ONLY_TURNS_OFF: _Facts.only_turns_off,
    CHANGES_USERS: _Facts.changes_users,
    CHANGES_SAVED_CONTEXT: _Facts.changes_saved_context,
    BREAKS_EXPECTATION: _Facts.breaks_expectation,
    TOUCHES_TAG: _Facts.touches_tag,
}


def judge(request: ChangeRequest, impact: Mapping[str, Any] | None) -> list[Verdict]:
    """The environment's rules applied to the request's effect; [] without a policy.

    An effect that cannot be measured needs as many approvals as the strictest rule.
    """
    links = ProjectEnvironment.objects.needing_requests()
    link = links.filter(project=request.project_id, environment=request.environment_id).first()
    if link is None or link.required_approvals is None:
        return []
    if impact is None:
        why = "Who changes cannot be measured, so the strictest rule counts." if link.approval_rules else ""
        return [Verdict(0, "everything", find_strictest(link), True, why)]
    return list(_verdicts(link, _Facts(request, impact)))


def _verdicts(link: ProjectEnvironment, facts: _Facts) -> Iterator[Verdict]:
    is_decided = False
    for number, rule in enumerate(link.approval_rules, 1):
        needed = rule["requiredApprovals"]
        if is_decided:
            holds, why = False, "Not needed."
        elif rule["condition"] == CHANGES_USERS and (unmeasured := facts.impact.get("unmeasured")):
            holds, needed = True, find_strictest(link)
            why = f"This cannot be measured, so the strictest rule counts: {unmeasured[0]}."
        else:
            holds, why = _CHECKS[rule["condition"]](facts, rule)
        is_decided = is_decided or holds
        yield Verdict(number, describe_rule(rule), needed, holds, why)
    *_, default = list_rules(link)
    yield default._replace(holds=not is_decided, why="Not needed." if is_decided else "")


def list_rules(link: ProjectEnvironment) -> list[Verdict]:
    """The environment's rules before the effect of a change is known, none of which holds. The default comes last."""
    rules = [(describe_rule(rule), rule["requiredApprovals"]) for rule in link.approval_rules]
    default = "everything else" if rules else "everything"
    return [
        Verdict(number, words, approvals, holds=False, why="")
        for number, (words, approvals) in enumerate([*rules, (default, link.required_approvals or 0)], 1)
    ]


def count_needed(request: ChangeRequest, impact: Mapping[str, Any] | None) -> int:
    """The number of required approvals; 0 if the environment no longer requires requests."""
    return next((verdict.approvals for verdict in judge(request, impact) if verdict.holds), 0)
