"""Checked expectations as JSON, as a table and as JUnit XML."""

import re
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from flagadmin.core.errors import counted
from playground.comparison.payloads import answer_document
from playground.saved_contexts.changed import ChangedExpectation
from playground.saved_contexts.expectations import Checked

MAX_LISTED = 1_000
"""Expectations that break, and as many that are met again, in an answer."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def check_document(checked: Sequence[Checked]) -> dict[str, Any]:
    """The answer of the API."""
    return {
        "checked": len(checked),
        "failed": sum(not one.met for one in checked),
        "expectations": [_document(one) for one in checked],
    }


def _document(one: Checked) -> dict[str, Any]:
    expectation = one.expectation
    return {
        "savedContext": expectation.saved.name,
        "project": expectation.project,
        **expectation.document,
        "enforcedIn": expectation.enforced_in,
        "met": one.met,
        **_result(one),
    }


def change_document(before: Checked, after: Checked) -> dict[str, Any]:
    """An expectation with what the flag gives before and after a change, and why."""
    document = _document(after)
    own = {name: value for name, value in document.items() if name not in ("met", "results", "reason")}
    return own | {"before": _result(before), "after": _result(after)}


def changes_document(changed: Sequence[ChangedExpectation]) -> dict[str, Any]:
    """Those of the expectations that break, and those that are met again, the first of each."""
    broken = [change_document(*one) for one in changed if one.is_broken]
    met = [change_document(*one) for one in changed if not one.is_broken]
    return {"broken": broken[:MAX_LISTED], "met": met[:MAX_LISTED]}


def _result(one: Checked) -> dict[str, Any]:
    return {
        "results": [answer_document(answer) | {"share": float(share)} for answer, share in one.shares],
        "reason": one.reason,
    }


def summary(checked: Sequence[Checked]) -> str:
    """`2 of 5 expectations are not met`."""
    failed = sum(not one.met for one in checked)
    if not checked:
        return "There are no expectations"
    if not failed:
        return f"{counted(len(checked), 'expectation')} met"
    verb = "is" if failed == 1 else "are"
    return f"{failed:,} of {counted(len(checked), 'expectation')} {verb} not met"


def table(checked: Sequence[Checked]) -> Iterator[str]:
    """A line for each expectation, those not met first, with a line that says why."""
    rows = sorted(checked, key=lambda one: one.met)
    cells = [
        (
            "ok" if one.met else "FAIL",
            one.expectation.environment,
            one.expectation.flag,
            one.expectation.saved.name,
            f"expected {one.expectation.words}",
        )
        for one in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for one, row in zip(rows, cells, strict=True):
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        if not one.met:
            yield f"      is {one.actual}: {one.reason}"


def junit(checked: Sequence[Checked]) -> bytes:
    """A test suite for each environment, with a test case for each expectation."""
    suites = ElementTree.Element("testsuites", _counts(checked) | {"name": "expectations"})
    for environment in sorted({one.expectation.environment for one in checked}):
        found = [one for one in checked if one.expectation.environment == environment]
        suite = ElementTree.SubElement(suites, "testsuite", _counts(found) | {"name": _xml(environment)})
        for one in found:
            expectation = one.expectation
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=_xml(f"{expectation.project}.{expectation.flag}"),
                name=_xml(f"{expectation.saved.name}: {expectation.flag} is {expectation.words}"),
            )
            if not one.met:
                failure = ElementTree.SubElement(case, "failure", message=_xml(one.sentence))
                failure.text = _xml(one.reason)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


def _counts(checked: Sequence[Checked]) -> dict[str, str]:
    failed = sum(not one.met for one in checked)
    return {"tests": str(len(checked)), "failures": str(failed), "errors": "0"}


def _xml(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", text)
