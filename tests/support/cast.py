"""Fixtures for the users and tokens that tests share, each with a known role.

``api`` maps each name to a test client that sends its token: admin, editor, viewer (root roles); owner,
member, reader (roles in project ``shop`` only); outsider (no role); service (a service account with root role
Editor); admin_token (an admin API token).
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import login
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from groups.access import Caller
from groups.models import ApiToken, ApiTokenProject, Grant, Group, GroupMembership, User
from groups.permissions import BuiltIn
from groups.tokens import hash_secret, make_secret, make_visible_prefix
from projects.models import Environment, Project, ProjectEnvironment

ROOT_ROLES = {"admin": BuiltIn.ADMIN, "editor": BuiltIn.EDITOR, "viewer": BuiltIn.VIEWER}
PROJECT_ROLES = {"owner": BuiltIn.OWNER, "member": BuiltIn.MEMBER, "reader": BuiltIn.READER}
NAMES = (*ROOT_ROLES, *PROJECT_ROLES, "outsider")


def make_user(
    username: str,
    *,
    root_role: int | None = None,
    is_service: bool = False,
    password: str = "",
    **fields: Any,
) -> User:
    user = User(username=username, root_role_id=root_role, is_service=is_service, **fields)
    if password:
        user.set_password(password)
    user.save()
    return user


def make_group(name: str, *members: User, root_role: int | None = None) -> Group:
    group = Group.objects.create(name=name, root_role_id=root_role)
    GroupMembership.objects.bulk_create(GroupMembership(group=group, user=user) for user in members)
    return group


def make_token(
    kind: str,
    *,
    user: User | None = None,
    projects: list[str] | None = None,
    environment: str | None = None,
    **fields: Any,
) -> str:
    """Creates a token of this type for these projects (None: all) and returns its secret."""
    secret = make_secret(kind, projects=projects, environment=environment)
    token = ApiToken.objects.create(
        kind=kind,
        name=fields.pop("name", f"{kind} of {user or 'nobody'}"),
        secret_hash=hash_secret(secret),
        prefix=make_visible_prefix(secret),
        user=user,
        environment_id=environment,
        all_projects=projects is None and kind != "personal",
        **fields,
    )
    ApiTokenProject.objects.bulk_create(ApiTokenProject(token=token, project_id=p) for p in projects or [])
    return secret


def make_project(project_id: str, **fields: Any) -> Project:
    """Creates a project with all environments."""
    project = Project.objects.create(id=project_id, name=fields.pop("name", project_id.title()), **fields)
    ProjectEnvironment.objects.bulk_create(
        ProjectEnvironment(project=project, environment=environment)
        for environment in Environment.objects.all()
    )
    return project


def client(secret: str | None = None) -> APIClient:
    """A test client that sends this token and raises no server exceptions: it gets real responses."""
    made = APIClient(raise_request_exception=False)
    if secret:
        made.credentials(HTTP_AUTHORIZATION=secret)
    return made


@pytest.fixture
def shop(db: None) -> Project:
    """The project in which owner, member and reader have their roles."""
    return make_project("shop")


@pytest.fixture
def people(shop: Project) -> Mapping[str, User]:
    cast = {name: User(username=name, root_role_id=ROOT_ROLES.get(name)) for name in NAMES}
    cast["service"] = User(username="service", root_role_id=BuiltIn.EDITOR, is_service=True)
    User.objects.bulk_create(cast.values())
    Grant.objects.bulk_create(
        Grant(role_id=role, project=shop, user=cast[name]) for name, role in PROJECT_ROLES.items()
    )
    return cast


@pytest.fixture
def callers(people: Mapping[str, User]) -> Callable[[str], Caller]:
    """``callers("viewer")`` is a new Caller for that user, as in a request."""
    return lambda name: Caller(user=people[name])


class Clients(dict[str, APIClient]):
    """Test clients by name, each created with its token on first use."""

    def __init__(self, people: Mapping[str, User]) -> None:
        super().__init__()
        self.people = people

    def __missing__(self, name: str) -> APIClient:
        if name == "nobody":
            secret = None
        elif name == "admin_token":
            secret = make_token("admin")
        else:
            # As if used just now: the first request would note it, with as many statements as some whole tests.
            secret = make_token("personal", user=self.people[name], seen_at=timezone.now())
        self[name] = client(secret)
        return self[name]


@pytest.fixture
def api(people: Mapping[str, User]) -> Clients:
    return Clients(people)


@pytest.fixture
def browse(people: Mapping[str, User]) -> Callable[[str], Client]:
    """``browse("viewer")`` is a test client logged in to the console as that user."""

    def logged_in(name: str) -> Client:
        return log_in(Client(), people[name])

    return logged_in


def log_in(browser: Client, user: User) -> Client:
    """Like `force_login`, which stores a session of nobody first, reads it twice and replaces it."""
    request = HttpRequest()
    request.session = SessionStore()
    login(request, user, settings.AUTHENTICATION_BACKENDS[0])
    request.session.save()
    browser._set_login_cookies(request)  # type: ignore[attr-defined]
    return browser


@pytest.fixture
def standing_clock(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Stops the application's clock in the middle of an hour. List it before fixtures that read the time.

    However slow a test is, no timeout expires and no new hour or day begins between two requests.
    """
    moment = timezone.now().replace(minute=30, second=0, microsecond=0)
    monkeypatch.setattr(timezone, "now", lambda: moment)
    return moment
