"""Loads the demo data, mostly through the actions and the import. A second run changes no existing data.

Writes grants, favorites and past usage directly.
"""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from datetime import datetime, timedelta

import orjson
from django.conf import settings
from django.db.models import OuterRef, Subquery
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.transactions import transactional
from flagadmin.demo import requests, story
from flagadmin.demo.clock import at
from flagadmin.demo.definitions import DemoFlag, import_body
from flagadmin.demo.flags import (
    CONTEXT_FIELDS,
    ENVIRONMENTS,
    FLAGS,
    PROJECTS,
    SAVED_CONTEXTS,
    SEGMENTS,
    STRATEGY_TYPES,
    tried_in_development,
)
from flagadmin.demo.people import (
    ACCOUNTS,
    ADMIN,
    FAVORITE_FLAGS,
    FAVORITE_PROJECT,
    GROUPS,
    REVIEWERS,
    add_connections,
)
from flagadmin.demo.plans import add_plans
from flagadmin.demo.usage import add_analyses, add_incident, report_usage
from groups.access import Caller, Permission
from groups.groups.actions import NewGroup, create_group
from groups.login.passwords import change_password
from groups.models import ApiToken, Grant, Group, Role, User
from groups.models.roles import HeldPermission
from groups.people.actions import NewAccount, create_account
from groups.people.personal_tokens import create_personal_token
from groups.roles.actions import create_role
from importer.apply.execute import import_body as run_import
from importer.body.schemas import read_body
from importer.models import ImportRun
from importer.runs import create_run
from playground.models import SavedContext
from playground.saved_contexts.actions import create_saved_context
from projects.context_fields.actions import create_context_field
from projects.models import (
    ContextField,
    Environment,
    FavoriteFlag,
    FavoriteProject,
    Flag,
    Project,
    Segment,
    StrategyType,
)
from projects.projects.actions import create_project
from projects.segments.actions import create_segment
from projects.strategies.strategy_types import create_strategy_type
from projects.tokens.actions import NewToken, create_token

KEY_NAME = "demo"
KEY_LIFETIME = timedelta(days=30)
DEFAULT = "default"  # the initial project of every installation
BEGAN = timedelta(days=210)
SAVED = timedelta(days=20)  # after the first imports
EXPIRING = "web-shop in production"


@transactional
def load_demo() -> User:
    """Creates all missing demo data, or nothing if it fails. Returns the demo's admin.

    The first run spreads its changes over the past weeks.
    """
    now = timezone.now()
    caller, is_new = Caller.system(), not Project.objects.filter(id__in=PROJECTS).exclude(id=DEFAULT).exists()
    with at(now - BEGAN) if is_new else nullcontext():
        admin = _make_accounts(caller)
        _make_vocabulary(caller)
        for project_id, (name, description) in PROJECTS.items():
            if not Project.objects.filter(id=project_id).exists():
                create_project({"id": project_id, "name": name, "description": description}, caller=caller)
        _make_groups(caller)
        _make_reviewers(caller)
        _make_tokens(now, caller)
    if is_new:
        _make_first_imports(now)
        with at(now - SAVED):
            _make_saved_contexts(caller)
        story.tell(
            now, lambda caller: _import("storefront", "production", story.list_second_import(), caller)
        )
        _mark_favorites(admin)
        add_plans(now, Caller(user=User.objects.get(username="aisha")))
        requests.tell(now)
        add_connections(now, admin)
        add_analyses(now, Caller(user=User.objects.get(username="aisha")))
        add_incident(now, Caller(user=admin))
        _note_last_seen()
    else:
        _import_missing_flags()
        _make_saved_contexts(caller)
    _make_pending_import(admin)
    report_usage(now)
    return admin


def _note_last_seen() -> None:
    """Whoever changed something has been there: at the time of their last change."""
    newest = AuditEvent.objects.filter(actor_id=OuterRef("pk")).order_by("-created_at").values("created_at")
    User.objects.people().update(seen_at=Subquery(newest[:1]))


def set_first_password(admin: User) -> str | None:
    """Sets and returns a password if the demo's admin has none and passwords are enabled. Otherwise returns None."""
    if admin.has_usable_password() or not settings.PASSWORD_LOGIN:
        return None
    password = secrets.token_urlsafe(12)
    change_password(admin, password, caller=Caller.system())
    return password


def create_key(admin: User, now: datetime) -> str:
    """Creates an API token for the demo's admin. Earlier tokens stay valid until they expire."""
    name = f"{KEY_NAME} {now:%Y-%m-%d %H:%M:%S.%f}"
    _, secret = create_personal_token(admin, name=name, expires_at=now + KEY_LIFETIME, caller=Caller.system())
    return secret


def _make_accounts(caller: Caller) -> User:
    known = set(User.objects.values_list("username", flat=True))
    for account in ACCOUNTS:
        if account["username"] not in known:
            create_account(NewAccount(**account), caller=caller)
    return User.objects.get(username=ADMIN)


def _make_vocabulary(caller: Caller) -> None:
    for name, (description, parameters) in STRATEGY_TYPES.items():
        if not StrategyType.objects.filter(name=name).exists():
            described = [{"name": parameter, "type": "string"} for parameter in parameters]
            create_strategy_type(
                {"name": name, "description": description, "parameters": described}, caller=caller
            )
    for name, (description, legal, stickiness) in CONTEXT_FIELDS.items():
        if not ContextField.objects.filter(name=name).exists():
            create_context_field(
                {
                    "name": name,
                    "description": description,
                    "stickiness": stickiness,
                    "legal_values": [{"value": value} for value in legal],
                },
                caller=caller,
            )
    for name, (description, constraints) in SEGMENTS.items():
        if not Segment.objects.filter(name=name).exists():
            create_segment(
                {"name": name, "description": description, "constraints": constraints}, caller=caller
            )


def _make_saved_contexts(caller: Caller) -> None:
    for name, (note, context, expectations) in SAVED_CONTEXTS.items():
        if not SavedContext.objects.filter(name=name).exists():
            values = {"name": name, "note": note, "context": context, "expectations": expectations}
            create_saved_context(values, caller=caller)


def _make_first_imports(now: datetime) -> None:
    """Imports each project's original flags, one import for each environment."""
    pipeline = story.make_caller(User.objects.get(username=story.IMPORTER))
    for number, (project, flags) in enumerate(
        sorted(FLAGS.items(), key=lambda item: -story.get_time_since_import(item[0]))
    ):
        for environment in ENVIRONMENTS:
            moment = now - story.get_time_since_import(project) + timedelta(minutes=7 * number)
            with at(moment, f"demo-{project}-{environment}"):
                _import(project, environment, map(story.make_earlier, flags), pipeline)


def _import_missing_flags() -> None:
    for project, flags in FLAGS.items():
        for environment in Environment.objects.filter(name__in=ENVIRONMENTS).values_list("name", flat=True):
            if missing := list(_find_not_here(flags, environment)):
                _import(project, environment, missing, Caller.system())


def _import(project: str, environment: str, flags: Iterable[DemoFlag], caller: Caller) -> None:
    body = import_body(project, environment, flags, _read_segment_ids())
    run_import(read_body(body), caller=caller, source=ImportRun.Source.API)


def _read_segment_ids() -> dict[str, int]:
    return dict(Segment.objects.filter(name__in=SEGMENTS).values_list("name", "id"))


def _find_not_here(flags: list[DemoFlag], environment: str) -> Iterator[DemoFlag]:
    """The flags that do not exist yet. Importing the others again would undo the user's changes."""
    used = set(Flag.objects.filter(strategies__environment=environment).values_list("name", flat=True))
    archived = set(Flag.objects.archived().values_list("name", flat=True))
    return (flag for flag in flags if flag.name not in used | archived)


def _mark_favorites(admin: User) -> None:
    flags = Flag.objects.filter(name__in=FAVORITE_FLAGS)
    FavoriteFlag.objects.bulk_create([FavoriteFlag(user=admin, flag=flag) for flag in flags])
    FavoriteProject.objects.create(user=admin, project_id=FAVORITE_PROJECT)


def _make_pending_import(admin: User) -> None:
    """Makes an import of development's flags into production that awaits the admin's review for a day."""
    if ImportRun.objects.filter(state=ImportRun.State.PENDING).exists():
        return
    body = import_body("checkout", "production", [*tried_in_development()], _read_segment_ids())
    for entry in body["data"]["featureEnvironments"]:
        entry["environment"] = "development"
    create_run(orjson.dumps(body), caller=Caller(user=admin), file_name="checkout-development.json")


def _make_groups(caller: Caller) -> None:
    for group in GROUPS:
        if Group.objects.filter(name=group.name).exists():
            continue
        members = User.objects.filter(username__in=group.members)
        users = tuple(members.values_list("id", flat=True))
        created = create_group(
            NewGroup(name=group.name, description=group.description, users=users), caller=caller
        )
        for role, project in group.grants:
            Grant.objects.create(role=Role.objects.get(name=role), project_id=project, group=created)


def _make_reviewers(caller: Caller) -> None:
    name, description, project, people = REVIEWERS
    if Role.objects.filter(name=name).exists():
        return
    permission = HeldPermission(Permission.APPROVE_CHANGE_REQUEST.value, "production")
    role = create_role(
        name, description=description, type=Role.Type.CUSTOM, permissions=[permission], caller=caller
    )
    for user in User.objects.filter(username__in=people):
        Grant.objects.create(role=role, project_id=project, user=user)


def _make_tokens(now: datetime, caller: Caller) -> None:
    for name, project in (("web-shop", "storefront"), ("portal", "legacy-portal")):
        for environment in ("development", "production"):
            if not ApiToken.objects.filter(name=name, environment=environment).exists():
                new = NewToken(name=name, kind="backend", projects=(project,), environment=environment)
                create_token(new, caller=caller)
    if not ApiToken.objects.filter(name=EXPIRING).exists():
        soon = now + timedelta(days=6, hours=4)
        new = NewToken(
            name=EXPIRING, kind="backend", projects=("storefront",), environment="production", expires_at=soon
        )
        create_token(new, caller=caller)
        ApiToken.objects.filter(name=EXPIRING).update(seen_at=now - timedelta(seconds=40))
