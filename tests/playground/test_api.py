"""POST /api/admin/playground: request, response and permissions."""

import pytest
from django.utils import timezone

from playground.snapshot_cache import cache
from projects.models import Dependency, Flag, FlagEnvironment
from tests.support.cast import client, make_project, make_token
from tests.support.playground import URL, ask, live_flag
from tests.support.records import refused


@pytest.fixture
def flags(shop):
    make_project("docs")
    rollout = {
        "name": "flexibleRollout",
        "parameters": {"rollout": "50", "stickiness": "userId", "groupId": "dark-theme"},
    }
    child = live_flag("gift-cards")
    parent = live_flag("checkout-redesign", strategies=(), enabled=False)
    Dependency.objects.create(flag=child, parent=parent)
    live_flag("dark-theme", strategies=(rollout,))
    live_flag("in-docs", "docs")


def evaluated(response):
    assert response.status_code == 200, response.content
    return {feature["name"]: feature for feature in response.json()["features"]}


def test_the_answer(api, flags):
    response = ask(api, projects=["shop"])
    assert response.json()["input"] == {
        "environment": "production",
        "projects": ["shop"],
        "context": {"userId": "42"},
    }
    features = evaluated(response)
    assert list(features) == ["checkout-redesign", "dark-theme", "gift-cards"]
    dark = features["dark-theme"]
    assert (dark["isEnabled"], dark["isEnabledInCurrentEnvironment"]) == (False, True)
    assert dark["reason"] == "userId 42 is in bucket 53 and the rollout stops at 50 %"
    assert features["gift-cards"]["hasUnsatisfiedDependency"] is True
    assert features["gift-cards"]["unsatisfiedDependencies"] == ["checkout-redesign"]
    assert features["checkout-redesign"]["reason"] == "Switched off in production"


def test_another_user_another_bucket(api, flags):
    assert evaluated(ask(api, context={"userId": "7"}))["dark-theme"]["isEnabled"] is True


def test_deprecation_is_announced(api, flags):
    response = ask(api)
    assert response["Deprecation"] == "@1767225600"
    assert "successor-version" in response["Link"]


def test_every_project_or_none(api, flags):
    assert "in-docs" in evaluated(ask(api))
    assert "in-docs" in evaluated(ask(api, projects="*"))
    assert evaluated(ask(api, projects=[])) == {}


def test_only_readable_projects(api, flags):
    assert list(evaluated(ask(api, "member"))) == ["checkout-redesign", "dark-theme", "gift-cards"]
    record = refused(ask(api, "member", projects=["docs"]), 400, "ValidationError")
    assert "shop" in record["message"]
    assert "default" not in record["message"]
    assert evaluated(ask(api, "outsider")) == {}


def test_unknown_project_and_environment_name_the_choices(api, flags):
    record = refused(ask(api, projects=["shop", "nosuch"]), 400, "ValidationError")
    assert record["message"] == "projects: Project nosuch not found. Available: default, docs, shop."
    record = refused(ask(api, environment="nosuch"), 400, "ValidationError")
    assert record["details"] == [
        {
            "path": "environment",
            "message": "Environment nosuch not found. Available: development, production.",
        }
    ]


def test_every_unknown_name_at_once(api, flags):
    record = refused(ask(api, projects=["nosuch"], environment="nowhere"), 400, "ValidationError")
    assert [problem["path"] for problem in record["details"]] == ["projects", "environment"]


def test_who_may_ask(api, flags):
    refused(ask(api, "nobody"), 401, "AuthenticationRequired")
    for who in ("admin", "editor", "viewer", "reader", "service", "admin_token"):
        assert ask(api, who).status_code == 200
    for kind in ("backend", "frontend"):
        secret = make_token(kind, environment="production")
        response = client(secret).post(URL, {"environment": "production", "context": {}})
        record = refused(response, 403, "NoAccessError")
        assert kind in record["message"]


def test_wrong_requests(api, flags):
    refused(api["viewer"].post(URL, data=b"{", content_type="application/json"), 400, "ValidationError")
    refused(api["viewer"].post(URL, data=b"<a/>", content_type="application/xml"), 415, "ContentTypeError")
    refused(api["viewer"].post(URL, data=b"", content_type="application/json"), 400, "ValidationError")
    refused(api["viewer"].get(URL), 405, "MethodNotAllowedError")
    body = b'{"environment": "production", "context": {"userId": "a\\u0000"}}'
    record = refused(
        api["viewer"].post(URL, data=body, content_type="application/json"), 400, "ValidationError"
    )
    assert record["details"][0]["path"] == "context.userId"


def test_a_change_is_visible_at_once(api, flags):
    assert evaluated(ask(api))["gift-cards"]["isEnabled"] is False
    FlagEnvironment.objects.filter(flag__name="checkout-redesign").update(enabled=True)
    assert evaluated(ask(api))["gift-cards"]["isEnabled"] is True
    Flag.objects.filter(name="gift-cards").update(archived_at=timezone.now())
    assert "gift-cards" not in evaluated(ask(api))


def test_at_most_four_queries(api, flags, django_assert_max_num_queries):
    ask(api, "member")
    with django_assert_max_num_queries(4):
        ask(api, "member", projects=["shop"])


def test_the_cache_is_bounded(api, flags, settings):
    cache.clear()
    settings.SNAPSHOT_CACHE_BYTES = 1
    ask(api, projects=["shop"])
    one = cache.nbytes
    ask(api, projects=["docs"])
    assert 0 < cache.nbytes < one
    cache.clear()
    assert cache.nbytes == 0


def test_odd_stored_data_never_break_it(api, shop):
    live_flag(
        "odd",
        strategies=(
            {
                "name": "flexibleRollout",
                "parameters": {"rollout": None, "groupId": {}},
                "constraints": [None],
            },
            {"name": "default", "constraints": [{"operator": "REGEX", "value": "(["}], "variants": {"a": 1}},
        ),
        variants=[None, {"name": None, "weight": "x"}],
    )
    assert evaluated(ask(api))["odd"]["isEnabled"] is False


def test_advanced(api, flags):
    response = api["viewer"].post(
        URL + "/advanced",
        {
            "environments": ["development", "production"],
            "projects": ["shop"],
            "context": {"userId": "42,7", "bad": 5, "properties": {"plan": "pro"}},
        },
    )
    answer = response.json()
    assert answer["warnings"] == {"invalidContextProperties": ["bad"]}
    [dark] = [feature for feature in answer["features"] if feature["name"] == "dark-theme"]
    assert (dark["projectId"], list(dark["environments"])) == ("shop", ["development", "production"])
    first, second = dark["environments"]["production"]
    assert (first["context"], first["isEnabled"]) == ({"userId": "42", "plan": "pro"}, False)
    assert (second["context"], second["isEnabled"]) == ({"userId": "7", "plan": "pro"}, True)
    assert first["environment"] == "production"


def test_advanced_has_a_limit(api, flags, settings):
    settings.PLAYGROUND_MAX_EVALUATIONS = 5
    cache.clear()
    body = {"environments": ["production"], "projects": ["shop"], "context": {"userId": "1,2"}}
    record = refused(api["viewer"].post(URL + "/advanced", body), 400, "ValidationError")
    assert "6 evaluations; the limit is 5" in record["message"]
    assert not cache.entries()  # nothing was compiled for it


def test_advanced_names_the_unknown_environments(api, flags):
    body = {"environments": ["production", "nosuch", "nowhere", "nosuch"], "context": {}}
    record = refused(api["viewer"].post(URL + "/advanced", body), 400, "ValidationError")
    assert [problem["path"] for problem in record["details"]] == ["environments[1]", "environments[2]"]


def test_advanced_without_flags_has_nothing_to_combine(api, flags):
    """The limit is on evaluations, of which there are none: a billion contexts must not be walked through."""
    many = "x," * 50_000
    body = {"environments": ["production"], "projects": [], "context": {"userId": many, "sessionId": many}}
    assert api["viewer"].post(URL + "/advanced", body).json()["features"] == []
