"""The operations of SCIM: from a parsed request to a document. `api` imports this late.

Its models take half a second and 18 MB, which only installations that use SCIM should pay for.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from django.db.models import Prefetch, QuerySet
from pydantic import ValidationError
from scim2_models import (
    Context,
    ListResponse,
    PatchOp,
    ResponseParameters,
    SCIMException,
    SearchRequest,
)

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.document import Document
from flagadmin.core.errors import NotFound, PayloadTooLarge
from flagadmin.core.http.fields import is_id
from flagadmin.core.lists.filters import MAX_OFFSET
from groups.access import Caller
from groups.models import Group as GroupRow
from groups.models import GroupMembership
from groups.models import User as UserRow
from groups.people.actions import AccountChanges
from groups.scim import actions
from groups.scim.actions import GroupValues, MemberChanges, ScimRefused, load_settings
from groups.scim.filters import BY_EMAIL, GROUP_COLUMNS, USER_COLUMNS, Column, make_condition
from groups.scim.resources import (
    MAX_RESULTS,
    MEMBERS,
    POLICY,
    PROVIDER,
    Group,
    User,
    find_described,
    group_resource,
    make_user_resource,
    read_members,
    read_user,
    take_member_operations,
)

Parameters = Mapping[str, str]
T = TypeVar("T")
# Created here, because pydantic takes a tenth of a second for them, which would delay a request.
SEARCHES: dict[Any, Any] = {User: SearchRequest[User], Group: SearchRequest[Group]}
ANSWERS: dict[Any, Any] = {User: ListResponse[User], Group: ListResponse[Group]}
PATCHES: dict[Any, Any] = {User: PatchOp[User], Group: PatchOp[Group]}
FEW = 100
MAX_OPERATIONS = 1_000
MAX_FILTER, MAX_PARENTHESES = 5_000, 100


def _read(kind: Any, body: Any, context: Context) -> Any:
    """Parses a body. Raises ScimRefused."""
    try:
        with POLICY:
            return kind.model_validate(body, scim_ctx=context)
    except (ValidationError, SCIMException) as error:
        raise _refuse(error) from None


def _refuse(error: Exception) -> ScimRefused:
    if isinstance(
        error.__cause__, ValidationError
    ):  # for the result of a PATCH, whose text would be pydantic's
        error = error.__cause__
    if isinstance(error, SCIMException):
        return ScimRefused(error.detail or str(error), error.scim_type or "invalidValue")
    assert isinstance(error, ValidationError)
    first = error.errors(include_url=False, include_input=False)[0]
    kind = str(first["type"]).removeprefix("scim_")
    path = ".".join(map(str, first["loc"]))
    known = kind if str(first["type"]).startswith("scim_") else "invalidValue"
    return ScimRefused(f"{path}: {first['msg']}" if path else first["msg"], known)


def _dump(document: Any, context: Context, parameters: Any = None) -> Document:
    with PROVIDER:
        dumped: Document = document.model_dump(scim_ctx=context, response_parameters=parameters)
    return dumped


def _check_filter(text: Any) -> None:
    """Checks a filter before it is parsed, because many parentheses take long. Raises ScimRefused."""
    if not isinstance(text, str):
        return
    if len(text) > MAX_FILTER:
        raise ScimRefused(
            f"A filter has at most {MAX_FILTER:,} characters, not {len(text):,}.", "invalidFilter"
        )
    if (opened := text.count("(") + text.count("[")) > MAX_PARENTHESES:
        message = f"A filter has at most {MAX_PARENTHESES} parentheses and brackets, not {opened:,}."
        raise ScimRefused(message, "invalidFilter")


def _check_paths(body: Any) -> None:
    """Checks the filters in the paths of a PATCH, and in names used as paths. Raises ScimRefused."""
    operations = body.get("Operations", body.get("operations")) if isinstance(body, Mapping) else None
    for operation in operations if isinstance(operations, list) else ():
        if isinstance(operation, Mapping):
            value = operation.get("value")
            for path in (operation.get("path"), *(value if isinstance(value, Mapping) else ())):
                _check_filter(path)


def _read_id(key: str, kind: str) -> int:
    """Raises NotFound."""
    if not is_id(key):
        raise NotFound(f"{kind} {key[:100]} not found.")
    return int(key)


# Lists ------------------------------------------------------------------------------------------------------


def _search(kind: Any, rows: QuerySet[Any], columns: Mapping[str, Column], query: Parameters) -> Any:
    """The request, the number of rows, and the rows of the page."""
    _check_filter(query.get("filter", ""))
    request = _read(SEARCHES[kind], dict(query), Context.SEARCH_REQUEST)
    if request.filter is not None:
        # A subquery, because a condition on members yields a row for each of them.
        rows = rows.filter(pk__in=rows.filter(make_condition(request.filter, columns)).values("pk"))
    request.start_index = min(request.start_index or 1, MAX_OFFSET)
    start = request.start_index - 1
    size = FEW if request.count is None else min(request.count, MAX_RESULTS)
    return request, rows.count(), rows.order_by("pk")[start : start + size]


def _list(kind: Any, request: Any, total: int, resources: list[Any]) -> Document:
    answer = ANSWERS[kind](
        total_results=total,
        start_index=request.start_index,
        items_per_page=len(resources),
        resources=resources,
    )
    return _dump(answer, Context.RESOURCE_QUERY_RESPONSE, request) | {"totalResults": total}


def list_users(query: Parameters, base: str) -> Document:
    columns = USER_COLUMNS | (BY_EMAIL if load_settings().finds_by_email else {})
    request, total, users = _search(User, UserRow.objects.people(), columns, query)
    return _list(User, request, total, [make_user_resource(user, base) for user in users])


def list_groups(query: Parameters, base: str) -> Document:
    request, total, groups = _search(Group, GroupRow.objects.all(), GROUP_COLUMNS, query)
    with_members = _wants_members(request)
    groups = groups.prefetch_related(_prefetch_members()) if with_members else groups
    resources = [group_resource(group, base, with_members=with_members) for group in groups]
    return _list(Group, request, total, resources)


def _prefetch_members() -> Prefetch:
    return Prefetch("memberships", GroupMembership.objects.select_related("user").order_by("user_id"))


def _wants_members(parameters: Any) -> bool:
    attributes = [str(path).lower() for path in parameters.attributes or ()]
    excluded = [str(path).lower() for path in parameters.excluded_attributes or ()]
    return MEMBERS not in excluded and (
        not attributes or any(name.startswith(MEMBERS) for name in attributes)
    )


# Users ------------------------------------------------------------------------------------------------------


def _find_user(key: str) -> UserRow:
    return get_or_404(UserRow.objects.people(), f"User {key} not found.", pk=_read_id(key, "User"))


def get_user(key: str, query: Parameters, base: str) -> Document:
    parameters = _read(ResponseParameters[User], dict(query), Context.DEFAULT)
    return _dump(make_user_resource(_find_user(key), base), Context.RESOURCE_QUERY_RESPONSE, parameters)


def create_user(body: Any, base: str, *, caller: Caller) -> Document:
    resource = _read(User, body, Context.RESOURCE_CREATION_REQUEST)
    user = actions.create_user(read_user(resource), caller=caller)
    return _dump(make_user_resource(user, base), Context.RESOURCE_CREATION_RESPONSE)


def replace_user(key: str, body: Any, base: str, *, caller: Caller) -> Document:
    stored = _find_user(key)
    resource = _read(User, body, Context.RESOURCE_REPLACEMENT_REQUEST)

    def read_changes(user: UserRow) -> AccountChanges:
        return read_user(resource, make_user_resource(user, base))

    user = actions.change_user(stored.pk, read_changes, caller=caller)
    return _dump(make_user_resource(user, base), Context.RESOURCE_REPLACEMENT_RESPONSE)


def patch_user(key: str, body: Any, base: str, *, caller: Caller) -> Document:
    stored, patch = _find_user(key), _read_patch(User, body)

    def read_changes(user: UserRow) -> AccountChanges:
        before, after = make_user_resource(user, base), make_user_resource(user, base)
        _apply(patch, after)
        return read_user(after, before, is_patch=True)

    user = actions.change_user(stored.pk, read_changes, caller=caller)
    return _dump(make_user_resource(user, base), Context.RESOURCE_PATCH_RESPONSE)


def delete_user(key: str, *, caller: Caller) -> None:
    actions.delete_user(_read_id(key, "User"), caller=caller)


def _read_patch(kind: Any, body: Any) -> Any:
    _check_paths(body)
    patch = _read(PATCHES[kind], body, Context.RESOURCE_PATCH_REQUEST)
    operations = [each for operation in patch.operations for each in _take_out_filters(operation)]
    if len(operations) > MAX_OPERATIONS:
        raise PayloadTooLarge(f"At most {MAX_OPERATIONS:,} operations.")
    return patch.model_copy(update={"operations": operations})


def _take_out_filters(operation: Any) -> Iterator[Any]:
    """Splits an operation of Entra's without a path: names with a filter each need an operation of their own."""
    value = operation.value
    if operation.path is not None or not isinstance(value, Mapping):
        yield operation
        return
    filtered = {name: inner for name, inner in value.items() if "[" in name}
    if rest := {name: inner for name, inner in value.items() if name not in filtered}:
        yield operation.model_copy(update={"value": rest}) if filtered else operation
    for name, inner in filtered.items():
        its_own = {"op": operation.op.value, "path": name, "value": inner}
        yield _read(type(operation), its_own, Context.RESOURCE_PATCH_REQUEST)


def _apply(patch: Any, resource: Any) -> None:
    try:
        patch.patch(resource, scim_policy=POLICY)
    except (ValidationError, SCIMException) as error:
        raise _refuse(error) from None


# Groups -----------------------------------------------------------------------------------------------------


def _find_group(key: str, *, with_members: bool = False) -> GroupRow:
    groups = (
        GroupRow.objects.prefetch_related(_prefetch_members()) if with_members else GroupRow.objects.all()
    )
    return get_or_404(groups, f"Group {key} not found.", pk=_read_id(key, "Group"))


def get_group(key: str, query: Parameters, base: str) -> Document:
    parameters = _read(ResponseParameters[Group], dict(query), Context.DEFAULT)
    with_members = _wants_members(parameters)
    group = group_resource(_find_group(key, with_members=with_members), base, with_members=with_members)
    return _dump(group, Context.RESOURCE_QUERY_RESPONSE, parameters)


def create_group(body: Any, base: str, *, caller: Caller) -> Document:
    resource = _read(Group, body, Context.RESOURCE_CREATION_REQUEST)
    values = GroupValues(resource.display_name or "", resource.external_id)
    group = actions.create_provided_group(values, read_members(resource.members or []), caller=caller)
    changed_group = group_resource(_find_group(str(group.pk), with_members=True), base, with_members=True)
    return _dump(changed_group, Context.RESOURCE_CREATION_RESPONSE)


def replace_group(key: str, body: Any, base: str, *, caller: Caller) -> Document:
    group = _find_group(key)
    resource = _read(Group, body, Context.RESOURCE_REPLACEMENT_REQUEST)
    values = GroupValues(resource.display_name or "", resource.external_id)
    members = MemberChanges(only=read_members(resource.members or []))
    actions.change_provided_group(group.pk, lambda _: values, members, caller=caller)
    changed_group = group_resource(_find_group(key, with_members=True), base, with_members=True)
    return _dump(changed_group, Context.RESOURCE_REPLACEMENT_RESPONSE)


def patch_group(key: str, body: Any, *, caller: Caller) -> None:
    group, patch = _find_group(key), _read_patch(Group, body)
    members, others = take_member_operations(patch.operations)

    def read_values(stored: GroupRow) -> GroupValues:
        resource = group_resource(stored, "", with_members=False)
        if others:
            _apply(patch.model_copy(update={"operations": others}), resource)
        return GroupValues(resource.display_name or "", resource.external_id)

    actions.change_provided_group(group.pk, read_values, members, caller=caller)


def delete_group(key: str, *, caller: Caller) -> None:
    actions.delete_provided_group(_read_id(key, "Group"), caller=caller)


# Discovery --------------------------------------------------------------------------------------------------


def describe(kind: str, key: str = "") -> Document:
    """``ServiceProviderConfig``, ``Schemas`` or ``ResourceTypes``: all, or the one with this id. Raises NotFound."""
    if kind == "ServiceProviderConfig":
        return _dump(PROVIDER.config, Context.RESOURCE_QUERY_RESPONSE)
    documents = PROVIDER.schemas if kind == "Schemas" else PROVIDER.resource_types
    if key:
        described = find_described(documents, key)
        if described is None:
            raise NotFound(f"{kind} {key[:100]} not found.")
        return _dump(described, Context.RESOURCE_QUERY_RESPONSE)
    dumped = [_dump(each, Context.RESOURCE_QUERY_RESPONSE) for each in documents]
    return {
        "schemas": [str(ListResponse.__schema__)],
        "totalResults": len(dumped),
        "startIndex": 1,
        "itemsPerPage": len(dumped),
        "Resources": dumped,
    }
