"""Watches the tags by which rules count approvals, so that nobody escapes a rule by tagging."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from projects.models import FlagTag, Project
from projects.projects.approval_rules import TOUCHES_TAG

Tagged = tuple[str, str]
"""A flag, and a tag of its as `type:value`."""


class Deciding(NamedTuple):
    """Tags that lower the number of approvals that something could need: one by going, one by coming."""

    going: set[str]
    coming: set[str]


def find_deciding(rules: Sequence[Mapping[str, Any]], otherwise: int) -> Deciding:
    """Compares what each rule about a tag asks for with what may hold instead: a later rule, or ``otherwise``."""
    deciding = Deciding(set(), set())
    for number, rule in enumerate(rules, 1):
        if rule["condition"] == TOUCHES_TAG:
            needed = rule["requiredApprovals"]
            instead = [*(later["requiredApprovals"] for later in rules[number:]), otherwise]
            if needed > min(instead):
                deciding.going.add(rule["tag"])
            if needed < max(instead):
                deciding.coming.add(rule["tag"])
    return deciding


class TagWatch:
    """Reads the deciding tags of flags that are about to change, and again once they have."""

    def __init__(self, project_id: str, deciding: Mapping[str, Deciding]) -> None:
        """``deciding``: by environment."""
        self.project_id = project_id
        self.deciding = {name: tags for name, tags in deciding.items() if any(tags)}
        self.before: set[Tagged] = set()
        self.names: set[str] | None = set()
        """The flags that have been read; None: all of the project."""

    def look_at(self, flags: Collection[str] | None) -> None:
        """Called before these flags change; None: before anything may."""
        if not self.deciding or self.names is None:
            return
        known = self.names
        self.before |= {pair for pair in self._read(flags) if pair[0] not in known}
        self.names = None if flags is None else known.union(flags)

    def find_retagged(self) -> dict[str, list[Tagged]]:
        """The flags with tags that have come or gone and lower what they need, by environment."""
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
