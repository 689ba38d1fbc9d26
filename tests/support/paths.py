"""Paths of test data outside this repository."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("FLAGADMIN_SHARED") or ROOT.parent / "shared")
