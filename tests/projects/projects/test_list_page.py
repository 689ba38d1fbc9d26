"""/projects/: visible projects, their counts, and creating a project."""

from datetime import timedelta

from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from projects.models import FavoriteProject, Project, UsageTotal
from tests.support.flags import make_flag, switch_on
from tests.support.page_text import csv_rows, page_text


def test_projects_are_listed_with_their_counts(browse, shop):
    make_flag("cart", shop)
    make_flag("old-cart", shop, archived=True)

    listed = csv_rows(browse("viewer").get("/projects/?format=csv"))

    assert listed[0] == [
        "Project", "Active flags", "On in production", "Stale", "Archived flags", "Evaluations, 24 h", "Last change",
        "Health", "Environments",
    ]  # fmt: skip
    assert ["shop", "1", "0", "0", "1", "0", "", "100 %", "development, production"] in listed


def test_projects_say_what_is_on_evaluated_and_changed_and_how_healthy_they_are(browse, shop):
    for name, stale in (("cart", False), ("search", True), ("off", False)):
        flag = make_flag(name, shop, stale=stale)
        if name != "off":
            switch_on(flag, "production")
    switch_on(flag, "development")
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    UsageTotal.objects.create(project_id="shop", hour=hour, yes=1200, no=300)
    UsageTotal.objects.create(project_id="shop", hour=hour - timedelta(hours=30), yes=1, no=1)
    changed = AuditEvent.objects.create(
        type="feature-created", project="shop", feature="cart", actor_name="ada"
    )
    AuditEvent.objects.create(type="user-created", project="shop", actor_name="ada")

    listed = {line[0]: line for line in csv_rows(browse("viewer").get("/projects/?format=csv"))}
    assert listed["shop"][2] == "2"
    assert listed["shop"][5:8] == ["1500", changed.created_at.isoformat(timespec="seconds"), "67 %"]
    page = page_text(browse("viewer").get("/projects/"))
    assert "67 %" in page
    assert "just now" in page


def test_readable_projects_are_listed_searched_and_sorted(browse):
    assert [line[0] for line in csv_rows(browse("member").get("/projects/?format=csv"))[1:]] == ["shop"]
    assert "You have no projects." in browse("outsider").get("/projects/").text

    get_csv_lines = csv_rows(browse("viewer").get("/projects/?format=csv&q=SHO"))
    backwards = csv_rows(browse("viewer").get("/projects/?format=csv&sort=-name"))

    assert [line[0] for line in get_csv_lines[1:]] == ["shop"]
    assert [line[0] for line in backwards[1:]] == ["shop", "default"]


def test_archived_projects_have_a_list_of_their_own(browse, api):
    api["admin"].post("/api/admin/projects/archive/shop")

    assert "/projects/shop/" not in browse("viewer").get("/projects/").text
    assert "/projects/shop/" in browse("viewer").get("/projects/?show=archived").text


def test_favorites_come_first_and_lead_to_no_other_host(browse, people):
    browser = browse("viewer")

    answer = browser.post("/projects/shop/favorite", {"favorite": "on", "next": "/projects/"})

    assert answer["Location"] == "/projects/"
    assert FavoriteProject.objects.filter(user=people["viewer"], project="shop").exists()
    assert [line[0] for line in csv_rows(browser.get("/projects/?format=csv"))[1:]] == ["shop", "default"]
    browser.post("/projects/shop/favorite", {"favorite": "off"})
    assert not FavoriteProject.objects.exists()

    answer = browser.post("/projects/shop/favorite", {"favorite": "on", "next": "//evil.example/"})

    assert answer["Location"] == "/projects/shop/"


def test_creating_a_project_or_being_told_beside_the_field(browse):
    form = {"name": "Web shop", "id": "", "description": "", "environments": ["production"], "mode": "open"}

    answer = browse("editor").post("/projects/new/", form)

    assert answer["Location"] == "/projects/web-shop/"
    assert list(Project.objects.get(pk="web-shop").environments.values_list("name", flat=True)) == [
        "production"
    ]

    answer = browse("editor").post(
        "/projects/new/", {"name": "X", "id": "a b", "environments": ["production"], "mode": "open"}
    )

    assert answer.status_code == 400
    assert "Spaces are not allowed" in answer.text
    assert answer.context["form"].errors["id"]


def test_who_may_not_create_a_project_is_not_offered_it_and_is_told_why(browse):
    viewer = browse("viewer")

    assert 'href="/projects/new/"' not in viewer.get("/projects/").text
    assert viewer.get("/projects/new/").status_code == 403
    refused = viewer.post("/projects/new/", {"name": "X", "environments": ["production"]})
    assert refused.status_code == 403
    assert "You need the &quot;Create projects&quot; permission." in refused.text
