"""Loads the demo data through the actions and the import. Running it again does not change existing data."""

import secrets
from collections.abc import Iterator
from datetime import timedelta

from django.utils import timezone

from flagadmin.demo.definitions import DemoFlag, import_body
from flagadmin.demo.flags import (
    CONTEXT_FIELDS,
    ENVIRONMENTS,
    FLAGS,
    PROJECTS,
    SEGMENTS,
    STRATEGY_TYPES,
)
from flagadmin.demo.people import ACCOUNTS, ADMIN, GROUPS, USAGE
from groups.access import Caller
from groups.groups.actions import NewGroup, create_group
from groups.login.passwords import change_password
from groups.models import ApiToken, Grant, Group, Role, User
from groups.people.actions import NewAccount, create_account
from groups.people.personal_tokens import create_personal_token, delete_personal_token
from importer.apply.execute import import_body as run_import
from importer.body.schemas import read_body
from importer.models import ImportRun
from projects.applications.store_report import store_report
from projects.applications.usage_report import Count, FlagUse, Instance, InstanceKey, UsageReport
from projects.context_fields.actions import create_context_field
from projects.models import ContextField, Environment, Flag, Project, Segment, StrategyType
from projects.projects.actions import create_project
from projects.segments.actions import create_segment
from projects.strategies.strategy_types import create_strategy_type
from projects.tokens.actions import NewToken, create_token

KEY_NAME = "demo"


def load_demo() -> User:
    """Creates whatever demo data is missing. Returns the demo's admin."""
    caller = Caller.system()
    admin = _accounts(caller)
    _vocabulary(caller)
    for project_id, (name, description) in PROJECTS.items():
        if not Project.objects.filter(id=project_id).exists():
            create_project({"id": project_id, "name": name, "description": description}, caller=caller)
    _flags(caller)
    _groups(caller)
    _tokens(caller)
    store_report(_usage())
    return admin


def fresh_password(admin: User) -> str:
    """Sets and returns a new password for the demo's admin."""
    password = secrets.token_urlsafe(12)
    change_password(admin, password, caller=Caller.system())
    return password


def fresh_key(admin: User) -> str:
    """Replaces the API token of the demo's admin. Returns the new one."""
    caller = Caller.system()
    for token in admin.tokens.filter(name=KEY_NAME):
        delete_personal_token(admin, token.pk, caller=caller)
    _, secret = create_personal_token(admin, name=KEY_NAME, expires_at=None, caller=caller)
    return secret


def _accounts(caller: Caller) -> User:
    known = set(User.objects.values_list("username", flat=True))
    for account in ACCOUNTS:
        if account["username"] not in known:
            create_account(NewAccount(**account), caller=caller)
    return User.objects.get(username=ADMIN)


def _vocabulary(caller: Caller) -> None:
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


def _flags(caller: Caller) -> None:
    segments = dict(Segment.objects.filter(name__in=SEGMENTS).values_list("name", "id"))
    for project, flags in FLAGS.items():
        for environment in Environment.objects.filter(name__in=ENVIRONMENTS).values_list("name", flat=True):
            missing = list(_not_here(flags, environment))
            if missing:
                body = import_body(project, environment, missing, segments)
                run_import(read_body(body), caller=caller, source=ImportRun.Source.COMMAND)


def _not_here(flags: list[DemoFlag], environment: str) -> Iterator[DemoFlag]:
    """The flags that do not exist yet. Importing the others again would undo the user's changes."""
    there = set(Flag.objects.filter(strategies__environment=environment).values_list("name", flat=True))
    archived = set(Flag.objects.exclude(archived_at=None).values_list("name", flat=True))
    return (flag for flag in flags if flag.name not in there | archived)


def _groups(caller: Caller) -> None:
    for group in GROUPS:
        if Group.objects.filter(name=group.name).exists():
            continue
        members = User.objects.filter(username__in=group.members)
        users = tuple(members.values_list("id", flat=True))
        made = create_group(
            NewGroup(name=group.name, description=group.description, users=users), caller=caller
        )
        for role, project in group.grants:
            Grant.objects.create(role=Role.objects.get(name=role), project_id=project, group=made)


def _tokens(caller: Caller) -> None:
    for project in ("storefront", "legacy-portal"):
        for environment in ("development", "production"):
            name = f"{project} in {environment}"
            if not ApiToken.objects.filter(name=name).exists():
                new = NewToken(name=name, kind="backend", projects=(project,), environment=environment)
                create_token(new, caller=caller)


def _usage() -> UsageReport:
    now, report = timezone.now(), UsageReport()
    for use in USAGE:
        for number in range(1, use.instances + 1):
            place = InstanceKey(use.application, f"{use.application}-{number}", use.environment)
            report.add_instance(place, Instance(sdk_version=use.sdk, sdk_type="backend"))
        for flag in use.flags:
            at = now - timedelta(minutes=use.minutes_ago)
            report.add_count(
                FlagUse(use.application, flag, use.environment), at, Count(yes=12, no=5), now=now
            )
    return report
