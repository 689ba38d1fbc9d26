"""The classes that describe what an import would do, and the stored flags that it is compared with.

A flag's document holds everything that an import can change, in one environment:
``type description stale impressionData archived enabled variants strategies tags links parents``, and ``payloadSchema``
if there is one."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson
from django.db import connection
from django.utils import timezone
from django.utils.functional import cached_property

from flagadmin.core.audit.record import Event, EventType
from flagadmin.core.document import Document
from flagadmin.core.errors import NotFound
from groups.permissions import Permission
from importer.body.schema_errors import make_validation_error
from importer.models import ImportRun
from importer.plan.references import References
from importer.plan.target import Issue, IssueKind, Target, make_no_access
from playground.engine.definitions import VariantDefinition
from projects.definitions import FlagParts, read_flag_parts
from projects.states import Change, changes_there, match


@dataclass(slots=True)
class StoredFlag:
    """A stored flag. ``document`` is None for a flag of another project, which an import cannot change.

    ``strategy_ids`` are in the order of the document's strategies. ``switched_on``: on, unless archived.
    """

    id: int
    name: str
    project: str
    archived: bool
    document: Document | None = None
    strategy_ids: list[str] = field(default_factory=list)
    switched_on: bool = False


_FLAGS = """
SELECT id, name, project_id, archived_at IS NOT NULL,
       (SELECT schema FROM projects_payloadschema WHERE flag_id = projects_flag.id),
       type, description, stale, impression_data
  FROM projects_flag WHERE name = ANY(%(names)s)
"""
_TAGS = """
SELECT flag_id, tag_type_id, value FROM projects_flagtag WHERE flag_id = ANY(%(flags)s)
"""
_LINKS = """
SELECT flag_id, url, title FROM projects_flaglink WHERE flag_id = ANY(%(flags)s) ORDER BY flag_id, created_at, id
"""


def read_flags(names: Collection[str], *, project: str, environment: str) -> dict[str, StoredFlag]:
    """The stored flags with these names, by name. Flags of the project have documents.

    An archived flag is disabled. A fixed number of statements for each BATCH of flags.
    """
    if not names:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_FLAGS, {"names": list(names)})
        rows = cursor.fetchall()
        parts = read_flag_parts(cursor, [row[0] for row in rows], environment)
        stored = {}
        for flag_id, name, owner, is_archived, schema, *values in rows:
            enabled, variants = parts.read_state(flag_id)
            flag = stored[name] = StoredFlag(flag_id, name, owner, is_archived, switched_on=enabled)
            if owner == project:
                flag.document = _make_document(is_archived, enabled, variants, *values)
                _add_parts(flag, flag.document, parts)
                if schema is not None:
                    flag.document["payloadSchema"] = orjson.loads(schema)
        _add_tags_and_links(cursor, {flag.id: flag.document for flag in stored.values() if flag.document})
    return stored


def _make_document(
    archived: bool,
    enabled: bool,
    variants: list[VariantDefinition],
    kind: str,
    description: str | None,
    stale: bool,
    impression_data: bool,
) -> Document:
    return {
        "type": kind,
        "description": description,
        "stale": stale,
        "impressionData": impression_data,
        "archived": archived,
        "enabled": enabled and not archived,
        "variants": variants,
        "strategies": [],
        "tags": [],
        "links": [],
        "parents": [],
    }


def _add_parts(flag: StoredFlag, document: Document, parts: FlagParts) -> None:
    for strategy in parts.strategies.get(flag.id, ()):
        flag.strategy_ids.append(strategy.pop("id"))
        document["strategies"].append(strategy)
    document["parents"] = parts.parents.get(flag.id, [])


def _add_tags_and_links(cursor: Any, documents: dict[int, Document]) -> None:
    if not documents:
        return
    flags = {"flags": list(documents)}
    cursor.execute(_TAGS, flags)
    for flag_id, tag_type, value in cursor.fetchall():
        documents[flag_id]["tags"].append([tag_type, value])
    for document in documents.values():
        document["tags"].sort()
    cursor.execute(_LINKS, flags)
    for flag_id, url, title in cursor.fetchall():
        documents[flag_id]["links"].append({"url": url, "title": title})


class Action(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    SAME = "same"
    SKIP = "skip"
    REFUSE = "refuse"


@dataclass(slots=True)
class FlagPlan:
    """The plan for one flag. ``before`` is None for a new flag, ``after`` for one skipped or refused.

    ``feature`` is the flag's entry in ``data.features``, or None.
    """

    name: str
    path: str
    action: Action
    stored: StoredFlag | None = None
    after: Document | None = None
    feature: Any = None
    reason: str = ""

    @property
    def before(self) -> Document | None:
        return self.stored.document if self.stored and self.after is not None else None

    def make_event(self, kind: EventType, place: "Plan | ImportRun", *, subject: str | None = None) -> Event:
        """The audit event, with the ids of earlier strategies, and whether an archived flag was on."""
        earlier = None
        if self.stored is not None and self.before is not None:
            earlier = {"strategyIds": self.stored.strategy_ids, "enabled": self.stored.switched_on}
        where: Any = {"project": place.project, "environment": place.environment, "feature": self.name}
        return Event(
            type=kind, **where, subject=subject, before=self.before, after=self.after, earlier=earlier
        )

    def list_changes(self, environment: str) -> list[Change]:
        """The changes in the environment of an existing flag."""
        if self.before is None or self.after is None:
            return []
        old, new = self.pair_strategies()
        before: Any = {**self.before, "strategies": old}
        after: Any = {**self.after, "strategies": new}
        return changes_there(environment, before, after)

    def pair_strategies(self) -> tuple[list[Any], list[Any]]:
        """The strategies before and after, with ids. A strategy keeps the id of the one that it replaces."""
        assert self.after is not None
        keys = self.stored.strategy_ids if self.stored and self.before else []
        pairs = zip((self.before or {}).get("strategies", ()), keys, strict=True)
        before: list[Any] = [strategy | {"id": key} for strategy, key in pairs]
        return before, match(before, self.after["strategies"])

    def know(self, project: str, environment: str) -> Iterator[tuple[tuple[str, str], Document | None]]:
        """What the flag gets, for a known change: in all environments, and in this one."""
        assert self.after is not None
        if self.after["archived"]:
            yield (self.name, ""), None
            return
        _, strategies = self.pair_strategies()
        shared = {"impression_data": self.after["impressionData"], "dependencies": self.after["parents"]}
        own = {"enabled": self.after["enabled"], "variants": self.after["variants"]}
        if self.before is not None and not self.is_revived:
            yield (self.name, ""), shared
        whole = {"name": self.name, "project": project, "stale": self.after["stale"]}
        # Where sort orders are equal, the order is that of the file.
        own["strategies"] = sorted(strategies, key=lambda strategy: strategy["sortOrder"] or 0)
        yield (self.name, environment), whole | shared | own

    def differs(self, *members: str) -> bool:
        """Whether the import creates it, or changes one of these members of its document."""
        before, after = self.before, self.after
        return after is not None and (
            before is None or any(before.get(key) != after.get(key) for key in members)
        )

    @property
    def becomes_archived(self) -> bool:
        return bool(self.after and self.after["archived"] and not (self.before and self.before["archived"]))

    @property
    def is_revived(self) -> bool:
        return bool(self.before and self.before["archived"] and self.after and not self.after["archived"])

    @property
    def has_stage_of_archived(self) -> bool:
        """Whether the file gives an active flag the stage of archived ones."""
        stage = ((self.feature or {}).get("lifecycle") or {}).get("stage")
        return bool(stage == "archived" and self.after and not self.after["archived"])


@dataclass(slots=True)
class SavedContextPlan:
    """The plan for a saved context: its ``context``, ``note`` and ``expectations`` before (None: new) and after.

    ``enforced_in``: the project that will enforce the expectations of a flag, by flag.
    """

    name: str
    project: str | None
    action: Action
    before: Document | None
    after: Document
    enforced_in: Mapping[str, str]


@dataclass
class Plan:
    """The plan of an import. ``issues`` and ``missing_permissions`` prevent it; ``notes`` do not.

    ``defaulted`` are the flags that get the default strategy. ``sources`` are the environments that the file
    was exported from. ``parts``: see :class:`importer.body.schemas.Body`.
    """

    project: str
    environment: str
    target: Target | None = None
    flags: dict[str, FlagPlan] = field(default_factory=dict)
    references: References | None = None
    saved_contexts: dict[str, SavedContextPlan] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    defaulted: list[str] = field(default_factory=list)
    custom_strategy_types: list[str] = field(default_factory=list)
    missing_permissions: list[Permission] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    parts: frozenset[str] | None = None
    made_at: datetime = field(default_factory=timezone.now)

    @property
    def can_be_applied(self) -> bool:
        return not self.issues and not self.missing_permissions

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of flags by action."""
        counted = Counter(flag.action for flag in self.flags.values())
        return {action.value: counted[action] for action in Action}

    def saved_contexts_with(self, action: Action) -> list[str]:
        return [planned.name for planned in self.saved_contexts.values() if planned.action is action]

    def with_action(self, *actions: Action) -> Iterator[FlagPlan]:
        return (flag for flag in self.flags.values() if flag.action in actions)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that the plan depends on, which changes when any of it changes."""
        state: list[Any] = [
            [flag.name, flag.stored and [flag.stored.project, flag.stored.archived, flag.stored.document]]
            for flag in sorted(self.flags.values(), key=lambda flag: flag.name)
        ]
        if self.references is not None and self.target is not None:
            state += [*self.references.state(), *self.target.state()]
        if self.saved_contexts:
            state.append(
                [[planned.name, planned.before, planned.after] for planned in self.saved_contexts.values()]
            )
        if (
            self.parts is not None
        ):  # the source of a promotion may change between its preview and the promotion
            state.append([[flag.name, flag.after] for flag in self.with_action(Action.CHANGE)])
        state.append(sorted((issue.path, issue.message) for issue in self.issues))
        return hashlib.sha256(orjson.dumps(state, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def check(self) -> None:
        """Raises NoAccess if permissions are missing; NotFound or ValidationError if there are issues."""
        if self.missing_permissions:
            raise make_no_access(self.missing_permissions, self.project)
        self.check_issues()

    def check_issues(self) -> None:
        """Raises ValidationError for issues; NotFound if the only issue is a missing or archived project."""
        target = [issue for issue in self.issues if issue.path in ("project", "environment")]
        for issue in target:
            if issue.kind is IssueKind.PROJECT and len(target) == len(self.issues):
                raise NotFound(issue.message, details=[issue.problem() for issue in self.issues])
        if self.issues:
            raise make_validation_error((issue.problem() for issue in self.issues), len(self.issues))
