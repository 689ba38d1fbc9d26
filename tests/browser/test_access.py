"""Browser tests of access: deleting a group, creating, using and revoking a token, pages for a viewer."""

import re
import shlex
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect

from groups.models import Grant, Group, GroupMembership, Role
from groups.permissions import BuiltIn
from tests.browser.conftest import fits, make_narrow, stop_clock
from tests.browser.journeys import Clicks
from tests.support.cast import make_token, make_user

pytestmark = pytest.mark.usefixtures("scenery")


@pytest.fixture
def contractors(scenery):
    group = Group.objects.create(name="Former contractors")
    for name, role in (("Ken", BuiltIn.VIEWER), ("Lukas", BuiltIn.VIEWER), ("Noor", None)):
        user = make_user(name.lower(), root_role=role, name=name)
        GroupMembership.objects.create(group=group, user=user)
    Grant.objects.create(group=group, project_id="legacy-portal", role_id=BuiltIn.MEMBER.value)
    return group


def status_of(command):
    """Runs what the page gives to copy, as curl would, and answers the status."""
    _, _, header, address = shlex.split(command)
    name, value = header.split(": ", 1)
    try:
        with urlopen(Request(address, headers={name: value})) as answer:
            return answer.status
    except HTTPError as error:
        return error.code


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_group_is_deleted_knowing_who_loses_access(visit, contractors, check_accessible, script):
    page = visit("admin", "/access/groups/", script=script)
    page.get_by_role("link", name="Former contractors").click()
    page.get_by_role("link", name="Delete group").click()

    main = page.locator("main")
    expect(main).to_contain_text(
        "Former contractors has 3 members. They lose Member in legacy-portal. "
        "One of them has no other access and will see no project."
    )
    expect(main.locator("li", has_text="will see no project")).to_contain_text("Noor")
    if script:
        check_accessible(page)
    page.get_by_role("button", name="Delete group Former contractors").click()

    expect(page.get_by_role("status")).to_contain_text("Deleted group Former contractors.")
    expect(page.get_by_role("link", name="Former contractors")).to_have_count(0)


def test_a_key_is_made_used_and_revoked(visit, check_accessible):
    page = visit("admin", "/access/tokens/")
    page.get_by_role("link", name="New token").click()
    page.get_by_label("Name").fill("checkout-service")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_text("Choose the projects this token can access.")).to_be_visible()
    check_accessible(page)

    page.get_by_label("Backend: SDKs on servers read flags with it").check()
    page.get_by_label("Checkout (checkout)").check()
    page.get_by_label("Environment").select_option("production")
    page.get_by_role("button", name="Create token").click()

    expect(page.get_by_text("This is the only time the token is shown.")).to_be_visible()
    secret, command = page.locator("#secret").inner_text(), page.locator("#command").inner_text()
    check_accessible(page)
    assert secret not in page.url
    assert secret not in page.title()
    stop_clock(page)  # "Copied" stands there for a moment
    page.get_by_role("button", name="Copy token").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    assert status_of(command) == 200

    page.get_by_role("link", name="Done").click()
    expect(page.locator("main")).not_to_contain_text(secret)
    page.get_by_role("link", name="Revoke… checkout-service").click()
    expect(page.locator("main")).to_contain_text("Clients still using it get 401 immediately")
    page.get_by_role("button", name="Revoke token checkout-service").click()

    expect(page.get_by_role("status")).to_contain_text("Revoked token checkout-service.")
    assert status_of(command) == 401


def test_a_person_is_invited_by_a_link_that_works_once(visit):
    page = visit("admin", "/access/people/new/")
    page.get_by_label("User name").fill("grace")
    page.get_by_label("Root role").select_option("Viewer")
    page.get_by_role("button", name="Add user").click()
    link = page.locator("#secret").inner_text()

    guest = visit(None, link)
    enter = guest.get_by_role("button", name="Log in as grace")
    if enter.count():
        enter.click()
    expect(guest).to_have_url(re.compile("/account/password/.next=%2F$"))
    expect(guest.get_by_label("Current password")).to_have_count(0)
    expect(visit(None, link).locator("main")).to_contain_text("This link has already been used")


def test_a_role_is_given_in_a_project_and_taken_away(visit, check_accessible):
    make_user("grace")
    page = visit("admin", "/projects/checkout/access/")
    page.get_by_role("link", name="Invite").click()
    page.get_by_label("Email address, user name or group").fill("grace")
    page.get_by_label("development").check()
    check_accessible(page)
    page.get_by_role("button", name="Invite").click()

    expect(page.get_by_role("status")).to_contain_text("Granted Member · development to grace in checkout.")
    check_accessible(page)
    page.get_by_role("button", name="Revoke Member · development from grace").click()
    expect(page.get_by_role("status")).to_contain_text("Revoked Member · development from grace in checkout.")


def test_a_colleague_is_invited_for_development_of_one_project_in_four_clicks(visit):
    page = visit("admin", "/projects/checkout/")
    clicks = Clicks(page)

    clicks.on(page.get_by_role("navigation", name="Project").get_by_role("link", name="Access"))
    clicks.on(page.get_by_role("link", name="Invite"))
    page.get_by_label("Email address, user name or group").fill("grace@example.com")
    clicks.on(page.get_by_label("development"))
    clicks.on(page.get_by_role("button", name="Invite"))

    expect(page.locator("main")).to_contain_text("Member · development")
    expect(page.locator("#secret")).to_contain_text("/login/")
    assert clicks.count == 4


def test_the_pages_of_one_thing_are_accessible_and_fit_a_narrow_screen(visit, contractors, check_accessible):
    noor = contractors.members.get(username="noor")
    robot = make_user("deploy-bot", is_service=True)
    make_token("personal", user=robot, name="pipeline")
    role = Role.objects.create(name="Deployer", type="custom")
    page = visit("admin", "/")
    for address in (
        f"/access/groups/{contractors.pk}/",
        f"/access/groups/{contractors.pk}/edit/",
        f"/access/people/{noor.pk}/",
        f"/access/people/{noor.pk}/reset-password/",
        f"/access/people/{noor.pk}/delete/",
        f"/access/service-accounts/{robot.pk}/",
        f"/access/service-accounts/{robot.pk}/tokens/new/",
        f"/access/roles/{role.pk}/edit/",
    ):
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(address)
        check_accessible(page)
        page.emulate_media(color_scheme="dark")
        make_narrow(page)
        check_accessible(page)
        fits(page)


def test_a_viewer_is_refused_in_words(visit, contractors, check_accessible):
    page = visit("viewer", f"/access/groups/{contractors.pk}/delete/")

    expect(page.locator("main")).to_contain_text('You need the "Admin" permission.')
    check_accessible(page)
    page.goto("/projects/checkout/access/")
    expect(page.get_by_role("link", name="Invite")).to_have_count(0)
    expect(page.locator("main")).to_contain_text(
        "To grant and revoke roles, you need one of these permissions in Checkout"
    )
    assert Group.objects.filter(pk=contractors.pk).exists()
