"""The recorded import, validate and export calls: how their set-ups are made here, and how states are compared."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from groups.models import Grant, Role
from projects import models as m
from projects.export import export_flags
from tests.support.cast import client as make_client
from tests.support.cast import make_token
from tests.support.vectors import load

RECORDED_CASES: dict[str, dict[str, Any]] = {case["name"]: case for case in load("imports")}


@dataclass
class Recording:
    """One case in the making. ``captured`` are the values that its set-up names."""

    case: dict[str, Any]
    people: Any
    api: Any
    captured: dict[str, Any] = field(default_factory=dict)

    def prepare(self) -> None:
        for name in self.case["after_setup_of"]:
            Recording(RECORDED_CASES[name], self.people, self.api, self.captured).prepare()
        for step in self.case["setup"]:
            if "do" in step:
                verb, *arguments = step["do"]
                answer = VERBS[verb](self.people, *arguments)
            else:
                answer = self._by_call(step)
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
        body = _recorded_body(request.get("raw_body"))
        if body is None:
            document = request.get("body_template", request.get("body"))
            body = json.dumps(self.filled(document))
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


def _recorded_body(text: str | None) -> str | None:
    """Large bodies are told, not recorded: "<4000 features, 568117 bytes>"."""
    if text is None or not text.startswith("<"):
        return text
    size = re.search(r"(\d+) bytes", text)
    assert size
    features = [{"name": f"big-{n:04d}"} for n in range(4000 if "4000" in text else 1)]
    body = {
        "project": "default",
        "environment": "development",
        "data": {"features": features, "featureStrategies": [], "tagTypes": []},
    }
    features[0]["description"] = "x"
    features[0]["description"] += "x" * (int(size[1]) - len(json.dumps(body)))
    return json.dumps(body)


# Set-ups -------------------------------------------------------------------------------------------------------


def _change_project(people: Any, project: str, fields: dict[str, Any]) -> None:
    m.Project.objects.filter(id=project).update(**fields)


def _add_environment(people: Any, project: str, environment: str) -> None:
    m.ProjectEnvironment.objects.create(project_id=project, environment_id=environment)


def _grant(people: Any, role: str, project: str, username: str) -> None:
    Grant.objects.create(role=Role.objects.get(name=role), project_id=project, user=people[username])


def _set_variants(people: Any, flag: str, environment: str | None, variants: list[Any]) -> None:
    rows = m.FlagEnvironment.objects.filter(flag__name=flag)
    if environment:
        rows = rows.filter(environment_id=environment)
    rows.update(variants=variants)


def _delete_flags(people: Any, project: str) -> None:
    m.Dependency.objects.filter(flag__project_id=project).delete()
    m.Flag.objects.filter(project_id=project).delete()


VERBS: dict[str, Callable[..., Any]] = {
    "make project": lambda people, fields: m.Project.objects.create(**fields),
    "change project": _change_project,
    "add environment": _add_environment,
    "make segment": lambda people, fields: m.Segment.objects.create(**fields),
    "make context field": lambda people, fields: m.ContextField.objects.create(**fields),
    "grant": _grant,
    "set variants": _set_variants,
    "mark stale": lambda people, flag: m.Flag.objects.filter(name=flag).update(stale=True),
    "delete flags": _delete_flags,
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
    export = next(iter(exports.values()))
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
    parents = [parent for listed in export["dependencies"] for parent in listed["dependencies"]]
    links = [link for listed in export["links"] for link in listed["links"]]
    return comparable_flag(
        export["features"][0]
        | {"environments": list(environments.values()), "dependencies": parents, "links": links}
    )
