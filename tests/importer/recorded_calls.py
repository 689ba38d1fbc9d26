"""The recorded import, validate and export calls: how their set-ups are made here, and how states are compared."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from groups.models import Grant, Role
from projects import models as m
from projects.export import export_flags
from tests.support.cast import client as make_client
from tests.support.cast import make_token
from tests.support.paths import SHARED

FOLDER = SHARED / "vectors" / "import"


def recorded_cases() -> list[Path]:
    return sorted(FOLDER.glob("[0-9]*.json"))


@dataclass
class Recording:
    """One case in the making. ``captured`` are the values that its set-up names."""

    case: dict[str, Any]
    people: Any
    api: Any
    captured: dict[str, Any] = field(default_factory=dict)

    def prepare(self) -> None:
        for name in self.case.get("depends_on", ()):
            other = json.loads(next(FOLDER.glob(f"{name}.json")).read_text())
            Recording(other, self.people, self.api, self.captured).prepare()
        for step in self.case["setup"]:
            answer = _by_sql(step["sql"], self.people) if "sql" in step else self._by_call(step)
            captured = step.get("capture")
            if isinstance(captured, str):
                self.captured[captured] = answer.pk
            elif captured:
                for name, member in captured.items():
                    self.captured[name] = answer if member is None else answer[member]

    def _by_call(self, step: dict[str, Any]) -> Any:
        body = self._with_own_segments(step.get("body"))
        response = getattr(self.api["admin"], step["method"].lower())(step["path"], body)
        assert response.status_code == step["status"], (step, response.content)
        return json.loads(response.content) if response.content else None

    def _with_own_segments(self, body: Any) -> Any:
        """A recorded body names segments by the ids they had there."""
        if not isinstance(body, dict) or "segments" not in body:
            return body
        ids = {
            value: self.captured[name]
            for step in self.case["setup"]
            for name, value in step.get("captured", {}).items()
            if name in self.captured and isinstance(value, int)
        }
        return body | {"segments": [ids.get(segment, segment) for segment in body["segments"]]}

    def send(self) -> Any:
        request = self.case["request"]
        headers = request.get("headers", {})
        secret = headers.get("Authorization")
        client = make_client(secret) if secret else self.client(request["auth"])
        body = _told_body(request.get("raw_body"))
        if body is None:
            given = request.get("body_template", request.get("body"))
            body = json.dumps(self.filled(given))
        return client.post(
            request["path"],
            data=body,
            content_type=headers.get("Content-Type", "application/json"),
        )

    def client(self, auth: str) -> Any:
        if auth == "client-token":
            return make_client(make_token("backend", environment="development"))
        names = {"none": "admin", "admin-token": "admin_token"}
        return self.api[names.get(auth, auth.removeprefix("pat:"))]

    def filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.filled(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.filled(inner) for inner in value]
        if isinstance(value, str) and (match := re.fullmatch(r"\{\{(\w+)\}\}", value)):
            return self.captured[match[1]]
        return value


def _told_body(told: str | None) -> str | None:
    """Large bodies are told, not recorded: "<4000 features, 568117 bytes>"."""
    if told is None or not told.startswith("<"):
        return told
    found = re.search(r"(\d+) bytes", told)
    assert found
    features = [{"name": f"big-{n:04d}"} for n in range(4000 if "4000" in told else 1)]
    body = {
        "project": "default",
        "environment": "development",
        "data": {"features": features, "featureStrategies": [], "tagTypes": []},
    }
    features[0]["description"] = "x"
    features[0]["description"] += "x" * (int(found[1]) - len(json.dumps(body)))
    return json.dumps(body)


# Set-ups by SQL ------------------------------------------------------------------------------------------------


def _values(statement: str) -> list[Any]:
    listed = re.search(r"VALUES \((.*)\)", statement)
    assert listed
    found = re.findall(r"'((?:[^']|'')*)'|(NULL|true|false|-?\d+)", listed[1])
    words = {"NULL": None, "true": True, "false": False}
    return [
        text.replace("''", "'")
        if not word
        else words.get(word, int(word) if word.lstrip("-").isdigit() else word)
        for text, word in found
    ]


def _by_sql(statement: str, people: Any) -> Any:
    for beginning, make in STATEMENTS.items():
        if statement.startswith(beginning):
            return make(statement, people)
    raise AssertionError(f"no way to make {statement}")


def _settings(statement: str, people: Any) -> None:
    project, stickiness, _, limit, pattern, example, description = _values(statement)
    m.Project.objects.filter(id=project).update(
        default_stickiness=stickiness,
        flag_limit=limit,
        naming_pattern=pattern or "",
        naming_example=example or "",
        naming_description=description or "",
    )


def _change_settings(statement: str, people: Any) -> None:
    project = re.search(r"project='([^']+)'", statement)
    pattern = re.search(r"feature_naming_pattern=(?:'([^']+)'|NULL)", statement)
    limit = re.search(r"feature_limit=(\d+|NULL)", statement)
    assert project
    rows = m.Project.objects.filter(id=project[1])
    if pattern:
        rows.update(naming_pattern=pattern[1] or "")
    if limit:
        rows.update(flag_limit=None if limit[1] == "NULL" else int(limit[1]))


def _variants(statement: str, people: Any) -> None:
    found = re.search(
        r"variants='(.*)' WHERE feature_name='([^']+)'(?: and environment='([^']+)')?", statement
    )
    assert found
    rows = m.FlagEnvironment.objects.filter(flag__name=found[2])
    if found[3]:
        rows = rows.filter(environment_id=found[3])
    rows.update(variants=json.loads(found[1]))


def _grant(statement: str, people: Any) -> None:
    found = re.search(r"name='([^']+)'\), id, '([^']+)' FROM users WHERE username='([^']+)'", statement)
    assert found
    Grant.objects.create(role=Role.objects.get(name=found[1]), project_id=found[2], user=people[found[3]])


def _project(statement: str, people: Any) -> Any:
    identifier, name, description = _values(statement)
    return m.Project.objects.create(id=identifier, name=name, description=description)


def _project_environment(statement: str, people: Any) -> Any:
    project, environment = _values(statement)[:2]
    return m.ProjectEnvironment.objects.create(project_id=project, environment_id=environment)


def _segment_row(statement: str, people: Any) -> Any:
    name, description, _, constraints, project = _values(statement)
    return m.Segment.objects.create(
        name=name, description=description, constraints=json.loads(constraints), project_id=project
    )


def _context_row(statement: str, people: Any) -> Any:
    name, _, order, legal, stickiness, project = _values(statement)
    return m.ContextField.objects.create(
        name=name, sort_order=order, legal_values=json.loads(legal), stickiness=stickiness, project_id=project
    )


def _delete_flags(statement: str, people: Any) -> None:
    found = re.search(r"project='([^']+)'", statement)
    assert found
    m.Dependency.objects.filter(flag__project_id=found[1]).delete()
    m.Flag.objects.filter(project_id=found[1]).delete()


def _stale(statement: str, people: Any) -> None:
    m.Flag.objects.filter(name=statement.rpartition("='")[2].rstrip("'")).update(stale=True)


def _nothing(statement: str, people: Any) -> None:
    """What has no place here (change requests, link templates), or is done by another step."""


STATEMENTS: dict[str, Callable[[str, Any], Any]] = {
    "INSERT INTO projects(": _project,
    "INSERT INTO project_settings(": _settings,
    "INSERT INTO project_environments(": _project_environment,
    "INSERT INTO segments(": _segment_row,
    "INSERT INTO context_fields(": _context_row,
    "INSERT INTO role_user(": _grant,
    "INSERT INTO change_request_settings(": _nothing,
    "UPDATE feature_environments": _variants,
    "UPDATE features SET stale": _stale,
    "UPDATE project_settings SET link_templates": _nothing,
    "UPDATE project_settings": _change_settings,
    "DELETE FROM dependent_features": _nothing,
    "DELETE FROM features": _delete_flags,
}


# Comparing -----------------------------------------------------------------------------------------------------


def comparable_export(document: Any) -> dict[str, Any]:
    """An export without what is chance (ids) and what the reference leaves to chance (orders)."""
    names = {segment["id"]: segment["name"] for segment in document["segments"]}
    return {
        "features": sorted(document["features"], key=lambda f: f["name"]),
        "featureStrategies": sorted(
            (_comparable_strategy(strategy, names) for strategy in document["featureStrategies"]), key=_text
        ),
        "featureEnvironments": sorted(document["featureEnvironments"], key=_text),
        "contextFields": sorted(
            ({k: v for k, v in f.items() if k != "sortOrder"} for f in document["contextFields"]), key=_text
        ),
        "featureTags": sorted(document["featureTags"], key=_text),
        "segments": sorted(names.values()),
        "tagTypes": sorted(document["tagTypes"], key=_text),
        "dependencies": sorted(document["dependencies"], key=_text),
        "links": [
            {
                "feature": f["feature"],
                "links": sorted(([link["url"], link["title"]] for link in f["links"]), key=_text),
            }
            for f in sorted(document["links"], key=lambda f: f["feature"])
        ],
    }


def _comparable_strategy(strategy: Any, segments: dict[int, str]) -> Any:
    kept = {key: value for key, value in strategy.items() if key not in ("id", "sortOrder")}
    kept["disabled"] = bool(kept["disabled"])
    return kept | {"segments": sorted(segments.get(s, str(s)) for s in strategy["segments"])}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def comparable_flag(body: Any) -> dict[str, Any]:
    """A recorded flag: its own members, and its environments without ids and orders."""
    kept = ("name", "description", "type", "project", "stale", "impressionData", "archived")
    return {key: body[key] for key in kept} | {
        "environments": {
            place["name"]: {
                "enabled": place["enabled"],
                "variants": place["variants"],
                "strategies": sorted(
                    (
                        {k: v for k, v in s.items() if k not in ("id", "sortOrder", "segments")}
                        for s in place["strategies"]
                    ),
                    key=_text,
                ),
            }
            for place in body["environments"]
        },
        "dependencies": sorted(body["dependencies"], key=_text),
        "links": sorted(([link["url"], link["title"]] for link in body["links"]), key=_text),
    }


def present_flag(name: str) -> dict[str, Any]:
    """A flag as it is here, in the same form."""
    flag = m.Flag.objects.get(name=name)
    places = flag.environments.values_list("environment_id", flat=True)
    exports = {place: export_flags(place, names=[name]) for place in places}
    one = next(iter(exports.values()))
    environments = {}
    for place, document in exports.items():
        [switch] = document["featureEnvironments"]
        environments[place] = {
            "name": place,
            "enabled": switch["enabled"],
            "variants": switch["variants"],
            "strategies": [
                {k: v for k, v in s.items() if k != "featureName"} for s in document["featureStrategies"]
            ],
        }
    parents = [parent for listed in one["dependencies"] for parent in listed["dependencies"]]
    links = [link for listed in one["links"] for link in listed["links"]]
    return comparable_flag(
        one["features"][0]
        | {"environments": list(environments.values()), "dependencies": parents, "links": links}
    )
