"""Recent activity in the project list and the project overview."""

from datetime import timedelta

from django.utils import timezone

from groups.models import Grant
from groups.permissions import BuiltIn
from projects.models import Flag, FlagLastSeen, LifecycleStage
from tests.support.cast import make_group
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.sdk import make_sdk

LIST = "/api/admin/projects"
OVERVIEW = "/api/admin/projects/shop/overview"


def listed(client):
    return next(project for project in client.get(LIST).json()["projects"] if project["id"] == "shop")


def both(client):
    return listed(client), client.get(OVERVIEW).json()


def test_a_project_without_flags_and_with_debt(api, shop):
    for document in both(api["viewer"]):
        assert document["onboardingStatus"] == {"status": "onboarding-started"}
        assert (document["lastReportedFlagUsage"], document["lastUpdatedAt"]) == (None, None)
        assert (document["health"], document["technicalDebt"]) == (100, 0)
    assert document["updatedAt"] == document["createdAt"]

    make_flag("live")
    make_flag("tired", stale=True)
    for shown in both(api["viewer"]):
        assert (shown["health"], shown["technicalDebt"]) == (50, 50)


def test_its_first_flag_is_named_until_an_sdk_asks_and_activity_counts(api, shop):
    for name in ("first", "second"):
        api["member"].post("/api/admin/projects/shop/features", {"name": name})
    for shown in both(api["viewer"]):
        assert shown["onboardingStatus"] == {"status": "first-flag-created", "feature": "first"}
        assert shown["lastUpdatedAt"]
    assert shown["updatedAt"] == shown["lastUpdatedAt"]
    assert make_sdk(projects=["shop"]).count("web", ["second"]).status_code == 202
    for shown in both(api["viewer"]):
        assert shown["onboardingStatus"] == {"status": "onboarded"}
        assert shown["lastReportedFlagUsage"]

    stats = api["viewer"].get(OVERVIEW).json()["stats"]
    assert (stats["projectActivityCurrentWindow"], stats["projectActivityPastWindow"]) == (2, 0)
    assert stats["projectMembersAddedCurrentWindow"] == 3  # owner, member and reader
    assert stats["avgTimeToProdCurrentWindow"] == 0


@for_each(("age", "expected"), [(1, (1, 0, 1, 0)), (40, (0, 1, 0, 1)), (90, (0, 0, 0, 0))])
def test_flags_of_this_window_and_the_one_before(api, shop, age, expected):
    make_flag("old", archived=True)
    moment = timezone.now() - timedelta(days=age)
    Flag.objects.update(created_at=moment, archived_at=moment)
    stats = api["viewer"].get(OVERVIEW).json()["stats"]
    names = ("createdCurrentWindow", "createdPastWindow", "archivedCurrentWindow", "archivedPastWindow")
    assert tuple(stats[name] for name in names) == expected


def test_days_to_production(api, shop):
    now = timezone.now()
    for name, age in (("quick", 2), ("slow", 5)):
        flag = make_flag(name)
        Flag.objects.filter(pk=flag.pk).update(created_at=now - timedelta(days=age))
        FlagLastSeen.objects.create(flag=flag, environment="production", seen_at=now)
    LifecycleStage.objects.filter(stage="live").update(entered_at=now)
    assert api["viewer"].get(OVERVIEW).json()["stats"]["avgTimeToProdCurrentWindow"] == 3.5


def test_a_new_member_counts_once_however_many_roles_it_has(api, people, shop):
    def added():
        return api["viewer"].get(OVERVIEW).json()["stats"]["projectMembersAddedCurrentWindow"]

    group = make_group("testers", people["owner"], people["outsider"], people["service"])
    for role in (BuiltIn.MEMBER, BuiltIn.READER):
        Grant.objects.create(role_id=role, project=shop, group=group)
    Grant.objects.create(role_id=BuiltIn.MEMBER, project=shop, user=people["owner"])
    assert added() == 5  # owner, member, reader, outsider and service
    long_ago = timezone.now() - timedelta(days=40)
    Grant.objects.filter(user=people["owner"], role=BuiltIn.OWNER).update(created_at=long_ago)
    assert added() == 4
    Grant.objects.filter(group=group).update(created_at=long_ago)
    assert added() == 4  # outsider and service joined the group now
    group.memberships.update(joined_at=long_ago)
    assert added() == 2
    assert api["viewer"].get(OVERVIEW).json()["members"] == 5
