"""SCIM filters as query conditions."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db.models import Q
from django.db.models.functions import Lower
from django.db.models.lookups import (
    Exact,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
)
from pydantic import TypeAdapter, ValidationError
from scim2_models import ScimFilter
from scim2_models.path import (
    AttrPath,
    CompareOperator,
    Comparison,
    FilterVisitor,
    LogicalExpr,
    LogicalOperator,
    Not,
    Present,
    ValuePath,
)

from flagadmin.core.http.fields import is_id
from groups.scim.actions import ScimRefused
from groups.scim.resources import WORK

NOTHING, EVERYTHING = Q(pk__in=[]), ~Q(pk__in=[])
_LOOKUPS = {
    CompareOperator.eq: "exact",
    CompareOperator.co: "contains",
    CompareOperator.sw: "startswith",
    CompareOperator.ew: "endswith",
    CompareOperator.gt: "gt",
    CompareOperator.ge: "gte",
    CompareOperator.lt: "lt",
    CompareOperator.le: "lte",
}
_TEXT = {CompareOperator.co, CompareOperator.sw, CompareOperator.ew}
_COMPARISONS: Mapping[CompareOperator, Any] = {
    CompareOperator.eq: Exact,
    CompareOperator.gt: GreaterThan,
    CompareOperator.ge: GreaterThanOrEqual,
    CompareOperator.lt: LessThan,
    CompareOperator.le: LessThanOrEqual,
}


class Column(NamedTuple):
    """The column of an attribute, and how it is compared."""

    name: str
    kind: type = str
    is_exact: bool = False
    other: str = ""
    """A second column, which may match instead."""


USER_COLUMNS = {
    "id": Column("pk", int),
    "externalid": Column("external_id", is_exact=True),
    "username": Column("username"),
    "displayname": Column("name"),
    "name.formatted": Column("name"),
    "emails": Column("email"),
    "emails.value": Column("email"),
    "active": Column("is_active", bool),
    "meta.created": Column("created_at", datetime),
}
BY_EMAIL = {"username": Column("username", other="email")}
"""Replaces the one in USER_COLUMNS if accounts are also found by their email address."""
GROUP_COLUMNS = {
    "id": Column("pk", int),
    "externalid": Column("external_id", is_exact=True),
    "displayname": Column("name"),
    "members": Column("memberships__user", int),
    "members.value": Column("memberships__user", int),
    "meta.created": Column("created_at", datetime),
}
_OF_EVERY_EMAIL = {"type": WORK, "primary": "true"}
"""Each account has one address, which counts as the primary one and as work."""
_READERS: dict[type, TypeAdapter[Any]] = {bool: TypeAdapter(bool), datetime: TypeAdapter(datetime)}


def make_condition(scim_filter: ScimFilter[Any], columns: Mapping[str, Column]) -> Q:
    """Raises ScimRefused for attributes that cannot be searched."""
    return _Conditions(columns).visit(scim_filter.ast)


class _Conditions(FilterVisitor[Q]):
    """``outer``: the attribute whose value is selected, such as emails in ``emails[type eq "work"]``."""

    def __init__(self, columns: Mapping[str, Column], outer: str = "") -> None:
        self._columns, self._outer = columns, outer

    def visit_comparison(self, node: Comparison) -> Q:
        if self._outer == "emails" and (value := _OF_EVERY_EMAIL.get(node.attr_path.attr.lower())):
            if node.op not in (CompareOperator.eq, CompareOperator.ne):
                raise ScimRefused(f"{node.attr_path} can be compared with eq and ne only.", "invalidFilter")
            is_equal = str(node.value).lower() == value
            return EVERYTHING if is_equal is (node.op is not CompareOperator.ne) else NOTHING
        column = self._find(node.attr_path)
        if node.op is CompareOperator.ne:
            return ~_compare(column, CompareOperator.eq, node.value)
        return _compare(column, node.op, node.value)

    def visit_present(self, node: Present) -> Q:
        column = self._find(node.attr_path)
        present = Q(**{f"{column.name}__isnull": False})
        return present & ~Q(**{column.name: ""}) if column.kind is str else present

    def visit_not(self, node: Not) -> Q:
        return ~self.visit(node.expr)

    def visit_logical_expr(self, node: LogicalExpr) -> Q:
        first, *others = (self.visit(term) for term in node.terms)
        for other in others:
            first = first & other if node.op is LogicalOperator.and_ else first | other
        return first

    def visit_value_path(self, node: ValuePath) -> Q:
        return _Conditions(self._columns, node.attr_path.attr.lower()).visit(node.val_filter)

    def _find(self, path: AttrPath) -> Column:
        name = ".".join(filter(None, (self._outer, path.attr, path.sub_attr))).lower()
        if name not in self._columns:
            raise ScimRefused(f"{path} cannot be searched for.", "invalidFilter")
        return self._columns[name]


def _compare(column: Column, operator: CompareOperator, value: Any) -> Q:
    if value is None:
        return Q(**{f"{column.name}__isnull": True}) if operator is CompareOperator.eq else NOTHING
    if column.kind is int:
        text = str(value)
        return Q(**{column.name: int(text)}) if is_id(text) and operator is CompareOperator.eq else NOTHING
    if not _can_be_stored(value):
        return NOTHING
    if column.other and operator is CompareOperator.eq:
        return _compare(Column(column.name), operator, value) | _compare(
            Column(column.other), operator, value
        )
    if column.kind is not str:
        return Q(**{f"{column.name}__{_LOOKUPS[operator]}": _read_value(column, value)})
    if column.is_exact:
        return Q(**{f"{column.name}__{_LOOKUPS[operator]}": value})
    if operator in _TEXT:
        return Q(**{f"{column.name}__i{_LOOKUPS[operator]}": value})
    # Lower case, to use the unique indexes: iexact compares upper case, without an index.
    comparison = Q(_COMPARISONS[operator](Lower(column.name), str(value).lower()))
    # Without a value it is false, not unknown, because `not` would leave it unknown.
    return comparison & Q(**{f"{column.name}__isnull": False})


def _read_value(column: Column, value: Any) -> Any:
    """A boolean may come as a text, as Entra sends it. Raises ScimRefused."""
    try:
        read = _READERS[column.kind].validate_python(value)
    except ValidationError:
        raise ScimRefused(f"{value!r:.100} is no value of this attribute.", "invalidFilter") from None
    return read.replace(tzinfo=UTC) if isinstance(read, datetime) and read.tzinfo is None else read


def _can_be_stored(value: Any) -> bool:
    """False for a text with NUL or a lone surrogate, which JSON in a filter can contain but the database cannot."""
    return not isinstance(value, str) or not (
        "\0" in value or any("\ud800" <= each <= "\udfff" for each in value)
    )
