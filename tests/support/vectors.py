"""Loads recorded test data from ``tests/vectors/``."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT

FOLDER = ROOT / "tests" / "vectors"


@cache
def load(name: str) -> Any:
    """The data that ``tests.vectors.condense`` wrote under this name; of JSON lines a list.

    Read-only: all callers share the object.
    """
    path = FOLDER / f"{name}.jsonl"
    if path.exists():
        return read_rows(path)
    return json.loads((FOLDER / f"{name}.json").read_text())


def read_rows(path: Path) -> list[Any]:
    """JSON lines. They end with a line feed only: other line separators may be part of a string."""
    return [json.loads(row) for row in path.read_text().rstrip("\n").split("\n")]


def write_rows(path: Path, rows: Iterable[Any], *, sort_keys: bool = False) -> None:
    lines = (json.dumps(row, ensure_ascii=False, sort_keys=sort_keys) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines))
