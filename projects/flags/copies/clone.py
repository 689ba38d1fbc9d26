"""Clones a flag under a new name in the same project."""

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import check_problems
from groups.access import Caller, Permission
from projects.access import access_flag, access_project_for_update
from projects.flags.actions import NewFlag, insert_flag, new_name_problems
from projects.flags.limits import check_room
from projects.flags.links.actions import add_first_links
from projects.flags.queries import make_metadata_document, read_dependency_documents, read_strategy_documents
from projects.models import Dependency, Flag, FlagEnvironment, PayloadSchema, Strategy, StrategySegment
from projects.strategies.fields import assign, make_strategy_document


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
    _copy_variants(source, flag)
    _copy_strategies(source, flag, replace_group_id)
    if schema := PayloadSchema.objects.filter(flag=source).first():
        PayloadSchema.objects.create(flag=flag, schema=schema.schema)
    Dependency.objects.bulk_create(
        Dependency(flag=flag, parent_id=row.parent_id, enabled=row.enabled, variants=row.variants)
        for row in Dependency.objects.filter(flag=source).order_by("id")
    )
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


def _copy_variants(source: Flag, flag: Flag) -> None:
    variants = dict(FlagEnvironment.objects.filter(flag=source).values_list("environment_id", "variants"))
    rows = list(FlagEnvironment.objects.filter(flag=flag))
    for row in rows:
        row.variants = variants.get(row.environment_id, [])
    FlagEnvironment.objects.bulk_update(rows, ["variants"])


def _copy_strategies(source: Flag, flag: Flag, replace_group_id: bool) -> None:
    copies = {}
    for strategy in Strategy.objects.filter(flag=source):
        document = make_strategy_document(strategy)
        if replace_group_id and "groupId" in strategy.parameters:
            document["parameters"] = strategy.parameters | {"groupId": flag.name}
        copies[strategy.pk] = copy = Strategy(flag=flag, environment_id=strategy.environment_id)
        assign(copy, document)
    Strategy.objects.bulk_create(copies.values())
    links = StrategySegment.objects.filter(strategy__flag=source).order_by("id")
    StrategySegment.objects.bulk_create(
        StrategySegment(strategy=copies[link.strategy_id], segment_id=link.segment_id) for link in links
    )
