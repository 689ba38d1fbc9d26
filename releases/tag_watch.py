"""Watches tags that affect the number of approvals, so that tagging does not bypass a rule."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from projects.models import FlagTag, Project
from projects.projects.approval_rules import TOUCHES_TAG

Tagged = tuple[str, str]
"""A flag, and one of its tags as `type:value`."""


class Deciding(NamedTuple):
    """Tags that may lower the number of required approvals: by removal, or by addition."""

    going: set[str]
    coming: set[str]


def find_deciding(rules: Sequence[Mapping[str, Any]], otherwise: int) -> Deciding:
    """The tags of rules that require more or fewer approvals than the alternatives."""
    deciding = Deciding(set(), set())
    for rule, goes, comes in compare_rules(rules, otherwise):
        if rule["condition"] == TOUCHES_TAG:
            deciding.going.update([rule["tag"]] if goes else [])
            deciding.coming.update([rule["tag"]] if comes else [])
    return deciding


def compare_rules(
    rules: Sequence[Mapping[str, Any]], otherwise: int
) -> Iterator[tuple[Mapping[str, Any], bool, bool]]:
    """Yields each rule with whether fewer approvals could be needed once it stops, or starts, to match.

    The alternative is a later rule, or ``otherwise``.
    """
    for number, rule in enumerate(rules, 1):
        needed = rule["requiredApprovals"]
        instead = [*(later["requiredApprovals"] for later in rules[number:]), otherwise]
        yield rule, needed > min(instead), needed < max(instead)


class TagWatch:
    """Reads the deciding tags of flags before and after a change."""

    def __init__(self, project_id: str, deciding: Mapping[str, Deciding]) -> None:
        """``deciding``: by environment."""
        self.project_id = project_id
        self.deciding = {name: tags for name, tags in deciding.items() if any(tags)}
        self.before: set[Tagged] = set()
        self.names: set[str] | None = set()
        """The flags that have been read; None: all of the project."""

    def look_at(self, flags: Collection[str] | None) -> None:
        """Called before these flags change; with None, before anything may change."""
        if not self.deciding or self.names is None:
            return
        known = self.names
        self.before |= {pair for pair in self._read(flags) if pair[0] not in known}
        self.names = None if flags is None else known.union(flags)

    def find_retagged(self) -> dict[str, list[Tagged]]:
        """The flags with added or removed tags that lower the requirement, by environment."""
        if not self.deciding:
            return {}
        after = self._read(self.names)
        if after == self.before or not Project.objects.filter(pk=self.project_id).exists():
            return {}
        lowering = {name: sorted(self._list_lowering(tags, after)) for name, tags in self.deciding.items()}
        return {name: pairs for name, pairs in lowering.items() if pairs}

    def _list_lowering(self, deciding: Deciding, after: set[Tagged]) -> Iterator[Tagged]:
        yield from (pair for pair in self.before - after if pair[1] in deciding.going)
        yield from (pair for pair in after - self.before if pair[1] in deciding.coming)

    def _read(self, flags: Collection[str] | None) -> set[Tagged]:
        named = set().union(*(tag for tags in self.deciding.values() for tag in tags))
        values = {tag.partition(":")[2] for tag in named}
        rows = FlagTag.objects.filter(flag__project=self.project_id, value__in=values)
        if flags is not None:
            rows = rows.filter(flag__name__in=flags)
        pairs = rows.values_list("flag__name", "tag_type_id", "value")
        return {(flag, tag) for flag, kind, value in pairs if (tag := f"{kind}:{value}") in named}
