"""Clones a flag under a new name in the same project."""

from typing import Any

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import check_problems
from groups.access import Caller, Permission
from playground.engine.definitions import StrategyDefinition
from projects.access import access_flag, access_project_for_update
from projects.flags.actions import NewFlag, add_first_links, check_room, insert_flag, new_name_problems
from projects.flags.queries import make_metadata_document, read_dependency_documents, read_strategy_documents
from projects.history.definitions_at import read_present_version
from projects.models import Flag, PayloadSchema, Strategy
from projects.models.strategies import make_time_ordered_id
from projects.states import NOTHING, by_environment
from projects.strategies.write import StateChange, replace_parents, write_states


@transactional
def clone_flag(
    project_id: str, name: str, new_name: str, *, replace_group_id: bool = True, caller: Caller
) -> Flag:
    """Creates a copy of a flag, off in every environment.

    Metadata, the owner, strategies, variants, the payload schema, tags and parents are copied. With
    ``replace_group_id``, the ``groupId`` of every copied strategy becomes the new flag's name. Raises NotFound,
    NoAccess, ValidationError, NameExists, and InvalidOperation if the project is full.
    """
    project = access_project_for_update(caller, project_id, Permission.CREATE_FEATURE, flags=[new_name])
    source = access_flag(caller, project_id, name, archived=False)
    check_problems(new_name_problems(new_name, project))
    check_room(project, 1)
    new = NewFlag(
        name=new_name,
        type=source.type,
        description=source.description,
        impression_data=source.impression_data,
        owner_user_id=source.owner_user_id,
        owner_group_id=source.owner_group_id,
        tags=[(tag.tag_type_id, tag.value) for tag in source.tags.all()],
    )
    flag = insert_flag(project, new, caller=caller)
    _copy_states(source, flag, replace_group_id)
    replace_parents({flag.pk: read_dependency_documents(source)})
    if schema := PayloadSchema.objects.filter(flag=source).first():
        PayloadSchema.objects.create(flag=flag, schema=schema.schema)
    record(Event.of_flag(EventType.FEATURE_CREATED, flag, after=_make_document(flag, name)), actor=caller)
    add_first_links(flag, caller=caller)
    return flag


def _make_document(flag: Flag, source: str) -> dict[str, object]:
    strategies = read_strategy_documents(Strategy.objects.filter(flag=flag))
    parents = read_dependency_documents(flag)
    return make_metadata_document(flag) | {
        "clonedFrom": source,
        "strategies": strategies,
        "dependencies": parents,
    }


def _copy_states(source: Flag, flag: Flag, replace_group_id: bool) -> None:
    def copy(strategy: StrategyDefinition) -> Any:
        parameters = strategy["parameters"]
        if replace_group_id and "groupId" in parameters:
            parameters = parameters | {"groupId": flag.name}
        return {**strategy, "id": str(make_time_ordered_id()), "parameters": parameters}

    write_states(
        StateChange(
            flag.pk,
            environment,
            NOTHING,
            {**place, "enabled": False, "strategies": [copy(strategy) for strategy in place["strategies"]]},
        )
        for environment, place in by_environment(read_present_version(source)).items()
    )
