"""Paths of this repository, its source files, and the recordings beside the checkout."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("FLAGADMIN_SHARED") or ROOT.parent / "shared")
APPS = (
    "flagadmin",
    "groups",
    "projects",
    "playground",
    "releases",
    "sdk",
    "relay",
    "importer",
    "integrations",
)


def sources() -> list[Path]:
    """Every Python file of the product."""
    return [path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))]
