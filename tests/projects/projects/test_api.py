"""Listing, creating, changing, archiving and reviving projects."""

from datetime import timedelta

from django.utils import timezone

from groups.models import Grant, Group, GroupMembership
from groups.permissions import BuiltIn
from projects.flags.lists.conditions import overdue
from projects.models import FavoriteProject, Flag, Project
from projects.projects.queries import count_flags
from tests.support.cast import make_project
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.records import events, refused

URL = "/api/admin/projects"


def test_listed_with_counts(api, people):
    make_flag("live")
    make_flag("tired", stale=True)
    make_flag("old", archived=True)
    group = Group.objects.create(name="crew")
    for name in ("member", "outsider"):
        GroupMembership.objects.create(group=group, user=people[name])
    Grant.objects.create(role_id=BuiltIn.MEMBER, project_id="shop", group=group)
    FavoriteProject.objects.create(project_id="shop", user=people["viewer"])
    listed = api["viewer"].get(URL).json()
    assert listed["version"] == 1
    assert [project["id"] for project in listed["projects"]] == ["default", "shop"]
    shop = listed["projects"][1]
    assert (shop["featureCount"], shop["archivedFeatureCount"], shop["staleFeatureCount"]) == (2, 1, 1)
    assert shop["memberCount"] == 4  # owner, member, reader and outsider; member once
    assert (shop["health"], shop["favorite"]) == (50, True)
    assert [owner["name"] for owner in shop["owners"]] == ["owner"]


def test_the_counts_know_the_same_overdue_flags_as_lists_of_flags(shop):
    long_ago = timezone.now() - timedelta(days=100)
    for kind in ("release", "operational", "kill-switch", "of no type"):
        make_flag(f"{kind.replace(' ', '-')}-old", type=kind, created_at=long_ago)
        make_flag(f"{kind.replace(' ', '-')}-new", type=kind)
    make_flag("tired", created_at=long_ago, stale=True)
    listed = Flag.objects.filter(overdue(timezone.now()), project=shop)
    assert sorted(flag.name for flag in listed) == ["operational-old", "release-old"]
    assert count_flags(["shop"])["shop"]["potentiallyStaleFeatureCount"] == 2


def test_a_list_takes_as_many_queries_for_many_projects(api, django_assert_max_num_queries):
    api["viewer"].get(URL)
    for number in range(20):
        make_project(f"p{number}")
    with django_assert_max_num_queries(7):
        assert len(api["viewer"].get(URL).json()["projects"]) == 22


def test_what_one_may_read_is_listed_and_archived_ones_apart(api):
    assert [project["id"] for project in api["reader"].get(URL).json()["projects"]] == ["shop"]
    assert api["outsider"].get(URL).json()["projects"] == []
    refused(api["outsider"].get(f"{URL}/shop"), 404, "NotFoundError")

    Project.objects.filter(pk="shop").update(archived_at="2026-01-01T00:00:00Z")
    assert [project["id"] for project in api["viewer"].get(URL).json()["projects"]] == ["default"]
    archived = api["viewer"].get(f"{URL}?archived=true").json()["projects"]
    assert [project["id"] for project in archived] == ["shop"]
    refused(api["viewer"].get(f"{URL}?archived=perhaps"), 400, "ValidationError")


def test_created_with_all_there_is_to_say(api, people):
    body = {
        "id": "depot",
        "name": "Depot",
        "description": "Where things lie",
        "mode": "open",
        "defaultStickiness": "userId",
        "featureLimit": 10,
        "featureNaming": {"pattern": "depot-[a-z]+", "example": "depot-door", "description": "lower case"},
        "environments": ["production"],
    }
    response = api["editor"].post(URL, body)
    assert response.status_code == 201
    document = response.json()
    assert document.pop("createdAt")
    assert document == body | {
        "archivedAt": None,
        "refuseBrokenExpectations": False,
        "commentLinks": [],
        "linkTemplates": [],
    }
    overview = api["viewer"].get(f"{URL}/depot/overview").json()
    assert overview["environments"] == [{"environment": "production"}]
    assert overview["featureNaming"] == body["featureNaming"]
    assert Grant.objects.get(project_id="depot").user == people["editor"]
    assert events("project-created")[0].after["environments"] == ["production"]


def test_created_by_a_token_without_owner_and_with_every_enabled_environment(api):
    assert api["admin_token"].post(URL, {"id": "owned", "name": "Owned"}).status_code == 201
    assert not Grant.objects.filter(project_id="owned").exists()

    api["admin"].post("/api/admin/environments", {"name": "asleep", "type": "test", "enabled": False})
    made = api["editor"].post(URL, {"id": "depot", "name": "Depot"}).json()
    assert made["environments"] == ["development", "production"]


def test_an_id_is_made_from_the_name(api):
    made = [api["editor"].post(URL, {"name": "My Größe!"}).json()["id"] for _ in range(3)]
    assert made == ["my-groe", "my-groe-1", "my-groe-2"]
    assert api["editor"].post(URL, {"name": "日本"}).json()["id"] == "project"
    assert api["editor"].post(URL, {"name": "Archive", "id": ""}).json()["id"] == "archive-1"


@for_each("identifier", ["a b", "ä", "a/b", "..", "x" * 101, "archive", "validate"])
def test_ids_that_are_refused(api, identifier):
    record = refused(api["editor"].post(URL, {"id": identifier, "name": "X"}), 400, "ValidationError")
    assert record["details"][0]["path"] == "id"
    refused(api["editor"].post(f"{URL}/validate", {"id": identifier}), 400, "ValidationError")


@for_each(
    ("change", "path"),
    [
        ({"environments": ["nosuch"]}, "environments[0]"),
        ({"environments": []}, "environments"),
        ({"mode": "secret"}, "mode"),
        ({"defaultStickiness": "nosuch"}, "defaultStickiness"),
        ({"featureLimit": 0}, "featureLimit"),
        ({"featureLimit": 2**31}, "featureLimit"),
        ({"featureNaming": {"pattern": "("}}, "featureNaming.pattern"),
        ({"featureNaming": {"pattern": "(?=a)"}}, "featureNaming.pattern"),
        ({"featureNaming": {"pattern": "a" * 2_001}}, "featureNaming.pattern"),
        ({"featureNaming": {"pattern": r"\p{L}{1,300}"}}, "featureNaming.pattern"),
        ({"featureNaming": {"pattern": "a+", "example": "b"}}, "featureNaming.example"),
        ({"featureNaming": {"pattern": None, "example": "b"}}, "featureNaming.example"),
        ({"featureNaming": {"pattern": "", "description": "b"}}, "featureNaming.description"),
        ({"name": " "}, "name"),
    ],
)
def test_values_that_are_refused(api, change, path):
    for response in (
        api["editor"].post(URL, {"id": "depot", "name": "Depot"} | change),
        api["admin"].put(f"{URL}/shop/settings", change) if "environments" not in change else None,
    ):
        if response is not None:
            record = refused(response, 400, "ValidationError")
            assert [problem["path"] for problem in record["details"]] == [path]
    assert not Project.objects.filter(pk="depot").exists()


def test_problems_name_valid_values_and_come_all_at_once(api):
    record = refused(
        api["admin"].put(f"{URL}/shop", {"name": "Shop", "mode": "secret"}), 400, "ValidationError"
    )
    assert record["details"] == [
        {"path": "mode", "message": "must be open, private or protected, not secret"}
    ]

    body = {"id": "a b", "name": "X", "defaultStickiness": "nosuch", "environments": ["nosuch"]}
    record = refused(api["editor"].post(URL, body), 400, "ValidationError")
    assert [problem["path"] for problem in record["details"]] == [
        "id",
        "defaultStickiness",
        "environments[0]",
    ]


def test_a_taken_id(api):
    refused(api["editor"].post(URL, {"id": "shop", "name": "Other"}), 409, "NameExistsError")
    refused(api["editor"].post(f"{URL}/validate", {"id": "shop"}), 409, "NameExistsError")
    assert api["editor"].post(f"{URL}/validate", {"id": "depot"}).status_code == 200
    refused(api["viewer"].post(f"{URL}/validate", {}), 403, "NoAccessError")


def test_changed_leaving_what_is_not_given(api):
    assert api["owner"].put(f"{URL}/shop", {"name": "The shop", "description": "sells"}).status_code == 200
    settings = {"featureLimit": 5, "featureNaming": {"pattern": "shop\\..+"}}
    assert api["owner"].put(f"{URL}/shop/settings", settings).status_code == 200
    shop = Project.objects.get(pk="shop")
    assert (shop.name, shop.flag_limit, shop.naming_pattern) == ("The shop", 5, "shop\\..+")
    assert api["owner"].put(f"{URL}/shop/settings", {"featureNaming": None}).status_code == 200
    assert Project.objects.get(pk="shop").naming_pattern == ""
    first, *_ = events("project-updated")
    assert (first.before["name"], first.after["name"]) == ("Shop", "The shop")


def test_archived_and_revived(api):
    make_flag("old", archived=True)
    assert api["owner"].post(f"{URL}/archive/shop", {}).status_code == 200
    assert api["owner"].post(f"{URL}/archive/shop", {}).status_code == 200
    assert Project.objects.get(pk="shop").archived_at is not None
    refused(api["owner"].put(f"{URL}/shop", {"name": "X"}), 404, "NotFoundError")
    assert api["owner"].get(f"{URL}/shop/overview").json()["archivedAt"]
    assert api["owner"].post(f"{URL}/revive/shop", {}).status_code == 200
    assert Project.objects.get(pk="shop").archived_at is None
    kinds = [event.type for event in events("project-archived", "project-revived")]
    assert kinds == ["project-archived", "project-revived"]


def test_not_archived_with_active_flags_and_the_default_one_never(api):
    make_flag("live-b")
    make_flag("live-a")
    record = refused(api["owner"].post(f"{URL}/archive/shop", {}), 403, "InvalidOperationError")
    assert [problem["path"] for problem in record["details"]] == ["live-a", "live-b"]
    assert Project.objects.get(pk="shop").archived_at is None

    refused(api["admin"].post(f"{URL}/archive/default", {}), 403, "InvalidOperationError")


@for_each(
    ("method", "path"),
    [
        ("get", "nope"),
        ("get", "nope/overview"),
        ("put", "nope"),
        ("put", "nope/settings"),
        ("post", "archive/nope"),
        ("post", "revive/nope"),
    ],
)
def test_an_unknown_project(api, method, path):
    for who in ("admin", "viewer", "outsider"):
        refused(getattr(api[who], method)(f"{URL}/{path}", {}), 404, "NotFoundError")


def test_an_editor_may_in_the_default_project_only(api):
    assert api["editor"].put(f"{URL}/default", {"description": "all"}).status_code == 200
    refused(api["editor"].put(f"{URL}/shop", {"description": "all"}), 403, "NoAccessError")
