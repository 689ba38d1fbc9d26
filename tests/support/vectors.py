"""Facts that were recorded elsewhere, kept in ``tests/vectors/`` in a compact form of our own."""

import gzip
import json
from functools import cache
from typing import Any

from tests.support.paths import ROOT

FOLDER = ROOT / "tests" / "vectors"


@cache
def load(name: str) -> Any:
    """What ``tests.vectors.condense`` wrote under this name. Not to be changed: every caller gets the same object."""
    packed = FOLDER / f"{name}.json.gz"
    if packed.exists():
        return json.loads(gzip.decompress(packed.read_bytes()))
    return json.loads((FOLDER / f"{name}.json").read_text())
