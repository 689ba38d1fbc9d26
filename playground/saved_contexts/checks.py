"""Requests to check expectations, and the results as JSON, as a table and as JUnit XML."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NotRequired, TypedDict
from xml.etree import ElementTree

from django.utils import timezone

from flagadmin.core.errors import check_problems, pluralize
from groups.access import Caller
from playground.comparison.compare import Result
from playground.comparison.documents import ResultDocument, make_result_document
from playground.comparison.states import Scope, compile_states, read_state
from playground.models import SavedContext
from playground.queries import find_project_problems
from playground.saved_contexts.expectations import (
    ChangedExpectation,
    Checked,
    Expectation,
    check_against,
    check_expectations,
    check_number,
    list_expectations,
)
from playground.saved_contexts.queries import get_named_contexts
from projects.access import environment_problems
from projects.revision import read_revisions, read_revisions_and_environments


def choose_expectations(
    caller: Caller,
    body: Mapping[str, Any],
    *,
    among: Sequence[SavedContext] | None = None,
    planned: Mapping[str, str] | None = None,
) -> list[Expectation]:
    """Selects the expectations of the given `projects`, `environments` (that of `asIf`, if given) and `contexts`.

    With `among`, only expectations of these saved contexts, including those about `planned` flags, which do not exist
    yet: their projects by name. Raises ValidationError for unknown names.
    """
    projects, environments = body.get("projects"), body.get("environments")
    current, known = read_revisions_and_environments(
        caller.readable_projects if projects is None else projects
    )
    places = {f"environments[{index}]": name for index, name in enumerate(environments or ())}
    if state := body.get("asIf"):
        environments = [state["environment"]]
        places = {"asIf.environment": state["environment"]}
    check_problems([*find_project_problems(caller, projects, current), *environment_problems(places, known)])
    contexts = get_named_contexts(caller, body["contexts"], "contexts") if "contexts" in body else among
    return list_expectations(
        caller, projects=projects, environments=environments, contexts=contexts, planned=planned
    )


def check_request(caller: Caller, body: Mapping[str, Any]) -> list[Checked]:
    """Checks the expectations selected in a validated body. Raises ValidationError."""
    state = body.get("asIf")
    if state is None:
        return check_expectations(caller, choose_expectations(caller, body))
    expectations = choose_expectations(caller, body)
    check_number(expectations)
    current = read_revisions(caller.readable_projects)
    as_if = read_state(caller, state, "asIf").within(Scope(current), "asIf")
    [snapshot] = compile_states(current, [as_if])
    return check_against(expectations, {snapshot.environment: snapshot}, now=timezone.now())


MAX_LISTED = 1_000
"""The limit in an answer on broken expectations, and on those met again."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class ExpectationDocument(TypedDict):
    savedContext: str
    project: str
    flag: str
    environment: str
    enabled: bool
    variant: str | None
    payload: NotRequired[Mapping[str, str]]
    enforcedIn: str | None


class CheckedDocument(ExpectationDocument, ResultDocument):
    met: bool


class ChangedDocument(ExpectationDocument):
    """An expectation with the flag's results before and after a change, and the reasons."""

    before: ResultDocument
    after: ResultDocument


class CheckDocument(TypedDict):
    checked: int
    failed: int
    expectations: list[CheckedDocument]


class ChangesDocument(TypedDict):
    """Expectations that are met only before a change, and those met only after it."""

    broken: list[ChangedDocument]
    met: list[ChangedDocument]


def check_document(checked: Sequence[Checked]) -> CheckDocument:
    """The answer of the API."""
    return {
        "checked": len(checked),
        "failed": sum(not check.met for check in checked),
        "expectations": [
            {**_make_expectation_document(check.expectation), "met": check.met, **_make_result(check)}
            for check in checked
        ],
    }


def _make_expectation_document(expectation: Expectation) -> ExpectationDocument:
    document: ExpectationDocument = {
        "savedContext": expectation.saved.name,
        "project": expectation.project,
        "flag": expectation.flag,
        "environment": expectation.environment,
        "enabled": expectation.enabled,
        "variant": expectation.variant,
        "enforcedIn": expectation.enforced_in,
    }
    return {**document, "payload": expectation.payload} if expectation.payload else document


def change_document(before: Checked, after: Checked) -> ChangedDocument:
    return {
        **_make_expectation_document(after.expectation),
        "before": _make_result(before),
        "after": _make_result(after),
    }


def make_changes_document(changed: Sequence[ChangedExpectation]) -> ChangesDocument:
    """A document of the broken expectations and of those met again, the first of each."""
    broken = [change_document(*change) for change in changed if change.is_broken]
    met = [change_document(*change) for change in changed if not change.is_broken]
    return {"broken": broken[:MAX_LISTED], "met": met[:MAX_LISTED]}


def _make_result(check: Checked) -> ResultDocument:
    return make_result_document(Result(check.shares, check.reason))


def summarize(checked: Sequence[Checked]) -> str:
    """`2 of 5 expectations are not met`."""
    failed = sum(not check.met for check in checked)
    if not checked:
        return "There are no expectations"
    if not failed:
        return f"{pluralize(len(checked), 'expectation')} met"
    verb = "is" if failed == 1 else "are"
    return f"{failed:,} of {pluralize(len(checked), 'expectation')} {verb} not met"


def list_lines(checked: Sequence[Checked]) -> Iterator[str]:
    """A line for each expectation, unmet ones first, with a line for the reason."""
    rows = sorted(checked, key=lambda check: check.met)
    cells = [
        (
            "ok" if check.met else "FAIL",
            check.expectation.environment,
            check.expectation.flag,
            check.expectation.saved.name,
            f"expected {check.expectation.words}",
        )
        for check in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for check, row in zip(rows, cells, strict=True):
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        if not check.met:
            yield f"      is {check.actual}: {check.reason}"


def write_junit(checked: Sequence[Checked]) -> bytes:
    """A test suite for each environment, with a test case for each expectation."""
    suites = ElementTree.Element("testsuites", _count(checked) | {"name": "expectations"})
    for environment in sorted({check.expectation.environment for check in checked}):
        in_environment = [check for check in checked if check.expectation.environment == environment]
        suite = ElementTree.SubElement(
            suites, "testsuite", _count(in_environment) | {"name": _clean_xml(environment)}
        )
        for check in in_environment:
            expectation = check.expectation
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=_clean_xml(f"{expectation.project}.{expectation.flag}"),
                name=_clean_xml(f"{expectation.saved.name}: {expectation.flag} is {expectation.words}"),
            )
            if not check.met:
                failure = ElementTree.SubElement(case, "failure", message=_clean_xml(check.sentence))
                failure.text = _clean_xml(check.reason)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


def _count(checked: Sequence[Checked]) -> dict[str, str]:
    failed = sum(not check.met for check in checked)
    return {"tests": str(len(checked)), "failures": str(failed), "errors": "0"}


def _clean_xml(text: str) -> str:
    """The text without characters that XML does not allow."""
    return _NOT_IN_XML.sub("\ufffd", text)
