"""Changes to projects, environments and project access on the admin site obey the rules of the API."""

import json

import pytest

from groups.models import Grant
from groups.permissions import BuiltIn
from projects.models import Environment, Flag, Project, ProjectEnvironment
from projects.revision import read_revisions
from tests.support.admin_forms import errors_of, refusals, saved, send, site
from tests.support.cast import make_project
from tests.support.flags import make_flag
from tests.support.records import events

__all__ = ["site"]

PROJECTS = "/admin/projects/project/"


def test_a_project_is_created_with_its_environments(site):
    saved(send(site, f"{PROJECTS}add/", id="depot", name="Depot"))
    assert Project.objects.get(pk="depot").environments.count() == 2
    assert events("project-created")[0].actor_name == "admin"


def test_a_project_is_changed(site, shop):
    link = {"title": None, "urlTemplate": "https://example.com/{{feature}}"}
    values = {"name": "The shop", "flag_limit": "7", "link_templates": json.dumps([link])}
    saved(send(site, f"{PROJECTS}shop/change/", **values))
    changed = Project.objects.get(pk="shop")
    assert (changed.name, changed.flag_limit, changed.link_templates) == ("The shop", 7, [link])
    (event,) = events("project-updated")
    assert (event.before["name"], event.after["name"]) == ("Shop", "The shop")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"naming_pattern": "("}, "is not a valid regular expression"),
        ({"naming_pattern": "a+", "naming_example": "b"}, "does not match"),
        ({"default_stickiness": "nosuch"}, "Available:"),
        ({"link_templates": "[1]"}, "must have a title and a urlTemplate"),
        ({"link_templates": "null"}, "must be a list"),
        ({"comment_links": '[{"pattern": "("}]'}, "commentLinks"),
        ({"comment_links": "{}"}, "must be a list"),
    ],
)
def test_invalid_values_are_refused(site, shop, changes, message):
    response = send(site, f"{PROJECTS}shop/change/", **changes)
    assert any(message in text for text in errors_of(response))
    assert events("project-updated") == []


def test_environments_and_roles_of_a_project_are_changed(site, shop, people):
    strategy = {"name": "flexibleRollout", "parameters": {"rollout": "50"}}
    saved(
        send(
            site,
            f"{PROJECTS}shop/change/",
            **{
                "environment_links-0-default_strategy": json.dumps(strategy),
                "environment_links-1-DELETE": "on",
                "grants-TOTAL_FORMS": "4",
                "grants-3-role": str(BuiltIn.READER),
                "grants-3-user": str(people["outsider"].pk),
            },
        )
    )
    (link,) = ProjectEnvironment.objects.filter(project="shop")
    assert link.default_strategy["parameters"]["rollout"] == "50"
    assert Grant.objects.filter(project="shop", user=people["outsider"], role=BuiltIn.READER).exists()
    assert len(events("default-strategy-updated", "project-environment-removed", "project-access-added")) == 3


# Deleting -------------------------------------------------------------------------------------------------


def test_a_project_with_an_active_flag_is_not_deleted(site, shop):
    make_flag("menu")
    page = site.get(f"{PROJECTS}shop/delete/").content.decode()
    assert "1 flag is still active in project shop: menu" in page
    for response in (
        site.post(f"{PROJECTS}shop/delete/", {"post": "yes"}),
        site.post(PROJECTS, {"action": "delete_selected", "_selected_action": ["shop"], "post": "yes"}),
    ):
        assert "1 flag is still active in project shop: menu" in response.content.decode()
    assert Project.objects.filter(pk="shop").exists()
    assert events("project-deleted") == []


def test_a_project_is_deleted_with_its_archived_flags(site, shop):
    make_flag("old", archived=True)
    assert "its 1 archived flag" in site.get(f"{PROJECTS}shop/delete/").content.decode()
    response = site.post(f"{PROJECTS}shop/delete/", {"post": "yes"})
    assert response.status_code == 302
    assert not Project.objects.filter(pk="shop").exists()
    assert not Flag.objects.exists()
    assert [event.type for event in events("feature-deleted", "project-deleted")] == [
        "feature-deleted",
        "project-deleted",
    ]


def test_many_projects_are_deleted_all_or_none(site, shop):
    make_project("depot")
    make_project("yard")
    post = {"action": "delete_selected", "_selected_action": ["depot", "default"], "post": "yes"}
    assert "The default project cannot be deleted" in site.post(PROJECTS, post).content.decode()
    assert Project.objects.filter(pk="depot").exists()
    site.post(PROJECTS, post | {"_selected_action": ["depot", "yard"]})
    assert set(Project.objects.values_list("pk", flat=True)) == {"default", "shop"}
    assert len(events("project-deleted")) == 2


def test_a_change_between_the_page_and_its_confirmation_is_respected(site, shop, monkeypatch):
    """A flag that became active after the page was looked at is found by the deletion itself."""
    from projects.admin import ProjectAdmin

    make_flag("menu")
    monkeypatch.setattr(ProjectAdmin, "deletion_blockers", lambda *args: [])
    response = site.post(f"{PROJECTS}shop/delete/", {"post": "yes"})
    assert "1 flag is still active in project shop: menu" in refusals(response)[0]
    assert Project.objects.filter(pk="shop").exists()
    response = site.post(PROJECTS, {"action": "delete_selected", "_selected_action": ["shop"], "post": "yes"})
    assert "still active" in refusals(response)[0]


def test_projects_are_archived_and_revived_in_bulk(site, shop):
    site.post(PROJECTS, {"action": "archive", "_selected_action": ["shop"]})
    assert Project.objects.get(pk="shop").archived_at is not None
    site.post(PROJECTS, {"action": "revive", "_selected_action": ["shop"]})
    assert Project.objects.get(pk="shop").archived_at is None
    make_flag("menu")
    response = site.post(PROJECTS, {"action": "archive", "_selected_action": ["shop"]})
    assert "menu" in refusals(response)[0]


def test_an_environment_in_use_is_kept(site, shop):
    response = site.post("/admin/projects/environment/production/delete/", {"post": "yes"})
    assert "in use in 2 projects" in response.text
    saved(send(site, "/admin/projects/environment/add/", name="staging", type="test"))
    saved(send(site, "/admin/projects/environment/staging/change/", type="other"))
    site.post("/admin/projects/environment/staging/delete/", {"post": "yes"})
    assert set(Environment.objects.values_list("name", flat=True)) == {"development", "production"}


def test_a_role_is_given_and_taken(site, shop, people):
    saved(
        send(
            site,
            "/admin/groups/grant/add/",
            project="shop",
            role=str(BuiltIn.MEMBER),
            user=people["outsider"].pk,
        )
    )
    grant = Grant.objects.get(user=people["outsider"])
    site.post(f"/admin/groups/grant/{grant.pk}/delete/", {"post": "yes"})
    assert not Grant.objects.filter(user=people["outsider"]).exists()
    assert len(events("project-access-added", "project-access-removed")) == 2
    response = send(
        site, "/admin/groups/grant/add/", project="shop", role=str(BuiltIn.ADMIN), user=people["outsider"].pk
    )
    assert "root role" in errors_of(response)[0]
    response = send(site, "/admin/groups/grant/add/", project="shop", role=str(BuiltIn.MEMBER))
    assert "either a user or a group" in errors_of(response)[0]


def test_revisions_are_only_shown(site, shop):
    """What no evaluation reads raises no revision."""
    before = read_revisions(["default", "shop"])
    saved(send(site, f"{PROJECTS}shop/change/", description="new"))
    assert read_revisions(["default", "shop"]) == before
