"""Accounts and groups as SCIM resources: declares them, makes them from rows, and reads them from requests.

Undeclared attributes are accepted and dropped: Entra and Okta send whatever they are configured to send.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar

from scim2_models import (
    URN,
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    ETag,
    Filter,
    Meta,
    Mutability,
    Patch,
    PatchOperation,
    Required,
    Resource,
    ResourceType,
    Schema,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
)
from scim2_models.path import CompareOperator, Comparison, FilterNode, LogicalExpr, LogicalOperator

from flagadmin.core.http.fields import is_id
from groups.models import Group as GroupRow
from groups.models import User as UserRow
from groups.people.actions import AccountChanges
from groups.scim.actions import MemberChanges, ScimRefused

MAX_RESULTS = 1_000


class Name(ComplexAttribute):
    formatted: str | None = None
    given_name: str | None = None
    family_name: str | None = None


class Email(ComplexAttribute):
    """An account has one. No EmailStr, because it refuses domains that companies use, such as .local."""

    value: str | None = None
    type: str | None = None
    primary: bool | None = None


class User(Resource):
    __schema__: ClassVar[URN] = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    name: Name | None = None
    display_name: str | None = None
    emails: list[Email] | None = None
    active: bool | None = None


class Member(ComplexAttribute):
    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    type: Annotated[str | None, Mutability.immutable] = None
    display: Annotated[str | None, Mutability.read_only] = None


class Group(Resource):
    __schema__: ClassVar[URN] = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    members: list[Member] | None = None


POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)


def _make_config() -> ServiceProviderConfig:
    return ServiceProviderConfig(
        patch=Patch(supported=True),
        bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
        filter=Filter(supported=True, max_results=MAX_RESULTS),
        change_password=ChangePassword(supported=False),
        sort=Sort(supported=False),
        etag=ETag(supported=False),
        authentication_schemes=[
            AuthenticationScheme(
                type=AuthenticationScheme.Type.oauthbearertoken,
                name="Bearer token",
                description="The token from the page Provisioning, in the header Authorization.",
                primary=True,
            )
        ],
    )


PROVIDER = ScimProvider(models=[User, Group], config=_make_config(), policy=POLICY)


def find_described(documents: tuple[Any, ...], key: str) -> Schema | ResourceType | None:
    """The schema or resource type with this id."""
    return next((each for each in documents if str(each.id) == key), None)


WORK = "work"


def make_user_resource(user: UserRow, base: str) -> User:
    """``base``: the URL of the service."""
    parts = user.scim_name or {}
    name = Name(
        formatted=user.name or None, given_name=parts.get("givenName"), family_name=parts.get("familyName")
    )
    return User(
        id=str(user.pk),
        external_id=user.external_id,
        user_name=user.username,
        name=name if any((user.name, *parts.values())) and user.scim_name != {} else None,
        display_name=user.name or None,
        emails=[Email(value=user.email, type=WORK, primary=True)] if user.email else None,
        active=user.is_active,
        meta=_make_meta(user, "User", base),
    )


def group_resource(group: GroupRow, base: str, *, with_members: bool) -> Group:
    """Makes a group's resource. With members, their accounts must be fetched with the group."""
    members = [
        Member(value=str(membership.user_id), display=membership.user.username)
        for membership in (group.memberships.all() if with_members else ())
    ]
    return Group(
        id=str(group.pk),
        external_id=group.external_id,
        display_name=group.name,
        members=members or None,
        meta=_make_meta(group, "Group", base),
    )


def _make_meta(row: Any, kind: str, base: str) -> Meta:
    return Meta(resource_type=kind, created=row.created_at, location=f"{base}/{kind}s/{row.pk}")


def read_user(resource: User, before: User | None = None, *, is_patch: bool = False) -> AccountChanges:
    """Reads the values of an account from the resource. `before` shows which name has changed, if they differ.

    With `is_patch`, missing values were removed. The single stored name appears as `displayName` and as
    `name.formatted`: removing the first removes both, and without `name` it appears only as `displayName`.
    """
    parts = {
        key: value
        for key, value in (
            ("givenName", resource.name and resource.name.given_name),
            ("familyName", resource.name and resource.name.family_name),
        )
        if value
    }
    changes: AccountChanges = {
        "username": (resource.user_name or "").strip(),
        "name": "" if is_patch and _was_removed(resource, before) else _read_full_name(resource, before),
        "email": _read_address(resource),
        "external_id": resource.external_id,
        "scim_name": {} if is_patch and resource.name is None and resource.display_name else parts or None,
    }
    if resource.active is not None:
        changes["is_active"] = resource.active
    return changes


def _read_full_name(resource: User, before: User | None) -> str:
    """The display name, the formatted name, or its parts; a changed one takes precedence."""
    candidates = _list_names(resource)
    if before is not None:
        old = _list_names(before)
        changed = [new for new, was in zip(candidates, old, strict=True) if new != was and new]
        candidates = [*changed, *candidates]
    return next(filter(None, candidates), "")


def _was_removed(resource: User, before: User | None) -> bool:
    """Whether the display name was removed, and no other name was changed."""
    removed = before is not None and before.display_name and not resource.display_name
    return bool(removed) and resource.name in (None, before and before.name)


def _list_names(resource: User) -> list[str]:
    name = resource.name or Name()
    parts = " ".join(filter(None, (name.given_name, name.family_name)))
    return [resource.display_name or "", name.formatted or "", parts]


def _read_address(resource: User) -> str | None:
    """The primary address, else the one for work, else the first."""
    emails = [email for email in resource.emails or () if email.value]
    emails.sort(key=lambda email: (not email.primary, (email.type or "").lower() != WORK))
    return emails[0].value if emails else None


def read_members(value: Any) -> set[int]:
    """The ids in ``[{"value": "7"}]``. Raises ScimRefused."""
    members = value if isinstance(value, list) else [value]
    ids = set()
    for member in members:
        if isinstance(member, dict):  # attribute names are case-insensitive
            member = {name.lower(): inner for name, inner in member.items()}
            text, kind = member.get("value"), member.get("type")
        else:
            text, kind = getattr(member, "value", member), getattr(member, "type", None)
        if str(kind).lower() == "group":
            raise ScimRefused("Members are people: groups within groups are not supported.", "invalidValue")
        if not (isinstance(text, str) and is_id(text)):
            raise ScimRefused(f"{text!r:.100} is not the id of a user.", "invalidValue")
        ids.add(int(text))
    return ids


MEMBERS = "members"


def take_member_operations(operations: Iterable[PatchOperation[Any]]) -> tuple[MemberChanges, list[Any]]:
    """Splits operations into changes of members and others. Raises ScimRefused."""
    changes, others = MemberChanges(), list[Any]()
    for operation in operations:
        if operation.path is None:
            others += _take_from_value(operation, changes)
        elif operation.path.attr.lower() == MEMBERS:
            _apply(operation.op.value, operation.path.value_filter, operation.value, changes)
        else:
            others.append(operation)
    return changes, others


def _take_from_value(operation: PatchOperation[Any], changes: MemberChanges) -> Iterator[Any]:
    """An operation without a path has an object whose members are attributes."""
    value = operation.value
    if not isinstance(value, Mapping):
        raise ScimRefused("An operation without a path needs an object as its value.", "invalidValue")
    rest = {}
    for name, inner in value.items():
        if name.lower() == MEMBERS:
            _apply(operation.op.value, None, inner, changes)
        else:
            rest[name] = inner
    if rest:
        yield operation.model_copy(update={"value": rest})


def _apply(kind: str, selected: FilterNode | None, value: Any, changes: MemberChanges) -> None:
    if selected is not None and kind != "remove":
        raise ScimRefused("Members can be added and removed, not changed.", "mutability")
    ids = read_members(value) if value is not None else None
    if selected is not None:
        changes.remove(set(_select(selected)))
    elif kind == "add":
        changes.add(ids or set())
    elif kind == "remove" and ids is not None:  # as sent by Entra
        changes.remove(ids)
    else:
        changes.replace(ids or set())


def _select(node: FilterNode) -> Iterator[int]:
    """The ids in ``value eq "7" or value eq "8"``."""
    if isinstance(node, LogicalExpr) and node.op is LogicalOperator.or_:
        for term in node.terms:
            yield from _select(term)
    elif (
        isinstance(node, Comparison)
        and node.op is CompareOperator.eq
        and node.attr_path.attr.lower() == "value"
    ):
        yield from read_members(node.value)
    else:
        raise ScimRefused(f"{node} does not select members by their value.", "invalidFilter")
