"""Condenses the recordings beside the checkout to the vectors in this folder.

``python -m tests.vectors.condense`` writes them again. Only what tests compare is kept: requests, statuses, and of
answers the compared members. Messages, headers and ids that only the recorded server knows are left out. The tests
read the vectors with ``tests.support.vectors.load``.
"""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.paths import SHARED
from tests.support.vectors import FOLDER, write_rows
from tests.vectors.setup_statements import step_of

RECORDINGS = SHARED / "vectors"


def read(path: str | Path) -> Any:
    data = (RECORDINGS / path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


class Table:
    """Numbers equal values, so that each is written once."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._numbers: dict[str, int] = {}

    def number(self, value: Any) -> int:
        text = json.dumps(value)
        if text not in self._numbers:
            self._numbers[text] = len(self.rows)
            self.rows.append(value)
        return self._numbers[text]


# Operators and variants ----------------------------------------------------------------------------------------


def operators() -> Any:
    """By kind of operator the values that were sent, and for each constraint a 1 or 0 for each of them."""
    matrix = read("operators.json.gz")["matrix"]
    values = {row["kind"]: list(row["results"]) for row in matrix}
    rows = [
        [row["kind"], row["constraint"], "".join(str(int(result)) for result in row["results"].values())]
        for row in matrix
    ]
    return {"values": values, "rows": rows}


def variant_order() -> Any:
    found = read("variant-order.json")
    mixes = [{"sent": mix["sent"], "stored": mix["stored"]} for mix in found["weights"]]
    return {"sorted": found["sorted"], "weights": mixes}


# SDKs and applications -----------------------------------------------------------------------------------------


def sdk() -> Any:
    found = read("sdk.json.gz")
    names = {secret: name for name, secret in found["tokens"].items()}
    etag = found["cases"][0]["response"]["headers"]["etag"]
    answers = Table()
    cases = []
    for case in found["cases"]:
        request, response = case["request"], case["response"]
        headers = {key: value.replace(etag, "{etag}") for key, value in request.get("headers", {}).items()}
        headers.pop("Content-Type", None)
        secret = headers.pop("Authorization", None)
        kept = {
            "name": case["name"],
            "method": request["method"],
            "path": request["path"],
            "token": names.get(secret, secret),
            "headers": headers,
            "status": response["status"],
        }
        if "body" in request:
            kept["body"] = request["body"]
        if response["status"] == 200 and isinstance(response.get("body"), dict):
            kept["answer"] = answers.number(
                response["body"] | {key: None for key in ("meta",) if key in response["body"]}
            )
        cases.append(kept)
    return {"answers": answers.rows, "cases": cases}


def applications() -> Any:
    found = read("applications.json")
    names = {secret: name for name, secret in found["tokens"].items()} | {
        "*:*.unleash-admin-secret": "admin", None: None,
    }  # fmt: skip
    reports = [
        {
            "path": step["request"]["path"],
            "token": names[step["request"]["headers"].get("Authorization")],
            "body": step["request"]["body"],
        }
        for step in found["setup"]
        if step.get("request", {}).get("path", "").startswith("/api/client/")
    ]
    records = Table()
    cases = []
    for case in found["cases"]:
        response = case["response"]
        kept = {
            "name": case["name"],
            "method": case["request"]["method"],
            "path": case["request"]["path"],
            "status": response["status"],
        }
        if response["status"] == 200 and "applications" in response.get("body", ()):
            kept["total"] = response["body"]["total"]
            kept["applications"] = [records.number(record) for record in response["body"]["applications"]]
        cases.append(kept)
    return {"reports": reports, "records": records.rows, "cases": cases}


# The playground ------------------------------------------------------------------------------------------------

# What depends on the context: everything else of an answer is the same for each case.
RESULTS = {"isEnabled", "isEnabledInCurrentEnvironment", "hasUnsatisfiedDependency", "variant", "result"}


def split(value: Any, results: list[Any]) -> Any:
    """The value with its results taken out, which are added to the list in their order."""
    if isinstance(value, dict):
        parts = {}
        for key, inner in sorted(value.items()):
            if key in RESULTS:
                results.append(inner)
                parts[key] = None
            else:
                parts[key] = split(inner, results)
        return parts
    return [split(inner, results) for inner in value] if isinstance(value, list) else value


def playground() -> Iterator[tuple[str, Iterator[Any]]]:
    """The generated states by name. Those of the client specification stay outside."""
    for path in sorted((RECORDINGS / "playground").glob("*.json.gz")):
        name = path.name.removesuffix(".json.gz")
        if not name.startswith("spec-"):
            yield name, playground_state(name, read(path))


def playground_state(name: str, found: Any) -> Iterator[Any]:
    shapes, results = Table(), Table()
    cases = []
    for case in found["cases"]:
        answer = case.get("exact", case)
        if answer["status"] != 200:
            continue
        unstable = {*found.get("unstableFlags", []), *answer["unstable"]}
        flags = []
        for feature in answer["response"]["features"]:
            if feature["name"] not in unstable:
                taken: list[Any] = []
                flags.append([shapes.number(split(feature, taken)), results.number(taken)])
        request = case["request"]
        cases.append({"context": request["context"], "environment": request["environment"], "flags": flags})
    place = {key: found[key] for key in ("project", "environment")}
    yield {"state": name, "made_by_api": found.get("loadedVia") == "api"} | place
    yield from (
        {"feature": feature} for feature in found["exactState"]["features"] if not feature.get("archived")
    )
    yield from ({"segment": segment} for segment in found["exactState"]["segments"])
    yield from ({"shape": shape} for shape in shapes.rows)
    yield from ({"results": row} for row in results.rows)
    yield from ({"case": case} for case in cases)


# Imports -------------------------------------------------------------------------------------------------------

READS = re.compile(
    r"/api/admin/projects/[^/]+/features(\?.*)?$|/api/admin/projects/[^/]+/features/[^/]+$"
    r"|/api/admin/features/[^/]+/tags$|/api/admin/search/features"
)
BY_NAME = ("context:", "tag-type:", "tags:", "feature:", "export")
CHANCE = {"id", "createdAt", "archivedAt", "imageUrl", "lastSeenAt"}
NOT_COMPARED = {"changeRequestIds", "createdBy", "collaborators", "lifecycle", "color"}


def imports() -> Iterator[Any]:
    return (import_case(path) for path in sorted((RECORDINGS / "import").glob("[0-9]*.json")))


def import_case(path: Path) -> Any:
    found = read(path)
    request, response = found["request"], found["response"]
    if "body_template" in request:
        request = {key: value for key, value in request.items() if key != "body"}
    kept: dict[str, Any] = {"status": response["status"]}
    body = response["body"]
    if response["status"] == 200:
        kept["body"] = body
    elif isinstance(body, dict) and "name" in body:
        kept["error"] = body["name"]
    return {
        "name": path.stem,
        "after_setup_of": found.get("depends_on", []),
        "setup": [step for given in found["setup"] if (step := step_of(given))],
        "request": request,
        "response": kept,
        "after": {name: read_kept(look) for name, look in found["after"].items() if is_compared(name, look)},
    }


def is_compared(name: str, look: Any) -> bool:
    by_name = name.startswith(BY_NAME) and look.get("status") == 200
    return by_name or bool(READS.match(look.get("path", "")))


def read_kept(look: Any) -> Any:
    kept = {key: look[key] for key in ("path", "status", "request_body") if key in look}
    if look.get("status") == 200:
        kept["body"] = without_chance(look["body"]) if READS.match(look["path"]) else look["body"]
    return kept


def without_chance(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "…" if key in CHANCE and inner else without_chance(inner)
            for key, inner in value.items()
            if key not in NOT_COMPARED
        }
    return [without_chance(inner) for inner in value] if isinstance(value, list) else value


# Writing -------------------------------------------------------------------------------------------------------


def lines(value: Any, depth: int = 2) -> str:
    """JSON with a line for each row of each list at the top."""
    if depth and isinstance(value, dict):
        return "{" + ",\n".join(f"{json.dumps(k)}: {lines(v, depth - 1)}" for k, v in value.items()) + "}"
    if depth and isinstance(value, list):
        return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in value) + "\n]"
    return json.dumps(value, ensure_ascii=False)


PLAIN: dict[str, Callable[[], Any]] = {
    "operators": operators, "variant_order": variant_order, "sdk": sdk, "applications": applications,
}  # fmt: skip


def write(folder: Path) -> None:
    (folder / "playground").mkdir(exist_ok=True)
    for name, make in PLAIN.items():
        (folder / f"{name}.json").write_text(lines(make()) + "\n")
    write_rows(folder / "imports.jsonl", imports(), sort_keys=True)
    for name, state in playground():
        write_rows(folder / "playground" / f"{name}.jsonl", state, sort_keys=True)


if __name__ == "__main__":
    write(FOLDER)
