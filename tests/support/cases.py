"""Cases of the engine: flags, contexts, and the results that SDKs give. They are in ``tests/vectors/engine``.

A file is about one rule, with a line for each flag, segment and case. In a flag, the type "release" and ``enabled`` may
be left out. ``stored`` says what the API does with a flag it does not store as it is: refuse or change it, and why.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from yggdrasil_engine.engine import UnleashEngine

from playground.engine.snapshot import Snapshot
from tests.support.engine import compiled, evaluated, is_enabled, variant
from tests.support.vectors import FOLDER, read_rows


class Case(NamedTuple):
    """What a flag is in a context. None is not said."""

    flag: str
    context: Mapping[str, Any]
    enabled: bool | None
    variant: str | None


class CaseFile(NamedTuple):
    """Flags and segments, as an SDK gets them, and the cases about them."""

    name: str
    state: dict[str, Any]
    cases: list[Case]
    stored: dict[str, str]


def case_files() -> list[CaseFile]:
    return [read(path) for path in sorted((FOLDER / "engine").glob("*.jsonl"))]


def read(path: Path) -> CaseFile:
    lines = read_rows(path)
    return CaseFile(
        name=path.stem,
        state=state_of(lines),
        cases=[
            Case(line["case"], line["context"], line["enabled"], line["variant"])
            for line in lines
            if "case" in line
        ],
        stored={line["flag"]["name"]: line["stored"] for line in lines if "stored" in line},
    )


def state_of(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The flags and segments of a file, as an SDK gets them."""
    return {
        "version": 2,
        "features": [{"type": "release", "enabled": True} | line["flag"] for line in lines if "flag" in line],
        "segments": [line["segment"] for line in lines if "segment" in line],
    }


Result = tuple[bool, str]
"""What SDKs' isEnabled and getVariant answer: "disabled" is no variant."""


def differing(cases: Iterable[Case], results: Iterable[Result]) -> list[tuple[Case, Result]]:
    """The cases whose results are others than expected."""
    return [
        (case, result)
        for case, result in zip(cases, results, strict=True)
        if case.enabled not in (None, result[0]) or case.variant not in (None, result[1])
    ]


def our_results(file: CaseFile) -> Iterator[Result]:
    snapshot = compiled(file.state)
    return (our_result(snapshot, case) for case in file.cases)


def our_result(snapshot: Snapshot, case: Case) -> Result:
    evaluation = evaluated(snapshot, case.context)
    return is_enabled(evaluation, case.flag), variant(evaluation, case.flag)


def sdk_results(state: Mapping[str, Any], cases: Iterable[Case]) -> Iterator[Result]:
    """The results of Yggdrasil, the engine of the SDKs."""
    engine = UnleashEngine()
    engine.take_state(json.dumps(state))
    for case in cases:
        sdk_variant = engine._do_get_variant(case.flag, case.context)
        yield (
            bool(engine._do_is_enabled(case.flag, case.context)),
            sdk_variant.name if sdk_variant else "disabled",
        )
