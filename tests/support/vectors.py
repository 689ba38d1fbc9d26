"""Loads recorded test data from ``tests/vectors/``."""

import gzip
import json
from functools import cache
from typing import Any

from tests.support.paths import ROOT

FOLDER = ROOT / "tests" / "vectors"


@cache
def load(name: str) -> Any:
    """The data that ``tests.vectors.condense`` wrote under this name.

    Read-only: all callers share the object.
    """
    packed = FOLDER / f"{name}.json.gz"
    if packed.exists():
        return json.loads(gzip.decompress(packed.read_bytes()))
    return json.loads((FOLDER / f"{name}.json").read_text())
