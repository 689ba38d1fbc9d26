"""/api/admin/ui-config and /api/admin/instance-admin/statistics."""

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from flagadmin import __version__
from flagadmin.core.audit.models import AuditEvent
from groups.models import User
from projects.installation.pages import BY_PERIOD, COUNTS, PERIODS, flatten_statistics
from projects.models import Flag, Strategy, UsageHour
from tests.support.cast import client, make_token, make_user
from tests.support.for_each import for_each
from tests.support.page_text import page_text

CORS = "/api/admin/ui-config/cors"
STATISTICS = "/api/admin/instance-admin/statistics"
APP = "https://app.example.org"


@pytest.fixture
def frontend(shop):
    return client(make_token("frontend", environment="production"))


def allowed(frontend, origin=APP):
    answer = frontend.get("/api/frontend", HTTP_ORIGIN=origin)
    preflight = client().options("/api/frontend", HTTP_ORIGIN=origin)
    headers = [each.headers.get("Access-Control-Allow-Origin") for each in (answer, preflight)]
    assert headers[0] == headers[1]
    return headers[0]


class TestOrigins:
    def test_from_the_environment_until_they_are_set(self, api, settings, frontend):
        settings.FRONTEND_API_ORIGINS = ["https://old.example.org"]
        assert api["viewer"].get(CORS).json() == {"frontendApiOrigins": ["https://old.example.org"]}
        assert (allowed(frontend), allowed(frontend, "https://old.example.org")) == (
            None,
            "https://old.example.org",
        )

    def test_an_admin_sets_the_origins_or_none(self, api, frontend):
        assert allowed(frontend) == "*"
        body = {"frontendApiOrigins": [f"{APP}/", "HTTPS://Other.example.org:8443", APP]}
        response = api["admin"].post(CORS, body)
        assert (response.status_code, response.content) == (204, b"")
        assert (allowed(frontend), allowed(frontend, "https://evil.example")) == (APP, None)
        stored = [APP, "https://other.example.org:8443"]
        assert api["viewer"].get(CORS).json() == {"frontendApiOrigins": stored}
        assert api["viewer"].get("/api/admin/ui-config").json()["frontendApiOrigins"] == stored
        event = AuditEvent.objects.get(type="setting-updated")
        assert (event.before, event.after) == ({"frontend_origins": None}, {"frontend_origins": stored})
        api["admin"].post(CORS, {"frontendApiOrigins": []})
        assert allowed(frontend) is None

    @for_each(
        "origin", ["app.example.org", "https://", "https://a/b", "https://u@a", "https://a,b", "null", "**"]
    )
    def test_what_is_no_origin_is_refused(self, api, origin):
        response = api["admin"].post(CORS, {"frontendApiOrigins": [APP, origin]})
        assert response.status_code == 400
        assert response.json()["details"][0]["path"] == "frontendApiOrigins[1]"

    @for_each("origins", [None, "*", [None], [1, {}], ["*"] * 101])
    def test_anything_but_a_list_of_origins_is_refused(self, api, origins):
        assert api["admin"].post(CORS, {"frontendApiOrigins": origins}).status_code == 400

    def test_in_the_console(self, browse, frontend):
        page = browse("admin").post("/installation/", {"origins": f"{APP}\nhttps://b.example.org"})
        assert page.status_code == 302
        assert allowed(frontend, "https://b.example.org") == "https://b.example.org"
        refused = browse("admin").post("/installation/", {"origins": "nonsense"})
        assert refused.status_code == 400
        assert "nonsense is not an origin" in refused.text


def test_the_configuration_for_the_console_of_clients(api, settings):
    settings.PUBLIC_URL = "https://flags.example.org"
    config = api["outsider"].get("/api/admin/ui-config").json()
    assert config["version"] == __version__
    assert config["unleashUrl"] == "https://flags.example.org"
    assert (config["maintenanceMode"], config["disablePasswordAuth"], config["emailEnabled"]) == (
        False,
        False,
        False,
    )
    assert config["resourceLimits"]["constraintValues"] == settings.CONSTRAINT_VALUES_LIMIT
    assert config["resourceLimits"]["segmentValues"] == settings.SEGMENT_VALUES_LIMIT


class TestStatistics:
    def test_people_and_tokens(self, api, people):
        User.objects.filter(username="viewer").update(seen_at=timezone.now() - timedelta(days=40))
        User.objects.filter(username="editor").update(seen_at=timezone.now())
        make_token("backend", environment="production")
        make_token("backend", environment="production", name="old", type_name="client")
        make_user("nobody")
        counts = api["admin_token"].get(STATISTICS).json()
        assert (counts["users"], counts["serviceAccounts"]) == (8, 1)
        assert counts["activeUsers"] == {"last7": 1, "last30": 1, "last60": 2, "last90": 2}
        assert counts["apiTokens"] == {"admin": 1, "client": 1, "backend": 1, "frontend": 0}
        assert counts["readOnlyUsers"] == 4  # viewer, reader, outsider, nobody
        assert (counts["roles"], counts["customRootRoles"]) == (6, 0)

    def test_flags_and_their_largest(self, api, shop):
        now = timezone.now()
        flag = Flag.objects.create(name="cart", project=shop, created_at=now)
        Flag.objects.create(name="gone", project=shop, created_at=now, archived_at=now)
        values = [{"contextName": "userId", "operator": "IN", "values": ["1", "2", "3"]}]
        for constraints in (values, values * 2, []):
            Strategy.objects.create(
                flag=flag, environment_id="production", name="default", constraints=constraints
            )
        counts = api["admin"].get(STATISTICS).json()
        assert (counts["featureToggles"], counts["archivedFeatureToggles"], counts["projects"]) == (1, 1, 2)
        largest = ("maxEnvironmentStrategies", "maxConstraints", "maxConstraintValues")
        assert [counts[name] for name in largest] == [3, 2, 3]

    def test_statistics_add_up_what_happened(self, api, shop):
        yesterday = datetime.now(UTC).replace(hour=5, minute=0, second=0, microsecond=0) - timedelta(days=1)
        for number, (yes, variants) in enumerate([(1, {"a": 1, "b": 2}), (0, {}), (3, {"a": 3})]):
            UsageHour.objects.create(
                flag_id=1, environment="production", hour=yesterday, application_id=number, yes=yes,
                variants=variants,
            )  # fmt: skip
        flag = api["admin"].post("/api/admin/projects/shop/features", {"name": "cart"}).json()["name"]
        path = f"/api/admin/projects/shop/features/{flag}/environments"
        api["admin"].post(f"{path}/production/on")
        api["admin"].post(f"{path}/development/on")
        api["admin"].post(
            "/api/admin/features-batch/export", {"environment": "production", "project": "shop"}
        )
        counts = api["admin"].get(STATISTICS).json()
        in_production = AuditEvent.objects.filter(environment="production").count()
        assert in_production > 0
        assert counts["productionChanges"] == {f"last{days}": in_production for days in (30, 60, 90)}
        assert (counts["featureExports"], counts["featureImports"]) == (1, 0)
        assert counts["previousDayMetricsBucketsCount"] == {"enabledCount": 2, "variantCount": 3}
        assert counts["clientApps"][-1] == {"range": "allTime", "count": 0}

    def test_the_installation_keeps_its_id_and_csv_has_one_line(self, api):
        first, second = (api["admin"].get(STATISTICS).json()["instanceId"] for _ in range(2))
        assert first == second
        assert len(first) == 36
        answer = api["admin"].get(f"{STATISTICS}/csv")
        assert answer["Content-Type"].startswith("text/csv")
        header, line = csv.reader(io.StringIO(answer.getvalue().decode()))
        row = dict(zip(header, line, strict=True))
        assert (row["users"], row["apiTokens.admin"], row["clientApps.allTime"]) == ("7", "0", "0")

    def test_the_page_shows_all_of_them_in_words(self, api, browse):
        page = page_text(browse("admin").get("/installation/"))
        assert f"Version{__version__} Instance ID" in page
        assert "In the last7 days30 days60 days90 days Active users0000 Active applications00––" in page
        assert f"Users{User.objects.filter(is_service=False).count()} Users without permissions" in page
        names = flatten_statistics(api["admin"].get(STATISTICS).json()).keys()
        facts = {"versionOSS", "instanceId", "OIDCenabled", "passwordAuthEnabled"}
        counts = {name for rows in COUNTS.values() for _, name in rows}
        by_period = {name.format(days) for _, name in BY_PERIOD for days in PERIODS} & names
        unused = {"timestamp", "SAMLenabled", "SCIMenabled"}
        assert facts | counts | by_period == names - unused
