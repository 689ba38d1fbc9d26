"""The examples for GitHub Actions and GitLab CI in a clone of a repository: their steps are run in a shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.documentation.blocks import blocks
from tests.importer.diff.planted import NAME, as_code
from tests.support.paths import ROOT

pytestmark = pytest.mark.processes
PAGE = "docs/how-to/check-a-pull-request.md"
GITHUB, GITLAB = (yaml.safe_load(b.text) for b in blocks(PAGE) if b.language == "yaml")


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    command = ["git", *named, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """flagadmin as it is here, a pip that does nothing, and a gh that prints the comment."""
    folder = tmp_path / "bin"
    folder.mkdir()
    flagadmin = f'PYTHONPATH={ROOT} FLAGADMIN_DATA_DIR={tmp_path} exec {sys.executable} -m flagadmin "$@"'
    for name, text in {"pip": "exit 0", "flagadmin": flagadmin, "gh": 'echo "$@"; cat comment.md'}.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize(("percent", "status"), [(10, 0), (100, 1)])
@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_the_example_comments_and_refuses(
    tmp_path: Path, programs: Path, service: str, percent: int, status: int
) -> None:
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    origin.mkdir()
    git(origin, "init")
    as_code(origin / "flags", 5)
    git(origin, "add", ".")
    git(origin, "commit", "--message", "Begin")
    git(tmp_path, "clone", str(origin), str(clone))
    base = git(clone, "rev-parse", "HEAD")
    as_code(clone / "flags", percent)
    steps = [step["run"] for step in GITHUB["jobs"]["diff"]["steps"] if "run" in step]
    script = "\n".join(steps if service == "github" else GITLAB["diff"]["script"])
    variables = {"GITHUB_BASE_REF": "main", "NUMBER": "7", "CI_MERGE_REQUEST_DIFF_BASE_SHA": base}
    environment = variables | {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    done = subprocess.run(
        ["bash", "-ec", script], cwd=clone, env=environment, check=False, capture_output=True, text=True
    )

    assert done.returncode == status, done.stdout + done.stderr
    assert f"rollout: 5 → {percent}" in (clone / "comment.md").read_text()
    if service == "github":
        assert "pr comment 7 --body-file comment.md --edit-last --create-if-none\n## Flags" in done.stdout
    if status:
        assert f"{NAME} in production changes for" in done.stderr
