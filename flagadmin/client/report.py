"""Plans as text, as Markdown for pull requests, and as JUnit's XML. Names and values are data: characters that could
act as markup or move a terminal's cursor are replaced.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree

from flagadmin.client.files import Document
from flagadmin.client.server import Problem

SIGNS = {"create": "+", "change": "~", "archive": "-"}
# The same texts as in `playground.comparison.compare.Change`, which the client does not load.
KINDS = {
    "offToOn": "off → on",
    "onToOff": "on → off",
    "variant": "another variant",
    "payload": "another payload",
    "share": "another share of calls",
    "unknown": "only an SDK can tell",
}
MAX_LINES = 1_000
MAX_FLAGS = 20
MAX_VALUE = 500  # characters
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def drop_controls(text: str) -> str:
    return _CONTROL.sub(" ", text)


def format_code(text: str) -> str:
    return "`" + drop_controls(text).replace("`", "'").replace("|", "\\|") + "`"


def name_subject(line: Document) -> str:
    where = ", ".join(filter(None, (line.get("project"), line.get("environment"))))
    return f"{line['kind']} {line['name']}" + (f" in {where}" if where else "")


def list_details(line: Document) -> list[str]:
    if "summary" in line:
        return [line["summary"][:MAX_VALUE]]
    return [_change(change) for change in line.get("changes", ())]


def _change(change: Document) -> str:
    before, after = (
        value[:MAX_VALUE] if isinstance(value := change.get(side), str) else value
        for side in ("before", "after")
    )
    if before is None:
        return f"{change['part']}: + {after}"
    return f"{change['part']}: − {before}" if after is None else f"{change['part']}: {before} → {after}"


def describe_who_changes(entry: Document) -> str:
    kinds = ", ".join(f"{number:,} {KINDS.get(kind, kind)}" for kind, number in entry["counts"].items())
    place_name = " / ".join(filter(None, (entry["project"], entry["environment"]))) or "All flags"
    people = entry.get("people", "generated users")
    changed = f"{place_name}: {entry['changed']:,} of {entry['users']:,} {people} change"
    contexts = entry["savedContexts"]
    saved = f"; saved contexts that change: {', '.join(contexts)}" if contexts else ""
    if entry["compared"] < entry["differing"]:
        saved += f" (of the first {entry['compared']:,} flags of {entry['differing']:,})"
    broken, unmeasured = entry["brokenExpectations"], entry.get("unmeasured") or ()
    return (
        changed
        + (f": {kinds}" if kinds else "")
        + saved
        + (f"; {broken} expectations break" if broken else "")
        + (f"; cannot be measured: {unmeasured[0]}" if unmeasured else "")
    )


def describe_request(entry: Document, *, is_plan: bool) -> str:
    where, number = f"{entry['project']} / {entry['environment']}", len(entry["changes"])
    what = "1 change" if number == 1 else f"{number} changes"
    if not entry["isNew"]:
        return f"Change request {entry['id']} for {where} waits already ({entry['state']}): {what}"
    if is_plan:
        return f"A change request will be made for {where}: {what}"
    return f"Change request {entry['id']} for {where} was made ({entry['state']}): {what}"


def write_text(answer: Document, missing: Sequence[tuple[str, str]], *, is_plan: bool) -> Iterator[str]:
    for line in answer["changes"][:MAX_LINES]:
        yield f"{SIGNS[line['action']]} {name_subject(line)}"
        yield from (f"    {detail}" for detail in list_details(line))
    if (more := len(answer["changes"]) - MAX_LINES) > 0:
        yield f"… and {more:,} more"
    for entry in answer["changeRequests"]:
        yield describe_request(entry, is_plan=is_plan)
    for comparison in answer["whoChanges"]:
        yield describe_who_changes(comparison)
        for flag in comparison["flags"][:MAX_FLAGS]:
            yield f"    {flag['name']}: {flag['changed']:,}"
    yield from (f"Note: {note}" for note in answer["notes"][:MAX_LINES])
    yield from write_missing(missing)


def write_missing(missing: Sequence[tuple[str, str]]) -> Iterator[str]:
    if missing:
        named = ", ".join(name for _, name in missing[:20]) + (" …" if len(missing) > 20 else "")
        yield f"Not in the directory, and left alone ({len(missing):,}): {named}. --archive-missing archives them."


def write_markdown(answer: Document, missing: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield "## Flags"
    if not answer["changes"] and not answer["changeRequests"]:
        yield "\nNothing to do."
    else:
        yield "\n| | What | Where | Change |\n|---|---|---|---|"
    for line in answer["changes"][:MAX_LINES]:
        where = ", ".join(filter(None, (line.get("project"), line.get("environment"))))
        changes = "<br>".join(format_code(detail) for detail in list_details(line))
        scope = format_code(where) if where else ""
        yield f"| {line['action']} | {line['kind']} {format_code(line['name'])} | {scope} | {changes} |"
    for entry in answer["changeRequests"]:
        yield f"\n- {format_code(describe_request(entry, is_plan=True))}"
    if answer["whoChanges"]:
        yield "\n### Who changes\n"
    for comparison in answer["whoChanges"]:
        yield f"- {format_code(describe_who_changes(comparison))}"
        for flag in comparison["flags"][:MAX_FLAGS]:
            yield f"  - {format_code(flag['name'])}: {flag['changed']:,}"
    yield from (
        f"\n> {format_code(note)}" for note in (*answer["notes"][:MAX_LINES], *write_missing(missing))
    )


def write_junit(answer: Document | None, problems: Iterable[Problem]) -> str:
    """Each change is a failure, so that a scheduled plan shows drift; each problem of a file is an error."""
    suite = ElementTree.Element("testsuite", name="flags as code")
    failures, errors = 0, 0
    for line in (answer or {}).get("changes", ()):
        case = ElementTree.SubElement(
            suite, "testcase", classname=drop_controls(line["kind"]), name=drop_controls(name_subject(line))
        )
        failure = ElementTree.SubElement(case, "failure", message=drop_controls(line["action"]))
        failure.text = drop_controls("; ".join(list_details(line)))
        failures += 1
    for problem in problems:
        location = {"file": str(problem.file), "line": str(problem.line)}
        named = {"classname": "file", "name": drop_controls(str(problem.file))}
        case = ElementTree.SubElement(suite, "testcase", named | location)
        ElementTree.SubElement(case, "error", message=drop_controls(str(problem)))
        errors += 1
    if not failures + errors:
        ElementTree.SubElement(suite, "testcase", classname="plan", name="nothing to do")
    suite.attrib |= {"tests": str(failures + errors or 1), "failures": str(failures), "errors": str(errors)}
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)
