"""Safeguards trust backend tokens that may read the flag's project: the secrets of frontend tokens are public."""

from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from projects.applications.cleanup import clean_usage
from projects.applications.impact_metrics import Origin, Sample, make_series, write_samples
from projects.models import ImpactOrigin, ImpactSeries
from releases.plans.due import look_at_due
from releases.safeguards.actions import set_flag_safeguard, set_safeguard
from releases.safeguards.judge import Judge
from releases.safeguards.serializers import FlagSafeguardBody, SafeguardBody
from tests.support.cast import client, make_project, make_token
from tests.support.flags import is_on
from tests.support.impact_metrics import MINUTE
from tests.support.page_text import page_text
from tests.support.plans import PLACE, WHO, Move, cart, started

pytestmark = pytest.mark.django_db(transaction=True)
ERRORS = {
    "impactMetric": {"metricName": "errors", "timeRange": "hour", "aggregationMode": "count"},
    "triggerCondition": {"operator": ">", "threshold": 10},
}
FRONTEND = ERRORS | {"impactMetric": ERRORS["impactMetric"] | {"includesFrontend": True}}
PAGE = "/projects/shop/features/cart/environments/production/safeguards/"
URL = f"/api/admin{PAGE}".rstrip("/")


@pytest.fixture(autouse=True)
def flag(shop: Any, pass_time: Move) -> Any:
    make_project("other")
    return cart(50)


def guard(move: Move, values: dict[str, Any] = ERRORS) -> None:
    """From the next minute on, what is reported counts."""
    body = FlagSafeguardBody(data=values)
    body.is_valid(raise_exception=True)
    set_flag_safeguard(PLACE, body.validated_data, caller=WHO)
    assert is_on_after_a_look(move)
    move(MINUTE)


def metric(value: float, **more: Any) -> dict[str, Any]:
    return {
        "name": "errors",
        "type": "counter",
        "help": "",
        "samples": [{"labels": {}, "value": value}],
    } | more


def report(kind: str, value: float = 1_000, *projects: str, environment: str = "production") -> None:
    token = make_token(kind, environment=environment, projects=list(projects) or None)
    url = "/api/frontend/client/metrics" if kind == "frontend" else "/api/client/metrics"
    answer = client(token).post(url, {"appName": "web", "impactMetrics": [metric(value)]}, format="json")
    assert answer.status_code < 300, answer.content


def pass_on(value: float, kind: str, *projects: str, own: list[str] | None = None) -> None:
    token = make_token("backend", environment="production", projects=own)
    origin = {"type": kind, "projects": list(projects)}
    body = {"applications": [], "metrics": [], "impactMetrics": [metric(value, origin=origin)]}
    assert client(token).post("/api/client/metrics/bulk", body, format="json").status_code == 202


def is_on_after_a_look(move: Move) -> bool:
    move(MINUTE)
    look_at_due()
    return is_on()


def test_a_frontend_token_hides_no_breach(pass_time, settings):
    """Neither by its numbers, nor by taking the name for another kind of metric, nor all the room for series."""
    settings.IMPACT_SERIES_LIMIT = settings.IMPACT_METRICS_LIMIT = 1
    guard(pass_time)
    gauge = metric(-1e9) | {"type": "gauge"}
    token = make_token("frontend", environment="production")
    body = {"appName": "web", "impactMetrics": [gauge]}
    assert client(token).post("/api/frontend/client/metrics", body, format="json").status_code == 200
    report("backend", 11)
    assert not is_on_after_a_look(pass_time)


@pytest.mark.parametrize(
    ("values", "kind", "counting"),
    [
        pytest.param(ERRORS, "backend", [(), ("shop",)], id="backend"),
        pytest.param(ERRORS, "frontend", [], id="frontend"),
        pytest.param(FRONTEND, "frontend", [(), ("shop",)], id="frontend where the safeguard says so"),
    ],
)
@pytest.mark.parametrize("projects", [(), ("shop",), ("other",)])
def test_tokens_count_that_can_read_the_project_and_are_no_secret_of_a_page(
    pass_time, values, kind, counting, projects
):
    guard(pass_time, values)
    report(kind, 11, *projects)
    assert is_on_after_a_look(pass_time) is (projects not in counting)


def select_environment(*names: str) -> dict[str, Any]:
    selected = {"labelSelectors": {"environment": list(names)}}
    return ERRORS | {"impactMetric": ERRORS["impactMetric"] | selected}


@pytest.mark.parametrize(
    ("values", "is_on"),
    [
        pytest.param(ERRORS, True, id="not said"),
        pytest.param(select_environment("production"), True, id="its own"),
        pytest.param(select_environment("development", "production"), False, id="both"),
        pytest.param(select_environment("*"), False, id="any"),
    ],
)
def test_tokens_of_other_environments_count_only_where_the_safeguard_says_so(pass_time, values, is_on):
    guard(pass_time, values)
    report("backend", 11, environment="development")
    assert is_on_after_a_look(pass_time) is is_on


def test_plans_read_the_same(pass_time):
    body = SafeguardBody(data=ERRORS)
    body.is_valid(raise_exception=True)
    plan = set_safeguard(PLACE, started(50, 100).pk, body.validated_data, caller=WHO)
    report("frontend", 1_000)
    plan.numbers_from = timezone.now() - 10 * MINUTE
    pass_time(MINUTE)
    [verdict] = Judge(timezone.now()).judge(plan)
    assert (verdict.state, verdict.value) == ("no data", None)


@pytest.mark.parametrize(
    ("origin", "own", "is_on"),
    [
        (("frontend", "shop"), None, True),
        (("backend", "shop"), None, False),
        (("backend", "*"), None, False),
        (("backend", "other"), None, True),
        (("backend", "shop"), ["other"], True),
        (("backend", "*"), ["other"], True),
        (("backend", "*"), ["shop"], False),
    ],
)
def test_a_relay_passes_on_the_token_and_never_more_than_its_own(pass_time, origin, own, is_on):
    guard(pass_time)
    pass_on(11, *origin, own=own)
    assert is_on_after_a_look(pass_time) is is_on


def test_numbers_from_before_the_upgrade_count(pass_time):
    guard(pass_time)
    series = make_series("errors", {}, environment="production")
    with connection.cursor() as cursor:
        write_samples(cursor, {series: Sample("counter", "", 11)}, now=timezone.now())
    assert ImpactSeries.objects.get().origin == ""
    assert not is_on_after_a_look(pass_time)


def test_prometheus_gets_each_series_once():
    report("backend", 2)
    report("backend", 3, "shop")
    report("frontend", 4)
    text = client(make_token("admin")).get("/internal-backstage/impact/metrics").content.decode()
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        'errors{appName="web",environment="production"} 9.0'
    ]


def test_unused_origins_are_deleted():
    report("frontend", 4)
    ImpactOrigin.objects.create(id="b0", is_frontend=False, projects=["gone"])
    clean_usage()
    assert [each.is_frontend for each in ImpactOrigin.objects.all()] == [True]


def test_a_series_has_as_many_origins_as_kinds_and_projects():
    some = [Origin(True), Origin(False, ("a",)), Origin(False, ("a", "b")), Origin(False, ()), Origin()]
    assert len({each.id for each in some}) == len(some)


def test_api_and_form_say_what_it_means(api, browse, pass_time):
    assert "anybody with a browser" in page_text(browse("admin").get(PAGE)).lower()
    guard(pass_time, FRONTEND)
    shown = api["admin"].get(URL).json()
    [safeguard] = shown if isinstance(shown, list) else shown["safeguards"]
    assert safeguard["impactMetric"]["includesFrontend"] is True
