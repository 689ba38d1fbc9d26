"""POST /api/admin/projects/:projectId/features: creating flags."""

from flagadmin.core.audit.models import AuditEvent
from projects.models import Flag, LifecycleStage
from tests.support.cast import make_project
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.records import refused

PATH = "/api/admin/projects/shop/features"


def create(client, path=PATH, **body):
    return client.post(path, body, format="json")


def test_a_flag_is_off_everywhere_and_has_its_defaults(api):
    response = create(api["member"], name="new-one")
    assert response.status_code == 201
    record = response.json()
    assert record.pop("createdAt").endswith("Z")
    assert record == {
        "name": "new-one",
        "description": None,
        "type": "release",
        "project": "shop",
        "stale": False,
        "impressionData": False,
        "archived": False,
    }
    flag = Flag.objects.get()
    assert flag.created_by.username == "member"
    assert dict(flag.environments.values_list("environment", "enabled")) == {
        "development": False,
        "production": False,
    }
    assert flag.lifecycle.get().stage == LifecycleStage.Stage.INITIAL
    event = AuditEvent.objects.get()
    assert (event.type, event.feature, event.actor_name) == ("feature-created", "new-one", "member")
    assert event.after["name"] == "new-one"


def test_everything_given_is_stored(api):
    response = create(
        api["member"],
        name="full",
        type="kill-switch",
        description="stops it",
        impressionData=True,
        stale=True,
        tags=[{"type": "simple", "value": "two words"}],
    )
    assert response.status_code == 201
    flag = Flag.objects.get()
    assert (flag.type, flag.description, flag.impression_data, flag.stale) == (
        "kill-switch", "stops it", True, True,
    )  # fmt: skip
    assert [tag.value for tag in flag.tags.all()] == ["two words"]

    assert create(api["member"], name="odd", type="experiment", description="").status_code == 201
    flag = Flag.objects.get(name="odd")
    assert (flag.type, flag.description) == ("experiment", None)


@for_each("role", ["admin", "owner", "member", "admin_token"])
def test_who_may(api, role):
    assert create(api[role], name="x").status_code == 201


def test_unknown_and_archived_projects(api, shop):
    refused(create(api["admin"], "/api/admin/projects/nope/features", name="x"), 404, "NotFoundError")
    shop.archived_at = shop.created_at
    shop.save()
    refused(create(api["admin"], name="x"), 404, "NotFoundError")


def test_every_problem_at_once(api):
    record = refused(
        create(api["member"], name="a b", type="bogus", tags=[{"type": "nope", "value": "x"}]),
        400,
        "ValidationError",
    )
    paths = ["name", "type", "tags[0].type", "tags[0].value"]
    assert [problem["path"] for problem in record["details"]] == paths
    assert "kill-switch" in record["details"][1]["message"]


def test_malformed_bodies(api):
    record = refused(create(api["member"], stale="maybe"), 400, "ValidationError")
    assert {problem["path"] for problem in record["details"]} == {"name", "stale"}
    refused(api["member"].post(PATH, [], format="json"), 400, "ValidationError")
    refused(api["member"].post(PATH, "a=b", content_type="text/plain"), 415, "ContentTypeError")


def test_a_name_is_taken_in_all_projects_also_by_archived_flags(api):
    make_flag("mine")
    make_flag("far", make_project("other"), archived=True)
    refused(create(api["member"], name="mine"), 409, "NameExistsError")
    record = refused(create(api["admin"], name="far"), 409, "NameExistsError")
    assert "in project other, archived" in record["message"]
    record = refused(create(api["member"], name="far"), 409, "NameExistsError")
    assert "other" not in record["message"]
    assert create(api["member"], name="Mine").status_code == 201


def test_the_naming_pattern(api, shop):
    shop.naming_pattern, shop.naming_example = "shop-.+", "shop-cart"
    shop.save()
    record = refused(create(api["member"], name="cart"), 400, "ValidationError")
    assert "shop-cart" in record["details"][0]["message"]
    assert create(api["member"], name="shop-cart").status_code == 201


def test_a_full_project(api, shop):
    shop.flag_limit = 1
    shop.save()
    make_flag("archived", archived=True)
    assert create(api["member"], name="one").status_code == 201
    refused(create(api["member"], name="two"), 403, "InvalidOperationError")


def test_a_full_installation(api, settings):
    settings.FLAGS_LIMIT = 1
    make_flag("elsewhere", make_project("other"))
    refused(create(api["member"], name="two"), 400, "ValidationError")


def test_asking_whether_a_name_could_be_created(api, shop):
    shop.naming_pattern = "ok-.+"
    shop.save()
    make_flag("ok-taken")
    path = "/api/admin/features/validate"
    assert create(api["viewer"], path, name="free").status_code == 200
    refused(create(api["viewer"], path, name="a b"), 400, "ValidationError")
    refused(create(api["viewer"], path, name="free", projectId="shop"), 400, "ValidationError")
    refused(create(api["viewer"], path, name="ok-taken"), 409, "NameExistsError")
    refused(create(api["outsider"], path, name="ok-a", projectId="shop"), 400, "ValidationError")
    assert not Flag.objects.filter(name="free").exists()
