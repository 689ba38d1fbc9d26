"""Flags in a Git repository: pull, edit, plan, apply, drift, conflicts and broken files, with the real commands."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from typing import Any
from xml.etree import ElementTree

import pytest

from flagadmin.client import main as client
from groups.access import Caller
from projects.flags.archive.actions import archive_flags
from projects.flags.environments.actions import disable_flag
from projects.models import Flag, FlagEnvironment
from tests.support.as_code import FIELD, FLAG, SEGMENT, URL
from tests.support.cast import client as api_client
from tests.support.cast import make_project, make_token
from tests.support.flags import make_flag

pytestmark = pytest.mark.django_db(transaction=True)
SYSTEM = Caller.system()
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(live_server: Any, capsys: Any, monkeypatch: Any) -> Run:
    """Runs a command. Returns its exit status and what it printed."""
    make_project("shop")
    monkeypatch.setenv("FLAGADMIN_URL", live_server.url)
    monkeypatch.setenv("FLAGADMIN_TOKEN", make_token("admin"))

    def run(*arguments: Any) -> tuple[int, str]:
        status = client.run([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return status, said.out + said.err

    return run


@pytest.fixture
def repository(run: Run, tmp_path: Path) -> Path:
    """A repository with what was pulled from a server that has a flag."""
    api = api_client(make_token("admin"))
    flags = [{"project": "shop", "flag": FLAG}, {"project": "shop", "flag": {"name": "other"}}]
    made = api.post(f"{URL}/apply", {"flags": flags, "segments": [SEGMENT], "contextFields": [FIELD]})
    assert made.status_code == 200, made.content
    status, said = run("pull", tmp_path / "config", "--project", "shop")
    assert status == 0, said
    git(tmp_path / "config", "init", "-q")
    commit(tmp_path / "config")
    return tmp_path / "config"


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "Flags")


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def flag_file(folder: Path, name: str = "checkout-redesign") -> Path:
    return folder / "flags" / "shop" / f"{name}.yaml"


def test_after_a_pull_nothing_is_to_do(run: Run, repository: Path) -> None:
    assert sorted(str(p.relative_to(repository)) for p in repository.rglob("*.yaml")) == [
        "context-fields/country.yaml",
        "context-fields/userId.yaml",
        "flagadmin.yaml",
        "flags/shop/checkout-redesign.yaml",
        "flags/shop/other.yaml",
        "segments/beta-users.yaml",
    ]
    status, said = run("plan", repository)
    assert (status, said) == (0, "Nothing to do.\n")
    run("pull", repository)
    assert git(repository, "status", "--porcelain") == ""


def test_a_project_with_a_leading_dot_has_its_flags(run: Run, tmp_path: Path) -> None:
    make_flag("cart", make_project(".shop"))
    for words in ("1 written", "1 the same"):
        assert words in run("pull", tmp_path, "--project", ".shop")[1]
    (tmp_path / "flags" / ".idea").mkdir()
    (tmp_path / "flags" / ".idea" / "settings.json").write_text("[]")
    assert run("plan", tmp_path, "--archive-missing") == (0, "Nothing to do.\n")


def test_a_change_is_planned_and_applied(run: Run, repository: Path, tmp_path: Path) -> None:
    edit(flag_file(repository), "enabled: false", "enabled: true")
    report, markdown, junit = tmp_path / "plan.json", tmp_path / "plan.md", tmp_path / "plan.xml"
    status, said = run("plan", repository, "--out", report, "--markdown", markdown, "--junit", junit)
    assert status == 2
    assert "~ flag checkout-redesign in shop, production\n    switch: off → on" in said
    assert "shop / production: " in said
    assert "generated users change" in said
    assert "| change | flag `checkout-redesign` | `shop, production` |" in markdown.read_text()
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("failures"), suite.find("testcase/failure").get("message")) == ("1", "change")
    status, said = run("apply", repository, "--plan", report, "--comment", "Größer")
    assert status == 0, said
    assert FlagEnvironment.objects.get(environment="production", flag__name="checkout-redesign").enabled
    assert run("plan", repository)[0] == 0


def test_a_new_file_is_a_new_flag_and_json_will_do(run: Run, repository: Path) -> None:
    new = {
        "name": "brand-new",
        "environments": {"development": {"enabled": True, "strategies": [{"name": "default"}]}},
    }
    (repository / "flags" / "shop" / "brand-new.json").write_text(json.dumps(new))
    assert "+ flag brand-new in shop, development" in run("apply", repository)[1]
    assert Flag.objects.filter(name="brand-new").exists()
    assert run("plan", repository)[0] == 0


def test_drift_is_a_plan_and_a_pull_keeps_comments(run: Run, repository: Path) -> None:
    path = flag_file(repository)
    edit(path, "name: checkout-redesign", "# Ours\nname: checkout-redesign # the name")
    edit(path, "environments:", "# Where\nenvironments:")
    edit(path, "    strategies:", "    # Why\n    strategies:")
    edit(path, "enabled: true", 'enabled: true # "always"')
    assert run("plan", repository)[0] == 0
    commit(repository)
    disable_flag("shop", "checkout-redesign", "development", caller=SYSTEM)
    Flag.objects.filter(name="checkout-redesign").update(description=None)
    status, said = run("plan", repository)
    assert status == 2
    assert "switch: off → on" in said
    run("pull", repository)
    changed = git(repository, "diff", "--unified=0", "--", "flags").splitlines()
    assert [line for line in changed if line[:1] in "+-" and line[:3] not in ("+++", "---")] == [
        "-description: One page",
        '-    enabled: true # "always"',
        '+    enabled: false # "always"',
    ]
    assert run("plan", repository)[0] == 0


def test_files_follow_flags_that_are_archived(run: Run, repository: Path) -> None:
    archive_flags("shop", ["other"], caller=SYSTEM)
    assert "1 removed" in run("pull", repository)[1]
    assert not flag_file(repository, "other").exists()
    assert flag_file(repository).exists()


def test_flags_that_left_are_archived_only_on_demand(run: Run, repository: Path) -> None:
    flag_file(repository, "other").unlink()
    status, said = run("plan", repository)
    assert status == 0
    assert "Not in the directory, and left alone (1): other." in said
    run("apply", repository)
    assert Flag.objects.active().filter(name="other").exists()
    assert "- flag other in shop" in run("plan", repository, "--archive-missing")[1]
    run("apply", repository, "--archive-missing")
    assert not Flag.objects.active().filter(name="other").exists()


def test_a_stale_plan_is_refused(run: Run, repository: Path, tmp_path: Path) -> None:
    edit(flag_file(repository), "One page", "Two pages")
    run("plan", repository, "--out", tmp_path / "plan.json")
    disable_flag("shop", "checkout-redesign", "development", caller=SYSTEM)
    status, said = run("apply", repository, "--plan", tmp_path / "plan.json")
    assert status == 1
    assert "was changed after it was made. Plan again." in said
    assert Flag.objects.get(name="checkout-redesign").description == "One page"


def test_of_two_appliers_at_once_one_is_refused(
    run: Run, repository: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(repository), str(other))
    edit(flag_file(repository), "One page", "Two pages")
    edit(flag_file(other), "One page", "Three pages")
    plans = {folder: tmp_path / f"{folder.name}.plan" for folder in (repository, other)}
    for folder, plan in plans.items():
        run("plan", folder, "--out", plan)
    barrier, statuses = Barrier(2), {}

    def apply(folder: Path) -> None:
        barrier.wait()
        statuses[folder] = client.run(["apply", str(folder), "--plan", str(plans[folder])])

    threads = [Thread(target=apply, args=[folder]) for folder in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses.values()) == [0, 1]
    winner = next(folder for folder, status in statuses.items() if status == 0)
    said = {repository: "Two pages", other: "Three pages"}[winner]
    assert Flag.objects.get(name="checkout-redesign").description == said


BROKEN = (
    ("enabled: true", "enabled: [", "", ""),
    ("enabled: true", "enable: true", 12, "environments.development.enable: is not a valid key. Did you mean enabled?"),
    ("description: One page", "description: One page\ndescription: Two", 5, "found duplicate key"),
    ("name: default", "name: wonderful", 14, "wonderful"),
    ("type: release", "type: [release]", 3, "type: must be a string"),
    ("beta-users", "nobody", "", "nobody does not exist"),
)  # fmt: skip


def test_what_is_wrong_in_a_file_is_named_with_its_line(run: Run, repository: Path, tmp_path: Path) -> None:
    path = flag_file(repository)
    for before, after, line, message in BROKEN:
        git(repository, "checkout", "-q", ".")
        edit(path, before, after)
        status, said = run("plan", repository, "--junit", tmp_path / "plan.xml")
        assert status == 1
        assert f"{path}:{line}" in said
        assert message in said
        case = ElementTree.parse(tmp_path / "plan.xml").getroot().find("testcase")
        assert case.get("file") == str(path)
        assert case.find("error") is not None
    assert run("apply", repository)[0] == 1


def test_broken_files_are_all_named(run: Run, repository: Path) -> None:
    flag_file(repository).write_text("[")
    flag_file(repository, "other").write_text("type: release\n")
    (repository / "segments" / "twice.yaml").write_text("name: beta-users\nconstraints: []\n")
    (repository / "segments" / "latin.yaml").write_bytes(b"name: \xe4\n")
    status, said = run("plan", repository)
    assert status == 1
    assert len(said.splitlines()) == 4


@pytest.mark.parametrize("indent", ["  ", "\t"])
def test_a_key_that_is_there_twice_in_a_json_file_is_refused(run: Run, repository: Path, indent: str) -> None:
    path = repository / "segments" / "twice.json"
    path.write_text(f'{{\n{indent}"name": "other",\n{indent}"name": "more",\n{indent}"constraints": []\n}}')
    status, said = run("plan", repository)
    assert status == 1
    assert f"{path}:3: found duplicate key" in said


def test_what_is_no_server_or_no_token_is_said(run: Run, repository: Path) -> None:
    for options, message in (
        (["--url", "ftp://x"], "is not an address like"),
        (["--url", "http://127.0.0.1:1"], "refused"),
        (["--token", "*:*.wrong"], "token"),
    ):
        status, said = run("plan", repository, *options)
        assert (status, message in said.lower()) == (1, True), said
        assert "wrong" not in said


def test_wrong_arguments_are_no_changes(run: Run, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        run("plan")
    assert ended.value.code == 1
    assert "required: directory" in capsys.readouterr().err


def test_shared_segments_can_be_somebody_elses(run: Run, repository: Path) -> None:
    (repository / "flagadmin.yaml").write_text("projects: [shop]\nshared: false\n")
    edit(repository / "segments" / "beta-users.yaml", "Early birds", "Late birds")
    assert run("plan", repository) == (0, "Nothing to do.\n")


ALIASES = "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "bomb.yaml",
            f"a0: &a0 [x]\n{ALIASES}",
            ":6: must have at most 100,000 values, with those that aliases",
        ),
        ("loop.yaml", "name: x\na: &a [*a]\n", ":2: contains itself"),
        ("deep.yaml", "name: x\na:\n" + "- " * 3_000 + "x", ": must be nested at most 100 levels deep"),
        (
            "deep.json",
            '{"name": "x", "a": ' + "[" * 5_000 + "]" * 5_000 + "}",
            ": must be nested at most 100 levels",
        ),
    ],
)
def test_a_file_that_grows_when_it_is_read_is_refused_at_its_line(run, repository, name, text, message):
    path = repository / "flags" / "shop" / name
    path.write_text(text)
    status, said = run("plan", repository)
    assert status == 1
    assert f"{path}{message}" in said


def test_aliases_are_read(run, repository):
    (repository / "flags/shop/two.yaml").write_text(
        "name: two\nenvironments:\n  development: &same {enabled: false}\n  production: *same\n"
    )
    assert run("apply", repository)[0] == 0
    assert Flag.objects.filter(name="two").exists()
