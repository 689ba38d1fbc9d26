"""Recorded usage reports give the reference's recorded applications lists."""

from typing import Any

import pytest
from django.utils import timezone

from projects.applications.sdk_versions import version_key
from projects.models import Application, ApplicationInstance, Environment, Flag, Project
from tests.support.cast import client, make_project, make_token
from tests.support.flags import make_flag
from tests.support.vectors import load

pytestmark = [pytest.mark.django_db, pytest.mark.exhaustive]

NO_NUMBER = "what is no number of the range is refused instead of read as the default"
WHOLE = "the total is that of all matches, also past the end"
LITERAL = "wildcards are literal"
DECIDED_OTHERWISE = {
    **dict.fromkeys(
        ["limit 0", "limit -1", "limit 2.5", "limit 0x3", "limit NaN", "limit Infinity"], NO_NUMBER
    ),
    **dict.fromkeys(["offset abc", "offset 1.5", "offset Infinity"], NO_NUMBER),
    **dict.fromkeys([f"130 applications, limit {text}" for text in ("-1", "abc", "99.9")], NO_NUMBER),
    **dict.fromkeys(
        [f"130 applications, limit {number}" for number in ("101", "1000")], "pages of up to 1000 are given"
    ),
    "sortOrder DESC": "an unknown order is refused instead of ignored",
    "sortBy environments": "sortBy sorts: by the number of environments, then by name",
    **dict.fromkeys(["offset beyond end", "query matches nothing of page"], WHOLE),
    **dict.fromkeys(
        ["query percent wildcard", "query underscore wildcard", "query underscore inside"], LITERAL
    ),
    "query instance prefix": "the search is over name, SDK and environment, as specified",
    "query NUL": "refused instead of failing",
    **dict.fromkeys(
        ["unknown project", "project *", "project encoded slash"], "an unknown project is not found"
    ),
    "If-None-Match": "this list has no ETag",
    **dict.fromkeys(["PUT not a route", "DELETE not a route"], "405 says that the address is right"),
    "OPTIONS not a route": "not part of the API",
}
# A match chooses applications and never narrows their records, so that only names can be compared.
NARROWED = {"query environment", "query environment partial", "query sdk name", "query sdk whole"}


RECORDED = load("applications")
CASES = {
    case["name"]: case
    for case in RECORDED["cases"]
    if case["name"] not in DECIDED_OTHERWISE and not case["name"].startswith("related")
}


@pytest.fixture
def keys(db: None) -> dict[str | None, str]:
    """Our tokens by the names of the recorded ones."""
    make_project("proj-b")
    make_project("proj-empty")
    make_project("proj-arch", archived_at=timezone.now())
    for name in ("staging", "default"):
        Environment.objects.create(name=name)
    places = {
        "tok-def-prod": ("production", ["default"]),
        "tok-def-dev": ("development", ["default"]),
        "tok-b-dev": ("development", ["proj-b"]),
        "tok-all-prod": ("production", None),
        "tok-both-dev": ("development", ["default", "proj-b"]),
        "tok-def-stg": ("staging", ["default"]),
    }
    ours: dict[str | None, str] = {
        name: make_token("backend", environment=environment, projects=projects)
        for name, (environment, projects) in places.items()
    }
    # Without authentication the reference took reports of anybody; of us they need keys of those places.
    ours[None] = ours["tok-def-dev"]
    ours["admin"] = make_token("backend", environment="default")
    return ours


@pytest.fixture
def usage(keys: dict[str | None, str]) -> None:
    for name, project in {"flag-a": "default", "flag-b": "default", "flag-arch": "default"}.items():
        make_flag(name, project=project)
    for name, project in {"flag-move": "default", "flag-c": "proj-b", "flag-d": "proj-arch"}.items():
        make_flag(name, project=project)
    for report in RECORDED["reports"]:
        replay(report, keys)
    Flag.objects.filter(name="flag-arch").update(archived_at=timezone.now())
    Flag.objects.filter(name="flag-move").update(project="proj-b")
    gone = Application.objects.get(name="app-deleted")
    client(make_token("admin")).delete(f"/api/admin/metrics/applications/{gone.name}")
    purge("app-purged")
    make_many()


def replay(request: dict[str, Any], keys: dict[str | None, str]) -> None:
    body = request["body"]
    # It never registered, so the reference does not list it; here usage is enough.
    metrics = body.get("metrics", ())
    if metrics:
        body = body | {"metrics": [entry for entry in metrics if entry["appName"] != "app-bulk-unreg"]}
    secret = keys[request["token"]]
    answer = client(secret).post(request["path"], body)
    assert answer.status_code == 202, (request, answer.content)


def purge(name: str) -> None:
    """As if no instance had been heard of for long."""
    from projects.applications.store_report import refresh_applications

    application = Application.objects.get(name=name)
    ApplicationInstance.objects.filter(application=application).delete()
    refresh_applications([application.pk])


def make_many() -> None:
    Project.objects.create(id="proj-many", name="Many")
    make_flag("flag-many", project="proj-many")
    key = client(make_token("backend", environment="development"))
    now = timezone.now().isoformat()
    numbers = range(1, 131)
    key.post(
        "/api/client/metrics/bulk",
        {
            "applications": [
                {
                    "appName": f"many-{n:03}",
                    "instanceId": f"m-{n}",
                    "sdkVersion": f"unleash-client-node:6.{n % 3}.0",
                }
                for n in numbers
            ],
            "metrics": [
                {"featureName": "flag-many", "appName": f"many-{n:03}", "timestamp": now, "yes": 1}
                for n in numbers
            ],
        },
    )


def comparable(record: dict[str, Any]) -> dict[str, Any]:
    """The reference's record as we write it: versions in version order, no null among instances."""
    return {
        "name": record["name"],
        "environments": record["environments"],
        # Without an id an instance is called "default", in metrics too.
        "instances": sorted(
            {instance or "default" for instance in record["instances"] if instance is not None}
        ),
        "sdks": sorted(
            (
                {"name": sdk["name"], "versions": sorted(sdk["versions"], key=version_key)}
                for sdk in record["sdks"]
            ),
            key=lambda sdk: sdk["name"],
        ),
    }


def test_lists_are_as_the_reference_answered_them(usage: None) -> None:
    """All cases on one replay of the setup, every difference told at once."""
    caller = client(make_token("admin"))
    differences = [difference for name in CASES if (difference := compare(caller, name))]
    assert CASES
    assert not differences, "\n".join(differences)


def compare(caller: Any, name: str) -> str:
    case = CASES[name]
    answer = caller.generic(case["method"], case["path"])
    if answer.status_code != case["status"]:
        return f"{name}: {answer.status_code} instead of {case['status']}"
    if case["status"] != 200:
        return ""
    ours: Any = answer.json()
    theirs: Any = {
        "total": case["total"],
        "applications": [RECORDED["records"][number] for number in case["applications"]],
    }
    if name in NARROWED:
        theirs, ours = names_of(theirs), names_of(ours)
    else:
        theirs = {"total": theirs["total"], "applications": [comparable(r) for r in theirs["applications"]]}
        ours["applications"] = [
            {key: record[key] for key in ("name", "environments", "instances", "sdks")}
            for record in ours["applications"]
        ]
    return "" if theirs == ours else f"{name}:\n  {theirs}\n  {ours}"


def names_of(body: dict[str, Any]) -> list[Any]:
    return [body["total"], *(record["name"] for record in body["applications"])]


def test_what_is_decided_otherwise_was_recorded() -> None:
    assert set(DECIDED_OTHERWISE) <= {case["name"] for case in RECORDED["cases"]}
