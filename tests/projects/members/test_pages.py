"""/projects/ID/access/: who has which role; removing roles."""

from groups.models import Grant, Group, Role, RolePermission
from groups.permissions import BuiltIn
from tests.support.for_each import for_each
from tests.support.page_text import page_text

MEMBER = BuiltIn.MEMBER.value


def test_holders_are_listed_with_the_environments_of_their_roles(browse, people, shop):
    Grant.objects.create(group=Group.objects.create(name="Team"), project=shop, role_id=MEMBER)
    lines = b"".join(browse("reader").get("/projects/shop/access/?format=csv").streaming_content).decode()

    assert {tuple(line.split(",")[:3]) for line in lines.splitlines()[1:]} == {
        ("member", "person", "Member"),
        ("owner", "person", "Owner"),
        ("reader", "person", "Reader"),
        ("Team", "group", "Member"),
    }

    tester = Role.objects.create(name="Tester", type="custom")
    RolePermission.objects.create(
        role=tester, permission="UPDATE_FEATURE_ENVIRONMENT", environment_id="development"
    )
    Grant.objects.create(user=people["outsider"], project=shop, role=tester)

    lines = b"".join(browse("owner").get("/projects/shop/access/?format=csv").streaming_content).decode()
    places = {line.split(",")[2]: line.split(",")[3] for line in lines.splitlines()[1:]}
    assert places == {"Owner": "all", "Member": "all", "Reader": "", "Tester": "development"}


def test_a_grant_of_another_project_is_not_taken_here(browse, people, shop):
    grant = Grant.objects.create(user=people["outsider"], project_id="default", role_id=MEMBER)
    answer = browse("owner").post("/projects/shop/access/take", {"grant": grant.pk}, follow=True)

    assert "This role has already been revoked." in page_text(answer)
    assert Grant.objects.filter(pk=grant.pk).exists()


@for_each("who", ["viewer", "member", "reader"])
def test_others_look_and_are_told_what_they_need(browse, people, shop, who):
    browser = browse(who)
    page = browser.get("/projects/shop/access/")

    assert "access/invite" not in page.text
    needed = 'you need the "Grant and revoke roles" or "Manage the project" permission in Shop.'
    assert needed in page_text(page)
