"""Invite links, and signing up with one."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.http.responses import iso
from groups.models import InviteLink, Role, RolePermission, User
from groups.permissions import BuiltIn
from groups.sign_up import actions
from tests.support.cast import make_user

URL = "/api/admin/invite-link/tokens"
PASSWORD = "correct horse battery"
PERSON = {"username": "anna", "email": "anna@example.org", "name": "Anna", "password": PASSWORD}


def later(days=30):
    return iso(timezone.now() + timedelta(days=days))


def create(api, **values):
    return api["admin"].post(URL, {"name": "Team", "expiresAt": later()} | values)


@pytest.fixture
def link(api):
    return create(api, rootRole="Editor").json()


@pytest.fixture
def anybody():
    return APIClient()


def sign_up(anybody, link, **values):
    return anybody.post(f"/invite/{link['secret']}/signup", PERSON | values)


def problem_paths(response):
    assert response.status_code == 400, response.json()
    return {problem["path"] for problem in response.json()["details"]}


class TestLinks:
    def test_there_are_no_links_at_first(self, api, people):
        assert api["admin"].get(URL).json() == {"tokens": []}

    def test_a_link_is_created(self, api):
        response = create(api)
        assert response.status_code == 201
        link = response.json()
        assert (link["name"], link["enabled"], link["role"]["name"]) == ("Team", True, "Viewer")
        assert (link["createdBy"], link["users"]) == ("admin", [])
        assert link["url"] == f"http://testserver/login/invite/{link['secret']}/"
        event = AuditEvent.objects.get(type="public-signup-token-created")
        assert (event.actor_name, event.subject) == ("admin", "Team")
        stored = InviteLink.objects.get()
        assert link["secret"] not in repr(vars(event)) + repr(vars(stored))

    def test_the_secret_is_shown_once(self, api, link):
        link_now = api["admin"].get(URL).json()["tokens"][0]
        assert (link_now["secret"], link_now["url"]) == (link["secret"][:8], None)
        for key in (link["secret"], link_now["secret"]):
            assert api["admin"].get(f"{URL}/{key}").json() == link_now

    def test_the_role_is_never_admin(self, api, people):
        role = Role.objects.create(name="All but in name", type="root-custom")
        RolePermission.objects.create(role=role, permission="ADMIN")
        for named in (BuiltIn.ADMIN, "Admin", role.pk, BuiltIn.OWNER, 9999):
            assert problem_paths(create(api, rootRole=named)) == {"rootRole"}
        assert not InviteLink.objects.exists()

    @pytest.mark.parametrize(
        ("values", "path"),
        [
            ({"name": ""}, "name"),
            ({"name": None}, "name"),
            ({"name": "x" * 256}, "name"),
            ({"expiresAt": None}, "expiresAt"),
            ({"expiresAt": "soon"}, "expiresAt"),
            ({"expiresAt": later(-1)}, "expiresAt"),
            ({"expiresAt": later(366)}, "expiresAt"),
            ({"rootRole": True}, "rootRole"),
        ],
    )
    def test_malformed_bodies_are_refused(self, api, values, path):
        assert problem_paths(create(api, **values)) == {path}

    def test_a_link_is_changed_and_revoked(self, api, link):
        until = later(60)
        changed = api["admin"].put(f"{URL}/{link['secret']}", {"expiresAt": until, "enabled": False}).json()
        assert (changed["expiresAt"], changed["enabled"]) == (until, False)
        event = AuditEvent.objects.get(type="public-signup-token-updated")
        assert (event.before["enabled"], event.after["enabled"]) == (True, False)
        assert api["admin"].put(f"{URL}/{link['secret']}", {}).status_code == 400
        assert problem_paths(api["admin"].put(f"{URL}/{link['secret']}", {"expiresAt": later(-1)})) == {
            "expiresAt"
        }

    def test_an_unknown_link_is_404(self, api, people):
        assert api["admin"].get(f"{URL}/nosuch").status_code == 404
        assert api["admin"].put(f"{URL}/nosuch", {"enabled": False}).status_code == 404


class TestSigningUp:
    def test_an_open_link_is_valid(self, anybody, link):
        assert anybody.get(f"/invite/{link['secret']}/validate").status_code == 200
        assert anybody.get("/invite/nonsense/validate").status_code == 400
        assert anybody.get(f"/invite/{link['secret'][:8]}/validate").status_code == 400

    def test_a_person_signs_up_with_the_role_of_the_link(self, api, anybody, link):
        response = sign_up(anybody, link)
        assert response.status_code == 201
        assert (response.json()["username"], response.json()["rootRole"]) == ("anna", BuiltIn.EDITOR)
        assert anybody.get("/api/admin/user").status_code == 401  # not logged in
        assert Client().post("/login/", {"username": "anna", "password": PASSWORD}).status_code == 302
        users = api["admin"].get(URL).json()["tokens"][0]["users"]
        assert [user["username"] for user in users] == ["anna"]
        event = AuditEvent.objects.get(type="public-signup-token-user-added")
        assert (event.actor_name, event.subject, event.after) == ("anna", "Team", {"username": "anna"})
        assert AuditEvent.objects.filter(type="user-created", subject="anna").exists()

    def test_many_people_with_one_link(self, anybody, link):
        assert sign_up(anybody, link).status_code == 201
        bea = {"username": "", "email": "bea@example.org"}
        assert sign_up(anybody, link, **bea).json()["username"] == "bea@example.org"

    def test_a_link_ends_after_the_maximum_of_people(self, anybody, link, monkeypatch):
        assert actions.MAX_USERS == 1_000
        monkeypatch.setattr(actions, "MAX_USERS", 1)
        assert sign_up(anybody, link).status_code == 201
        assert sign_up(anybody, link, username="b", email="b@example.org").status_code == 403

    @pytest.mark.parametrize("how", ["revoked", "expired", "its role is gone"])
    def test_an_ended_link_is_refused(self, api, anybody, link, how):
        if how == "revoked":
            api["admin"].put(f"{URL}/{link['secret']}", {"enabled": False})
        elif how == "expired":
            InviteLink.objects.update(expires_at=timezone.now())
            assert api["admin"].get(URL).json()["tokens"][0]["enabled"] is False
        else:
            role = Role.objects.create(name="Short-lived", type="root-custom")
            InviteLink.objects.update(role=role)
            role.delete()
        assert sign_up(anybody, link).status_code == 400
        assert anybody.get(f"/invite/{link['secret']}/validate").status_code == 400
        assert Client().get(f"/login/invite/{link['secret']}/").status_code == 404
        assert not User.objects.filter(username="anna").exists()

    def test_a_role_that_became_admin_since_is_refused(self, anybody, link):
        role = Role.objects.create(name="Grown", type="root-custom")
        RolePermission.objects.create(role=role, permission="ADMIN")
        InviteLink.objects.update(role=role)
        assert sign_up(anybody, link).status_code == 403
        assert not User.objects.filter(username="anna").exists()

    def test_not_while_passwords_are_off(self, api, anybody, link, settings):
        settings.PASSWORD_LOGIN = False
        assert sign_up(anybody, link).status_code == 403
        assert create(api).status_code == 403

    def test_not_during_maintenance(self, api, anybody, link):
        api["admin"].post("/api/admin/maintenance", {"enabled": True})
        assert sign_up(anybody, link).status_code == 503

    @pytest.mark.parametrize(
        ("values", "path"),
        [
            ({"password": "short"}, "password"),
            ({"email": "nonsense"}, "email"),
            ({"email": ""}, "email"),
            ({"username": "viewer"}, "username"),
            ({"username": ["x"]}, "username"),
        ],
    )
    def test_malformed_sign_ups_are_refused(self, anybody, link, values, path):
        assert path in problem_paths(sign_up(anybody, link, **values))
        assert not User.objects.filter(email="anna@example.org").exists()

    def test_the_role_cannot_be_chosen(self, anybody, link):
        sign_up(anybody, link, rootRole=1)
        assert not User.objects.filter(username="anna", root_role=BuiltIn.ADMIN).exists()

    def test_pages_of_other_sites_cannot_sign_people_up(self, anybody, link):
        answer = anybody.post(f"/invite/{link['secret']}/signup", PERSON, HTTP_ORIGIN="https://evil.example")
        assert answer.status_code == 403


class TestPages:
    def test_links_are_created_listed_and_revoked(self, browse):
        browser = browse("admin")
        assert "No invite links yet." in browser.get("/access/invite-links/").text
        form = {"name": "Team", "rootRole": BuiltIn.VIEWER.value, "expiresAt": later()[:10]}
        shown = browser.post("/access/invite-links/new/", form, follow=True).text
        assert "http://testserver/login/invite/" in shown
        User.objects.filter(username="admin").update(name="Ada Lovelace")
        listed = browser.get("/access/invite-links/").text
        assert "http://testserver/login/invite/" not in listed
        assert "Ada Lovelace" in listed[listed.index("<tbody") :]
        link = InviteLink.objects.get()
        page = browser.post(f"/access/invite-links/{link.key}/enabled", {"enabled": "no"}, follow=True)
        assert "Revoked Team." in page.text
        assert not InviteLink.objects.get().is_enabled

    def test_admin_is_not_offered(self, browse):
        page = browse("admin").get("/access/invite-links/new/").text
        assert ">Viewer</option>" in page
        assert ">Admin</option>" not in page

    def test_only_admins_open_the_pages(self, browse):
        for name in ("editor", "viewer", "outsider"):
            for path in ("", "new/"):
                assert browse(name).get(f"/access/invite-links/{path}").status_code == 403

    def test_signing_up_logs_in(self, link):
        browser, path = Client(), f"/login/invite/{link['secret']}/"
        assert "Your account gets the role Editor." in browser.get(path).text
        assert browser.post(path, PERSON)["Location"] == "/"
        assert browser.get("/account/").status_code == 200
        event = AuditEvent.objects.get(type="user-logged-in")
        assert (event.actor_name, event.after) == ("anna", {"how": "invite link"})

    def test_a_refused_form_shows_why(self, people, link):
        path = f"/login/invite/{link['secret']}/"
        make_user("anna")
        page = Client().post(path, PERSON)
        assert page.status_code == 400
        assert "User already exists" in page.text
        assert PASSWORD not in page.text
        assert Client().post(path, {}).status_code == 400
        assert Client(enforce_csrf_checks=True).post(path, PERSON).status_code == 403

    def test_the_page_of_an_unknown_link_is_404(self, db):
        assert Client().get("/login/invite/nonsense/").status_code == 404
