"""Cases over HTTP: their flags are made through the API, read as an SDK reads them, and asked for in the playground."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from projects.models import Flag, StrategyType
from tests.support.cases import Case, CaseFile, Result, differing, sdk_results
from tests.support.cast import client, make_project, make_token

PROJECT, ENVIRONMENT = "cases", "development"
FEATURES = f"/api/admin/projects/{PROJECT}/features"


class Installation:
    """A project with the flags of a state; ``refused`` are those that the API does not accept, and its messages."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        make_project(PROJECT)
        self.admin = client(make_token("admin"))
        self.sdk = client(make_token("backend", projects=[PROJECT], environment=ENVIRONMENT))
        self.refused: dict[str, str] = {}
        self.segments = {segment["id"]: self._segment(segment) for segment in state.get("segments") or []}
        for feature in state["features"]:
            self._flag(feature)
        parents = {f["name"]: [p["feature"] for p in f.get("dependencies") or []] for f in state["features"]}
        # Of a chain, its end is refused.
        for feature in sorted(state["features"], key=lambda f: any(map(parents.get, parents[f["name"]]))):
            if feature["name"] not in self.refused:
                self._parents(feature)

    def sdk_results(self, cases: list[Case]) -> list[Result]:
        return list(sdk_results(self.sdk.get("/api/client/features").json(), cases))

    def playground_result(self, case: Case) -> Result | None:
        """None if the playground does not accept the context."""
        asked = {"environment": ENVIRONMENT, "projects": [PROJECT], "context": case.context}
        status, answer = self._send("post", "/api/admin/playground", asked)
        if status == 400:
            return None
        assert status == 200, answer
        for feature in answer["features"]:
            if feature["name"] == case.flag:
                return feature["isEnabled"], feature["variant"]["name"]
        return False, "disabled"

    def _send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = getattr(self.admin, method)(path, body)
        return answer.status_code, answer.json() if answer.content else None

    def _segment(self, segment: Mapping[str, Any]) -> int | None:
        body = {"name": f"segment {segment['id']}", "constraints": segment["constraints"]}
        status, answer = self._send("post", "/api/admin/segments", body)
        return answer["id"] if status == 201 else None

    def _flag(self, feature: Mapping[str, Any]) -> None:
        """All or nothing: of a flag that is refused in part nothing is left."""
        name = feature["name"]
        steps = [("post", FEATURES, {"name": name, "type": "release"})]
        place = f"{FEATURES}/{name}/environments/{ENVIRONMENT}"
        steps += [("post", f"{place}/strategies", self._strategy(s)) for s in feature.get("strategies") or []]
        if feature.get("variants"):
            steps.append(("put", f"{place}/variants", [self._variant(v) for v in feature["variants"]]))
        if feature["enabled"]:
            steps.append(("post", f"{place}/on", None))
        for method, path, body in steps:
            status, answer = self._send(method, path, body)
            if status >= 400:
                self._leave_out(name, answer)
                return

    def _leave_out(self, name: str, answer: Any) -> None:
        self.refused[name] = answer["message"]
        Flag.objects.filter(name=name).update(archived_at=timezone.now())

    def _strategy(self, strategy: Mapping[str, Any]) -> dict[str, Any]:
        kept = ("name", "parameters", "constraints", "disabled", "title")
        name = strategy["name"]
        StrategyType.objects.get_or_create(name=name, defaults={"title": name})
        body = {key: strategy[key] for key in kept if strategy.get(key) is not None}
        body["variants"] = [self._variant(v) for v in strategy.get("variants") or []]
        body["segments"] = [self.segments.get(segment) or 0 for segment in strategy.get("segments") or []]
        return body

    def _variant(self, variant: Mapping[str, Any]) -> dict[str, Any]:
        return {"weightType": "variable", "stickiness": "default", **variant}

    def _parents(self, feature: Mapping[str, Any]) -> None:
        for parent in feature.get("dependencies") or []:
            path = f"{FEATURES}/{feature['name']}/dependencies"
            status, answer = self._send("post", path, parent)
            if status >= 400:
                self._leave_out(feature["name"], answer)


def outcomes(file: CaseFile) -> list[tuple[str, Case, Result, Result | None]]:
    """By case "holds", "refused" (its flag, or its context), "changed" if both results are equal but others, or
    "differs", which must not be."""
    installation = Installation(file.state)
    found = []
    for case, sdk in zip(file.cases, installation.sdk_results(file.cases), strict=True):
        playground = installation.playground_result(case)
        refused = case.flag in installation.refused or playground is None
        found.append(("refused" if refused else _outcome(case, sdk, playground), case, sdk, playground))
    return found


def _outcome(case: Case, sdk: Result, playground: Result) -> str:
    if not differing([case, case], [sdk, playground]):
        return "holds"
    return "changed" if sdk == playground else "differs"
