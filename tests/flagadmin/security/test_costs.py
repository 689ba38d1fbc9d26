"""Small requests that would cost much are bounded, and say by what."""

from typing import Any

import pytest

from integrations.mcp import stale_tool
from playground import request
from projects.applications import store_report
from projects.models import IgnoredReport, ImpactSeries, UnknownFlag
from sdk.reports import api as impact_metrics
from tests.support.cast import client, make_token
from tests.support.playground import live_flag
from tests.support.records import refused
from tests.support.scim import USERS, Provider
from tests.support.sdk import metrics

pytestmark = pytest.mark.django_db
SCIM_PATCH = {"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 101 + 'userName eq "x"' + ")" * 101, "at most 100 parentheses and brackets, not 101"),
        ('userName eq "' + "x" * 5_000 + '"', "at most 5,000 characters, not 5,014"),
    ],
)
def test_filters_of_scim_are_measured_before_they_are_parsed(db, text, message):
    scim = Provider()
    assert message in scim.send("get", USERS, filter=text, status=400)["detail"]
    assert scim.send("get", USERS, filter="(" * 20 + 'userName eq "x"' + ")" * 20)["totalResults"] == 0


DEEP = f'emails[{"(" * 200}type eq "work"{")" * 200}].value'


@pytest.mark.parametrize("operation", [{"path": DEEP, "value": "x"}, {"value": {DEEP: "x"}}])
def test_paths_of_scim_are_measured_too(db, operation):
    scim = Provider()
    user = scim.send("post", USERS, {"schemas": [], "userName": "ken@example.org"}, status=201)
    body = SCIM_PATCH | {"Operations": [{"op": "replace"} | operation]}
    answer = scim.send("patch", f"{USERS}/{user['id']}", body, status=400)
    assert "at most 100 parentheses" in answer["detail"]


def test_an_answer_of_the_advanced_playground_has_a_size(api, shop, monkeypatch):
    live_flag("cart")
    monkeypatch.setattr(request, "MAX_ANSWER", 1_000_000)
    body = {
        "environments": ["production"],
        "projects": ["shop"],
        "context": {"userId": ",".join("a" * 5_000)},
    }
    record = refused(api["viewer"].post("/api/admin/playground/advanced", body), 400, "ValidationError")
    assert "more than 1 MB" in record["message"]
    assert "Reduce the environments, the flags or" in record["message"]


def test_a_report_of_many_unknown_flags_looks_few_up(shop, monkeypatch):
    monkeypatch.setattr(store_report, "MAX_AT_ONCE", 3)
    sent = client(make_token("frontend", environment="production")).post(
        "/api/frontend/client/metrics", metrics("web", [f"f{number}" for number in range(10)])
    )
    assert sent.status_code == 200
    assert sorted(UnknownFlag.objects.values_list("name", flat=True)) == ["f0", "f1", "f2"]
    assert IgnoredReport.objects.get(kind="unknown flag").number == 7


def test_a_report_stores_so_many_impact_series(shop, monkeypatch):
    monkeypatch.setattr(impact_metrics, "MAX_SERIES", 3)
    samples = [{"labels": {"n": str(number)}, "value": 1} for number in range(10)]
    metric = {"name": "m", "type": "counter", "help": "", "samples": samples}
    sent: Any = {"appName": "web", "impactMetrics": [metric]}
    backend = client(make_token("backend", environment="production"))
    assert backend.post("/api/client/metrics", sent).status_code == 202
    assert ImpactSeries.objects.count() == 3
    assert IgnoredReport.objects.get(kind="impact metric").number == 7


def test_stale_flags_are_proved_for_one_agent_after_the_other(people, monkeypatch):
    monkeypatch.setattr(stale_tool, "PATIENCE", 0)
    agent = client(make_token("personal", user=people["viewer"]))
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "find_stale_flags", "arguments": {}},
    }
    with stale_tool._one_at_a_time:
        answer = agent.post("/mcp", call)
        assert "Other calls of find_stale_flags are running" in answer.content.decode()
    assert "Other calls" not in agent.post("/mcp", call).content.decode()
