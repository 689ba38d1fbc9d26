"""Adds, changes, removes and reorders the strategies of a flag in an environment."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import Max

from flagadmin.core.audit.record import Event, EventType, record, record_all
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import Problem, check_problems
from groups.access import Caller, Permission
from playground.engine.definitions import StrategyDefinition
from projects.flags.environments.toggle import keep_off_without_strategies
from projects.flags.queries import read_strategy_documents
from projects.models import Flag, Strategy, StrategySegment
from projects.strategies.access import access_flag_in, access_flags_in, access_strategies, access_strategy
from projects.strategies.check import check_room_for_strategy, check_strategies, check_strategy
from projects.strategies.fields import assign, drop_sort_order, make_strategy_document
from projects.strategies.rules import merge_strategy


@transactional
def add_strategy(
    project_id: str, name: str, environment: str, values: Mapping[str, Any], *, caller: Caller
) -> StrategyDefinition:
    """Adds a strategy and returns its document. Without ``sortOrder`` it becomes the last one.

    Raises NotFound, NoAccess, ValidationError.
    """
    permission = Permission.CREATE_FEATURE_STRATEGY
    flag, _ = access_flag_in(project_id, name, environment, permission, caller=caller)
    document = check_strategy(flag, values)
    check_room_for_strategy(flag, environment)
    strategy = insert_strategy(flag, environment, document)
    [after] = read_strategy_documents([strategy])
    record(_make_event(EventType.FEATURE_STRATEGY_ADD, strategy, None, after), actor=caller)
    return after


def insert_strategy(flag: Flag, environment: str, document: StrategyDefinition) -> Strategy:
    """Inserts the rows of a strategy from a validated document."""
    sort_order = document["sortOrder"]
    if sort_order is None:
        strategies = Strategy.objects.filter(flag=flag, environment_id=environment)
        last = strategies.aggregate(last=Max("sort_order"))["last"]
        sort_order = 0 if last is None else last + 1
    strategy = Strategy(flag=flag, environment_id=environment)
    assign(strategy, document | {"sortOrder": sort_order})
    strategy.save(force_insert=True)
    set_segments(strategy, document["segments"])
    return strategy


Edit = Callable[[StrategyDefinition], Mapping[str, Any]]
"""Gets the current document, read under the lock, and returns the new one."""


class StrategyEdit(NamedTuple):
    """The edit of a strategy of a flag."""

    flag: str
    strategy: str
    edit: Edit
    expected: Expected = None


def update_strategy(
    project_id: str,
    name: str,
    environment: str,
    strategy_id: str,
    values: Mapping[str, Any],
    *,
    expected: Expected = None,
    caller: Caller,
) -> StrategyDefinition:
    """Changes the given members of a strategy (``merge_strategy``) and returns its document.

    Raises the same errors as ``edit_strategies``.
    """
    return edit_strategy(
        project_id,
        name,
        environment,
        strategy_id,
        lambda before: merge_strategy(before, values),
        expected=expected,
        caller=caller,
    )


@transactional
def update_for_some(
    project_id: str,
    name: str,
    environment: str,
    strategy_id: str,
    values: Mapping[str, Any],
    *,
    expected: Expected = None,
    caller: Caller,
) -> None:
    """Changes a strategy, and adds the old version right after it, for users whom the new conditions exclude.

    Raises the same errors as ``edit_strategies``.
    """
    flag, _ = access_flag_in(project_id, name, environment, Permission.UPDATE_FEATURE_STRATEGY, caller=caller)
    [before] = read_strategy_documents([access_strategy(flag, environment, strategy_id)])
    update_strategy(project_id, name, environment, strategy_id, values, expected=expected, caller=caller)
    add_strategy(project_id, name, environment, {**before, "id": ""}, caller=caller)


def edit_strategy(
    project_id: str,
    name: str,
    environment: str,
    strategy_id: str,
    edit: Edit,
    *,
    expected: Expected = None,
    caller: Caller,
) -> StrategyDefinition:
    """Replaces a strategy with the result of `edit` and returns the new document. See `edit_strategies`."""
    edits = [StrategyEdit(name, strategy_id, edit, expected)]
    [after] = edit_strategies(project_id, environment, edits, caller=caller)
    return after


@transactional
def edit_strategies(
    project_id: str, environment: str, edits: Sequence[StrategyEdit], *, caller: Caller
) -> list[StrategyDefinition]:
    """Replaces strategies, each once, with the results of their ``edit``, all or none. Returns the new documents.

    Missing members get their defaults, except ``sortOrder``, which stays. A flag whose last enabled strategy is
    disabled is turned off in the environment, because a flag without enabled strategies is on for everyone. Apart
    from the rows of the strategies, the number of statements is constant.

    Raises NotFound, NoAccess, EditConflict, ValidationError.
    """
    permission, names = Permission.UPDATE_FEATURE_STRATEGY, [edit.flag for edit in edits]
    flags, project_environment = access_flags_in(project_id, names, environment, permission, caller=caller)
    keys = [edit.strategy for edit in edits]
    strategies = access_strategies(list(zip(flags, keys, strict=True)), environment)
    before = read_strategy_documents(strategies)
    after = _assign_edits(project_id, edits, strategies, before)
    changes = [change for change in zip(strategies, before, after, strict=True) if change[1] != change[2]]
    for strategy, old, new in changes:
        strategy.save()
        if old["segments"] != new["segments"]:
            set_segments(strategy, new["segments"])
    if changes:
        record_all(
            [_make_event(EventType.FEATURE_STRATEGY_UPDATE, *change) for change in changes], actor=caller
        )
    keep_off_without_strategies(flags, project_environment, caller=caller)
    return after


def _assign_edits(
    project_id: str,
    edits: Sequence[StrategyEdit],
    strategies: Sequence[Strategy],
    before: Sequence[StrategyDefinition],
) -> list[StrategyDefinition]:
    """Gives the objects their new values. Returns the new documents. Raises EditConflict, ValidationError."""
    for edit, document in zip(edits, before, strict=True):
        check_expected(edit.expected, drop_sort_order(document))
    wanted = [
        (strategy.flag, edit.edit(document), document)
        for edit, strategy, document in zip(edits, strategies, before, strict=True)
    ]
    after = []
    for strategy, document in zip(strategies, check_strategies(project_id, wanted), strict=True):
        if document["sortOrder"] is None:
            document["sortOrder"] = strategy.sort_order
        assign(strategy, document)
        after.append(make_strategy_document(strategy, id=str(strategy.pk), segments=document["segments"]))
    return after


@transactional
def remove_strategy(
    project_id: str,
    name: str,
    environment: str,
    strategy_id: str,
    *,
    expected: Expected = None,
    caller: Caller,
) -> None:
    """Removes a strategy. If it was the last enabled one, the flag is turned off in the environment.

    Raises NotFound, NoAccess, EditConflict.
    """
    permission = Permission.DELETE_FEATURE_STRATEGY
    flag, project_environment = access_flag_in(project_id, name, environment, permission, caller=caller)
    strategy = access_strategy(flag, environment, strategy_id)
    [before] = read_strategy_documents([strategy])
    check_expected(expected, drop_sort_order(before))
    strategy.delete()
    record(_make_event(EventType.FEATURE_STRATEGY_REMOVE, strategy, before, None), actor=caller)
    keep_off_without_strategies([flag], project_environment, caller=caller)


@transactional
def order_strategies(
    project_id: str, name: str, environment: str, orders: Sequence[tuple[str, int]], *, caller: Caller
) -> None:
    """Sets sort orders from (id, sort order) pairs. Other strategies keep theirs.

    Raises NotFound, NoAccess, and ValidationError for ids of strategies that the flag does not have there.
    """
    permission = Permission.UPDATE_FEATURE_STRATEGY
    flag, _ = access_flag_in(project_id, name, environment, permission, caller=caller)
    strategies = {str(s.pk): s for s in Strategy.objects.filter(flag=flag, environment_id=environment)}
    check_problems(order_problems(flag, environment, (key for key, _ in orders), strategies))
    before = _list_ids_in_order(strategies)
    places = {identifier: strategy.sort_order for identifier, strategy in strategies.items()}
    for strategy_id, sort_order in orders:
        strategies[strategy_id].sort_order = sort_order
    Strategy.objects.bulk_update(strategies.values(), ["sort_order"])
    after = _list_ids_in_order(strategies)
    if any(places[identifier] != strategy.sort_order for identifier, strategy in strategies.items()):
        record(
            Event.of_flag(
                EventType.FEATURE_STRATEGY_ORDER_CHANGED,
                flag,
                environment,
                before={"strategyIds": before},
                after={"strategyIds": after},
                earlier={"sortOrders": places},
            ),
            actor=caller,
        )


def order_problems(
    flag: Flag, environment: str, ids: Iterable[str], stored: Container[str]
) -> Iterator[Problem]:
    """The ids in a new order that belong to no stored strategy."""
    for index, strategy_id in enumerate(ids):
        if strategy_id not in stored:
            message = f"{flag.name} has no strategy {strategy_id} in {environment}"
            yield Problem(f"[{index}].id", message)


def _list_ids_in_order(strategies: Mapping[str, Strategy]) -> list[str]:
    return [str(s.pk) for s in sorted(strategies.values(), key=lambda s: (s.sort_order, s.pk))]


def set_segments(strategy: Strategy, segments: Sequence[int]) -> None:
    links = StrategySegment.objects.filter(strategy=strategy)
    if list(links.order_by("id").values_list("segment_id", flat=True)) == list(segments):
        return
    links.delete()
    StrategySegment.objects.bulk_create(
        StrategySegment(strategy=strategy, segment_id=segment) for segment in segments
    )


def _make_event(
    kind: EventType, strategy: Strategy, before: StrategyDefinition | None, after: StrategyDefinition | None
) -> Event:
    return Event.of_flag(kind, strategy.flag, strategy.environment_id, before=before, after=after)
