"""A plan in the words of the reference's validate: ``errors``, ``warnings``, ``permissions``."""

from collections.abc import Iterator
from typing import Any

from importer.plan.import_plan import Action
from importer.plan.issues import Finding, Kind
from importer.plan.build import Plan

Entry = dict[str, Any]
"""``{message, affectedItems}``"""

MOST_ITEMS = 5_000
"""Listed of one kind."""


def validation_report(plan: Plan) -> dict[str, list[Entry]]:
    """Green (no errors, no permissions) exactly when the import of this body would succeed now."""
    return {
        "errors": list(_errors(plan)),
        "warnings": list(_warnings(plan)),
        "permissions": list(_permissions(plan)),
    }


def _entry(message: str, items: list[str]) -> Entry:
    if len(items) > MOST_ITEMS:
        items = [*items[:MOST_ITEMS], f"and {len(items) - MOST_ITEMS} more"]
    return {"message": message, "affectedItems": items}


# Errors ----------------------------------------------------------------------------------------------------


def _errors(plan: Plan) -> Iterator[Entry]:
    by_kind: dict[Kind, list[Finding]] = {kind: [] for kind in Kind}
    for finding in plan.findings:
        by_kind[finding.kind].append(finding)
    for kind in _ORDER:
        findings = by_kind[kind]
        if not findings:
            continue
        if kind is Kind.FLAG_LIMIT:
            yield from (_entry(finding.message, []) for finding in findings)
        else:
            yield _entry(_message(kind, plan), _items(kind, findings))
    yield from _target_errors(plan, by_kind[Kind.VALUE])


def _target_errors(plan: Plan, findings: list[Finding]) -> Iterator[Entry]:
    """A wrong target is one sentence; wrong values are listed with their places."""
    if plan.target is None:
        yield from (_entry(finding.message, []) for finding in findings)
    elif findings:
        items = [
            f"{problem.path}: {problem.message}" for problem in (finding.problem() for finding in findings)
        ]
        yield _entry("These values cannot be imported:", items)


_ORDER = (
    Kind.STRATEGY_TYPE,
    Kind.CONTEXT_FIELD,
    Kind.OTHER_PROJECT,
    Kind.DUPLICATE,
    Kind.PATTERN,
    Kind.FLAG_LIMIT,
    Kind.SEGMENT,
    Kind.DEPENDENCY,
)
_MESSAGES = {
    Kind.STRATEGY_TYPE: "We detected the following custom strategy that needs to be created first:",
    Kind.CONTEXT_FIELD: "We detected the following context fields that do not have matching legal values with the "
    "imported ones:",
    Kind.DUPLICATE: "We detected the following features are duplicate in your import data:",
    Kind.SEGMENT: "We detected the following segments that need to be created first:",
    Kind.DEPENDENCY: "We detected the following dependencies that need to be created first:",
}


def _message(kind: Kind, plan: Plan) -> str:
    if kind is Kind.OTHER_PROJECT:
        return (
            "You cannot import a features that already exist in other projects. You already have the following "
            f"features defined outside of project {plan.body.project}:"
        )
    if kind is Kind.PATTERN:
        return _pattern_message(plan)
    return _MESSAGES[kind]


def _pattern_message(plan: Plan) -> str:
    assert plan.target is not None
    project = plan.target.project
    parts = [
        "Features imported into this project must match the project's feature naming pattern: "
        f'"{project.naming_pattern}".'
    ]
    if project.naming_example:
        parts.append(f'For example: "{project.naming_example}".')
    if project.naming_description:
        parts.append(f'The pattern is described as follows: "{project.naming_description}"')
    return " ".join([*parts, "The following features do not match the pattern:"])


def _items(kind: Kind, findings: list[Finding]) -> list[str]:
    """One item a strategy, as the reference lists them; other kinds list every name once."""
    items = [finding.item or finding.message for finding in findings]
    if kind is Kind.STRATEGY_TYPE:
        return items
    return sorted(set(items)) if kind is Kind.PATTERN else list(dict.fromkeys(items))


# Warnings and permissions ----------------------------------------------------------------------------------


def _warnings(plan: Plan) -> Iterator[Entry]:
    listed = (
        (
            "The following strategy types will be used in import. Please make sure the strategy type parameters are "
            "configured as in source environment:",
            _custom_types(plan),
        ),
        (
            "The following features will not be imported as they are currently archived. To import them, please "
            "unarchive them first:",
            [flag.name for flag in plan.with_action(Action.SKIP)],
        ),
        (
            "The following features already exist in this project and will be overwritten:",
            [
                flag.name
                for flag in plan.flags.values()
                if flag.before is not None and flag.feature is not None
            ],
        ),
        (
            "The following features are on and have no strategy that is on. They get the default strategy:",
            plan.defaulted,
        ),
    )
    yield from (_entry(message, items) for message, items in listed if items)
    if plan.notes:
        yield _entry("Please note:", plan.notes)


def _custom_types(plan: Plan) -> list[str]:
    if plan.words is None:
        return []
    used = {strategy["name"] for strategy in plan.body.data["featureStrategies"]}
    return sorted(used & plan.words.custom_types)


def _permissions(plan: Plan) -> Iterator[Entry]:
    if plan.missing:
        items = [permission.display for permission in plan.missing]
        yield _entry("We detected you are missing the following permissions:", items)
