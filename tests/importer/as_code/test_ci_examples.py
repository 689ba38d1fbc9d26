"""The examples for GitHub Actions and GitLab CI: their steps are run in a shell, as these services would."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from groups.access import Caller
from projects.flags.environments.actions import disable_flag
from projects.models import FlagEnvironment
from tests.documentation.blocks import blocks
from tests.support.as_code import FIELD, FLAG, SEGMENT, URL
from tests.support.cast import client, make_project, make_token
from tests.support.paths import ROOT
from tests.support.programs import program

pytestmark = pytest.mark.django_db(transaction=True)
GITHUB, GITLAB = (yaml.safe_load(b.text) for b in blocks("docs/flags-as-code.md") if b.language == "yaml")


def github(job: str, event: str) -> tuple[str, dict[str, str]]:
    """The job's steps as a script, and the variables that the service sets."""
    named = GITHUB["jobs"][job]
    assert (event == "push") == (named["if"] == "github.event_name == 'push'")
    steps = [step["run"] for step in named["steps"] if "run" in step]
    variables = {"GITHUB_EVENT_NAME": event, "GITHUB_REPOSITORY": "shop/flags", "GITHUB_SHA": "a1b2c3"}
    return "\n".join(f"bash -e <<'STEP'\n{step}\nSTEP" for step in steps), variables


def gitlab(job: str, event: str) -> tuple[str, dict[str, str]]:
    steps = [*GITLAB["default"]["before_script"], *GITLAB[job]["script"]]
    source = "merge_request_event" if event == "pull_request" else event
    return "\n".join(steps), {"CI_PIPELINE_SOURCE": source, "CI_PROJECT_PATH": "a", "CI_COMMIT_SHA": "b"}


@pytest.fixture
def folder(tmp_path: Path, live_server: Any) -> Path:
    """A checkout whose directory was pulled, and programs: flagadmin as it is here, and a pip that does nothing."""
    make_project("shop")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (
        ("pip", "exit 0"),
        ("flagadmin", f'PYTHONPATH={ROOT} exec {sys.executable} -m flagadmin "$@"'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(stat.S_IRWXU)
    body = {"flags": [{"project": "shop", "flag": FLAG}], "segments": [SEGMENT], "contextFields": [FIELD]}
    assert client(make_token("admin")).post(f"{URL}/apply", body).status_code == 200
    (tmp_path / "work").mkdir()
    variables = {
        "FLAGADMIN_URL": live_server.url,
        "FLAGADMIN_TOKEN": make_token("admin", name="ci"),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    (tmp_path / "variables").write_text("\n".join(f"{name}={value}" for name, value in variables.items()))
    shell("flagadmin pull config --project shop", {}, tmp_path)
    return tmp_path


def shell(script: str, variables: dict[str, str], folder: Path) -> int:
    own = dict(line.partition("=")[::2] for line in (folder / "variables").read_text().splitlines())
    done = subprocess.run(
        [program("bash"), "-e", "-c", script],
        cwd=folder / "work",
        env=own | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode


@pytest.mark.processes
@pytest.mark.parametrize("service", [github, gitlab])
def test_a_pull_request_is_planned_a_merge_applied_and_drift_found(service: Any, folder: Path) -> None:
    def run(job: str, event: str) -> int:
        script, variables = service(job, event)
        return shell(script, variables, folder)

    path = folder / "work" / "config" / "flags" / "shop" / "checkout-redesign.yaml"
    path.write_text(path.read_text().replace("enabled: false", "enabled: true"))
    assert run("plan", "pull_request") == 0
    assert "off → on" in (folder / "work" / "plan.md").read_text()
    assert not FlagEnvironment.objects.get(environment="production").enabled
    assert run("apply", "push") == 0
    assert FlagEnvironment.objects.get(environment="production").enabled
    assert run("plan", "schedule") == 0
    disable_flag("shop", "checkout-redesign", "production", caller=Caller.system())
    assert run("plan", "schedule") == 2
    path.write_text("[")
    assert run("plan", "pull_request") == 1
    if service is github:
        assert "off → on" in (folder / "summary.md").read_text()
