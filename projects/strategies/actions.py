"""Adds, changes, removes and reorders the strategies of a flag in an environment."""

import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Max

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record, record_change
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import NotFound, Problem, ValidationError, check_problems
from flagadmin.core.unreadable_values import check_values
from groups.access import Caller
from groups.permissions import Permission
from playground.engine.definitions import StrategyDefinition, VariantDefinition
from projects.access import access_flag_for_update
from projects.flags.environments.toggle import keep_off_without_strategies, project_environment
from projects.flags.queries import strategy_documents
from projects.limits import Limits
from projects.models import Flag, ProjectEnvironment, Strategy, StrategySegment
from projects.project_scope import hold_segments
from projects.strategies.fields import assign
from projects.strategies.known_names import load_known_names
from projects.strategies.rules import StrategyDefaults, merge_strategy, plan_strategy


@transactional
def add_strategy(
    project_id: str, name: str, environment: str, values: Mapping[str, Any], *, caller: Caller
) -> StrategyDefinition:
    """Adds a strategy and returns its document. Without ``sortOrder`` it becomes the last one.

    Raises NotFound, NoAccess, ValidationError.
    """
    permission = Permission.CREATE_FEATURE_STRATEGY
    flag, _ = _access(project_id, name, environment, permission, caller=caller)
    document = check_strategy(flag, values)
    check_room_for_strategy(flag, environment)
    strategy = insert_strategy(flag, environment, document)
    return _record(EventType.FEATURE_STRATEGY_ADD, strategy, environment, None, caller=caller)


def check_room_for_strategy(flag: Flag, environment: str) -> None:
    """Raises ValidationError if the flag has the maximum number of strategies. The flag must be locked."""
    number = Strategy.objects.filter(flag=flag, environment_id=environment).count()
    check_number_of_strategies(flag, environment, number)


def check_number_of_strategies(flag: Flag, environment: str, number: int) -> None:
    """Raises ValidationError if a flag with so many strategies can get no other."""
    limit = Limits.from_settings().strategies
    if number >= limit:
        raise ValidationError(f"{flag.name} has {limit} strategies in {environment}, the maximum.")


def insert_strategy(flag: Flag, environment: str, document: StrategyDefinition) -> Strategy:
    """Inserts the rows of a strategy from a validated document."""
    place = document["sortOrder"]
    if place is None:
        strategies = Strategy.objects.filter(flag=flag, environment_id=environment)
        last = strategies.aggregate(last=Max("sort_order"))["last"]
        place = 0 if last is None else last + 1
    strategy = Strategy(flag=flag, environment_id=environment)
    assign(strategy, document | {"sortOrder": place})
    strategy.save(force_insert=True)
    set_segments(strategy, document["segments"])
    return strategy


def check_strategy(
    flag: Flag, values: Mapping[str, Any], *, stored_variants: Sequence[VariantDefinition] = ()
) -> StrategyDefinition:
    """The document to store for the given values. Raises ValidationError with every problem."""
    defaults = StrategyDefaults(flag=flag.name, stickiness=flag.project.default_stickiness)
    hold_segments(values.get("segments") or [])
    document, problems = plan_strategy(
        values,
        "",
        defaults=defaults,
        known_names=load_known_names(flag.project_id),
        limits=Limits.from_settings(),
        stored_variants=stored_variants,
    )
    check_values(problems)
    return document


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

    Raises the same errors as ``edit_strategy``.
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
    """Changes a strategy, and adds it as it was right behind itself: whom the new conditions leave out keeps it.

    Raises the same errors as ``edit_strategy`` and ``add_strategy``.
    """
    flag, _ = _access(project_id, name, environment, Permission.UPDATE_FEATURE_STRATEGY, caller=caller)
    [before] = strategy_documents([access_strategy(flag, environment, strategy_id)])
    update_strategy(project_id, name, environment, strategy_id, values, expected=expected, caller=caller)
    add_strategy(project_id, name, environment, {**before, "id": ""}, caller=caller)


@transactional
def edit_strategy(
    project_id: str,
    name: str,
    environment: str,
    strategy_id: str,
    edit: Callable[[StrategyDefinition], Mapping[str, Any]],
    *,
    expected: Expected = None,
    caller: Caller,
) -> StrategyDefinition:
    """Replaces a strategy with the result of ``edit`` and returns the new document.

    ``edit`` gets the current document, read under the lock. Missing members get their defaults, except
    ``sortOrder``, which stays. If this disables the last enabled strategy, the flag is turned off in the
    environment, because a flag without enabled strategies is on for everyone.

    Raises NotFound, NoAccess, EditConflict, ValidationError.
    """
    permission = Permission.UPDATE_FEATURE_STRATEGY
    flag, place = _access(project_id, name, environment, permission, caller=caller)
    strategy = access_strategy(flag, environment, strategy_id)
    [before] = strategy_documents([strategy])
    check_expected(expected, without_place(before))
    document = check_strategy(flag, edit(before), stored_variants=strategy.variants)
    if document["sortOrder"] is None:
        document["sortOrder"] = strategy.sort_order
    assign(strategy, document)
    strategy.save()
    set_segments(strategy, document["segments"])
    after = _record(EventType.FEATURE_STRATEGY_UPDATE, strategy, environment, before, caller=caller)
    keep_off_without_strategies(flag, place, caller=caller)
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
    flag, place = _access(project_id, name, environment, permission, caller=caller)
    strategy = access_strategy(flag, environment, strategy_id)
    [before] = strategy_documents([strategy])
    check_expected(expected, without_place(before))
    strategy.delete()
    record(
        Event(
            type=EventType.FEATURE_STRATEGY_REMOVE,
            project=project_id,
            environment=environment,
            feature=name,
            before=before,
        ),
        actor=caller,
    )
    keep_off_without_strategies(flag, place, caller=caller)


@transactional
def order_strategies(
    project_id: str, name: str, environment: str, orders: Sequence[tuple[str, int]], *, caller: Caller
) -> None:
    """Sets sort orders from (id, sort order) pairs. Other strategies keep theirs.

    Raises NotFound, NoAccess, and ValidationError for ids of strategies that the flag does not have there.
    """
    permission = Permission.UPDATE_FEATURE_STRATEGY
    flag, _ = _access(project_id, name, environment, permission, caller=caller)
    strategies = {str(s.pk): s for s in Strategy.objects.filter(flag=flag, environment_id=environment)}
    check_problems(order_problems(flag, environment, (key for key, _ in orders), strategies))
    before = _ids_in_order(strategies)
    places = {identifier: strategy.sort_order for identifier, strategy in strategies.items()}
    for strategy_id, place in orders:
        strategies[strategy_id].sort_order = place
    Strategy.objects.bulk_update(strategies.values(), ["sort_order"])
    after = _ids_in_order(strategies)
    if any(places[identifier] != strategy.sort_order for identifier, strategy in strategies.items()):
        record(
            Event(
                type=EventType.FEATURE_STRATEGY_ORDER_CHANGED,
                project=project_id,
                environment=environment,
                feature=name,
                before={"strategyIds": before},
                after={"strategyIds": after},
                earlier={"sortOrders": places},
            ),
            actor=caller,
        )


def order_problems(
    flag: Flag, environment: str, ids: Iterable[str], stored: Container[str]
) -> Iterator[Problem]:
    """Ids in a new order that are of no stored strategy."""
    for index, strategy_id in enumerate(ids):
        if strategy_id not in stored:
            message = f"{flag.name} has no strategy {strategy_id} in {environment}"
            yield Problem(f"[{index}].id", message)


def without_place(document: StrategyDefinition) -> dict[str, Any]:
    """The part of the document that ``expected`` is compared with: all members except ``sortOrder``."""
    return {key: value for key, value in document.items() if key != "sortOrder"}


def access_strategy(flag: Flag, environment: str, strategy_id: str) -> Strategy:
    """A strategy of the flag in the environment. Raises NotFound."""
    strategy = None
    if (identifier := _uuid(strategy_id)) is not None:
        rows = Strategy.objects.filter(pk=identifier, flag=flag, environment_id=environment)
        strategy = rows.first()
    if strategy is None:
        raise NotFound(f"{flag.name} has no strategy {strategy_id} in {environment}.")
    return strategy


def _access(
    project_id: str, name: str, environment: str, permission: Permission, *, caller: Caller
) -> tuple[Flag, ProjectEnvironment]:
    flag = access_flag_for_update(caller, project_id, name, permission, environment=environment)
    return flag, project_environment(project_id, environment)


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def _ids_in_order(strategies: Mapping[str, Strategy]) -> list[str]:
    return [str(s.pk) for s in sorted(strategies.values(), key=lambda s: (s.sort_order, s.pk))]


def set_segments(strategy: Strategy, segments: Sequence[int]) -> None:
    links = StrategySegment.objects.filter(strategy=strategy)
    if list(links.order_by("id").values_list("segment_id", flat=True)) == list(segments):
        return
    links.delete()
    StrategySegment.objects.bulk_create(
        StrategySegment(strategy=strategy, segment_id=segment) for segment in segments
    )


def _record(
    kind: EventType,
    strategy: Strategy,
    environment: str,
    before: StrategyDefinition | None,
    *,
    caller: Caller,
) -> StrategyDefinition:
    """Returns the strategy's current document. Records an event if it differs from ``before``."""
    [after] = strategy_documents([strategy])
    flag = strategy.flag
    event = Event(
        type=kind,
        project=flag.project_id,
        environment=environment,
        feature=flag.name,
        before=before,
        after=after,
    )
    record_change(event, actor=caller)
    return after
