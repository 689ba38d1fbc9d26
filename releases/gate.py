"""Refuses changes of an environment's results if it only accepts them in change requests.

Registered with `flagadmin.core.change_checks`, which calls it before and after a project changes. Only the effect
counts, whatever the operation: a title, a tag or a disabled flag changes no result. Tags that affect the number of
approvals are guarded too.

A form that asks for a later time is refused in the same way, in any environment, and becomes a scheduled request.

Watches saved contexts that affect the number of approvals, so that changing one does not bypass a rule.

Watches tags that affect the number of approvals, so that tagging does not bypass a rule.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from flagadmin.core.audit.record import AuditEvent, EventType, read_transaction_time, record_all
from flagadmin.core.change_checks import KnownChange, Refusal, Watch
from flagadmin.core.change_options import find_applied_environment, is_applied_to
from flagadmin.core.document import Document
from flagadmin.core.errors import choices
from flagadmin.core.installation.state import check_writable
from groups.access import Caller
from playground.models import SavedContext
from projects.definitions import Definitions, read_definitions
from projects.models import Environment, Flag, FlagTag, Project, ProjectEnvironment
from projects.projects.required_comments import BREAKS_EXPECTATION, CHANGES_SAVED_CONTEXT, TOUCHES_TAG
from projects.revision import read_revisions
from releases.derive import ProposedChange, derive_changes, find_differing, find_users
from releases.gate_refusal import Gated, NeedsChangeRequest, NeedsSkip, find_skipping, make_skip_event
from releases.models import ReleasePlan, Safeguard
from releases.schedules.later import Postponed, StepsNeedRequest, find_postponed

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


BROUGHT = "The flag brings a release plan or safeguards, which change it automatically: remove them first."


def guard(project_id: str, caller: Caller) -> Watch | None:
    """A watch on the project's guarded environments, if there are any."""
    links = ProjectEnvironment.objects.needing_requests().filter(project=project_id)
    policies = links.order_by("environment_id").values_list(
        "environment_id", "approval_rules", "required_approvals"
    )
    deciding = {
        name: find_deciding(rules, otherwise or 0)
        for name, rules, otherwise in policies
        if not is_applied_to(project_id, name)
    }
    if caller.postpones:
        return _PostponedWatch(project_id, deciding, caller)
    return GateWatch(project_id, deciding, caller) if deciding else None


class GateWatch(Watch):
    """Reads guarded environments' results for the flags before and after a change.

    The change has locked the flags by their names, or the whole project (`projects.access`).
    """

    def __init__(self, project_id: str, deciding: Mapping[str, Deciding], caller: Caller) -> None:
        """``deciding``: the tags that matter in each guarded environment."""
        self.project_id, self.caller = project_id, caller
        self.tags = TagWatch(project_id, deciding)
        self.revision: Mapping[str, int] | None = None
        """The revisions read first. If they are the same later, nothing has changed, and the project need
        not be read again.
        """
        self.before = {name: Definitions([], {}) for name in deciding}
        self.applied = find_applied_environment(project_id)
        self.recorded: set[tuple[str, str]] = set()
        """The environments and flags of recorded skips."""
        self.flags: set[str] | None = set()
        """The flags that have been read; None: all of the project."""

    def look_at(self, flags: Collection[str] | None) -> None:
        self.tags.look_at(flags)
        if self.flags is None or (flags is not None and self.flags.issuperset(flags)):
            return
        if flags is None and not self.flags:
            self.revision = read_revisions([self.project_id])
        fresh = None if flags is None else set(flags) - self.flags
        for name, read in self.before.items():
            self.before[name] = self._join(read, read_definitions([self.project_id], name, flags=fresh))
        self.flags = None if fresh is None else self.flags | fresh

    def _join(self, read: Definitions, more: Definitions) -> Definitions:
        """Joins definitions. Keeps those read before, because they may have changed by now."""
        known = self.flags or set()
        flags = [*read.flags, *(flag for flag in more.flags if flag["name"] not in known)]
        return Definitions(flags, more.segments | read.segments)

    def foresee(self, known: KnownChange) -> Refusal | None:
        for name, before in self.before.items():
            if not find_skipping(self.caller, self.project_id, name) and (
                refusal := self._compare(name, before.after(known, name), known.archived)
            ):
                check_writable()
                return refusal
        return None

    def __call__(self) -> Refusal | None:
        retagged = self.tags.find_retagged()
        refusals = (self._refuse_tags(name, pairs) for name, pairs in retagged.items())
        return self.find_refusal() or next(filter(None, refusals), None)

    def find_refusal(self) -> NeedsChangeRequest | None:
        """The refusal of the first environment with other results."""
        if self.revision is not None and read_revisions([self.project_id]) == self.revision:
            return None
        states = ((name, read_definitions([self.project_id], name, flags=self.flags)) for name in self.before)
        return next(filter(None, (self._compare(name, after) for name, after in states)), None)

    def _compare(
        self, environment: str, after: Definitions, foreseen: Collection[str] = ()
    ) -> NeedsChangeRequest | None:
        """``foreseen``: flags that the change would archive."""
        before = self.before[environment]
        flags, segments = find_differing(before, after)
        entered = {flag["name"] for flag in after.flags} - {flag["name"] for flag in before.flags}
        brought = _find_brought(self.project_id, environment, entered) if entered else []
        if not flags and not segments and not brought:
            return None
        changed = sorted({*flags, *brought, *(find_users(after, segments) if segments else ())})
        if is_skipped(self.caller, self.project_id, environment, changed, self.recorded):
            return None
        gated = Gated(self.project_id, environment, changed, None, self.applied)
        if brought:
            gated = Gated(self.project_id, environment, brought, None, effect=BROUGHT)
            return NeedsChangeRequest(gated.tell(self.caller))
        rows = Flag.objects.archived().filter(project=self.project_id, name__in=flags)
        archived = {*rows.values_list("name", flat=True), *foreseen}
        if not self.applied:
            left = {flag["name"] for flag in after.flags} | archived
            derived = derive_changes(before, after, archived)
            gated = gated._replace(changes=derived, removes=not left.issuperset(flags))
        elif archived.issuperset(flags) and not segments:
            gated = gated._replace(changes=_turn_off(flags))
        return NeedsChangeRequest(gated.tell(self.caller))

    def _refuse_tags(self, environment: str, retagged: Sequence[Tagged]) -> NeedsSkip | None:
        flags = sorted({flag for flag, _ in retagged})
        if is_skipped(self.caller, self.project_id, environment, flags, self.recorded):
            return None
        effect = (
            f"This would add or remove tags that approval rules of {environment} in project {self.project_id} depend "
            f"on ({choices({tag for _, tag in retagged})} on {choices(flags)}). Only those who may skip change "
            "requests there can do that."
        )
        return NeedsSkip(Gated(self.project_id, environment, flags, None, effect=effect).tell(self.caller))


class _PostponedWatch(GateWatch):
    """Always refuses: a change that cannot be postponed is not made now either."""

    def __init__(self, project_id: str, deciding: Mapping[str, Deciding], caller: Caller) -> None:
        super().__init__(project_id, deciding, caller)
        self.look_at(None)
        links = ProjectEnvironment.objects.filter(project=project_id)
        own = set(links.values_list("environment_id", flat=True))
        names = [name for name in Environment.objects.names() if name in own]
        self.stored = {name: self.before.get(name) or read_definitions([project_id], name) for name in names}

    def foresee(self, known: KnownChange) -> Refusal | None:
        after = {name: read.after(known, name) for name, read in self.stored.items()}
        return self._postpone(super().foresee(known), after, known.archived)

    def __call__(self) -> Refusal | None:
        after = {name: read_definitions([self.project_id], name) for name in self.stored}
        archived = Flag.objects.archived().filter(project=self.project_id)
        return self._postpone(self.find_refusal(), after, set(archived.values_list("name", flat=True)))

    def _postpone(
        self, refusal: Refusal | None, after: Mapping[str, Definitions], archived: Collection[str]
    ) -> Refusal:
        if isinstance(refusal, NeedsChangeRequest):
            return StepsNeedRequest(refusal.gated)
        return Postponed(find_postponed(self.project_id, self.stored, after, archived))


def is_skipped(
    caller: Caller, project_id: str, environment: str, flags: Sequence[str], recorded: set[tuple[str, str]]
) -> bool:
    """Whether the caller wants to skip requests for these flags, and may: each skip is recorded.

    ``recorded``: environments and flags whose skips are recorded already.
    """
    if (person := find_skipping(caller, project_id, environment)) is None:
        return False
    fresh = [name for name in flags if (environment, name) not in recorded]
    recorded.update((environment, name) for name in fresh)
    record_all([make_skip_event(project_id, environment, name) for name in fresh], actor=person)
    return True


def _find_brought(project_id: str, environment: str, entered: Collection[str]) -> list[str]:
    """Finds flags that are being moved here with plans or safeguards, which were approved elsewhere, if at all."""
    moves = AuditEvent.objects.filter(
        type=EventType.FEATURE_PROJECT_CHANGE, project=project_id, feature__in=entered
    )
    moved = list(moves.filter(created_at=read_transaction_time()).values_list("feature", flat=True))
    here = {"flag__name__in": moved, "environment": environment}
    plans = ReleasePlan.objects.filter(
        **here, state__in=(ReleasePlan.State.RUNNING, ReleasePlan.State.PAUSED)
    )
    names = plans.values_list("flag__name", flat=True)
    return sorted({*names, *Safeguard.objects.filter(**here).values_list("flag__name", flat=True)})


def _turn_off(flags: Sequence[str]) -> list[ProposedChange]:
    """Makes room for archiving them by the request of another environment: flags that are off answer nothing."""
    return [ProposedChange(name, "updateEnabled", {"enabled": False}) for name in flags]


def check_saved_context(
    saved: SavedContext, before: Document | None, after: Document | None, caller: Caller
) -> None:
    """Raises NeedsSkip if a request could need fewer approvals after the change of the saved context.

    ``before`` and ``after`` are its documents, None for none. One without a project counts in all projects.
    """
    links = ProjectEnvironment.objects.needing_requests().exclude(approval_rules=[])
    if saved.project_id is not None:
        links = links.filter(project=saved.project_id)
    for link in links.order_by("project_id", "environment_id"):
        if not is_applied_to(link.project_id, link.environment_id):
            _check(link, saved, before, after, caller)


def _check(
    link: ProjectEnvironment,
    saved: SavedContext,
    before: Document | None,
    after: Document | None,
    caller: Caller,
) -> None:
    reasons = sorted({*_list_reasons(link, before, after)})
    if not reasons or is_skipped(caller, link.project_id, link.environment_id, [""], set()):
        return
    effect = (
        f"This would change {' and '.join(reasons)} of {saved.name}, which approval rules of {link.environment_id} in "
        f"project {link.project_id} depend on. Only those who may skip change requests there can do that."
    )
    raise NeedsSkip(Gated(link.project_id, link.environment_id, [], None, effect=effect).tell(caller))


def _list_reasons(link: ProjectEnvironment, before: Document | None, after: Document | None) -> Iterator[str]:
    old, new = (document and document["context"] for document in (before, after))
    expected, expects = (_list_expected(link, document) for document in (before, after))
    for rule, goes, comes in compare_rules(link.approval_rules, link.required_approvals or 0):
        moved = old != new and ((old is not None and goes) or (new is not None and comes))
        if rule["condition"] == CHANGES_SAVED_CONTEXT and moved:
            yield "the fields"
        if rule["condition"] == BREAKS_EXPECTATION:
            if moved and (expected or expects):
                yield "the fields"
            gone = any(each not in expects for each in expected)
            come = any(each not in expected for each in expects)
            if (gone and goes) or (come and comes):
                yield "the expectations"


def _list_expected(link: ProjectEnvironment, document: Document | None) -> list[Any]:
    """Its expectations of flags of the project in the environment."""
    listed = [
        each
        for each in (document or {}).get("expectations", ())
        if each["environment"] == link.environment_id
    ]
    names = {each["flag"] for each in listed}
    here = set(Flag.objects.filter(project=link.project_id, name__in=names).values_list("name", flat=True))
    return [each for each in listed if each["flag"] in here]
