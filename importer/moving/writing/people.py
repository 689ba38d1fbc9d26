"""Makes accounts for the people and service accounts of another installation. Those who have one here keep it."""

from collections.abc import Iterator
from functools import partial

from groups.login.passwords import adopt_password
from groups.models import Role, User
from groups.people.actions import NewAccount, create_account
from groups.permissions import BuiltIn
from importer.moving.reading.hidden import Hidden, UserRow
from importer.moving.reading.installation import Installation
from importer.moving.reading.shapes import SourcePerson
from importer.moving.report import Kind, Line
from importer.moving.writing.edits import Edits
from importer.moving.writing.keeping import DELETED, SYSTEM, try_alone

ROOT_ROLES = (BuiltIn.ADMIN, BuiltIn.EDITOR, BuiltIn.VIEWER)
"""Built-in roles have the same ids there."""


def move_people(installation: Installation, edits: Edits, roles: dict[int, int]) -> Iterator[Line]:
    """``roles`` are ids here by ids there, without those that are built in."""
    hidden = installation.hidden
    for person in installation.people:
        row = hidden.users.get(person.id) if hidden else None
        password = (row and row.password_hash) or ""
        role = _find_role(person, roles)
        present = find_account(person.username, person.email)
        if present is not None:
            yield from _keep(person, present, role, password)
        elif edits.has("user-", person.username or person.email or ""):
            yield Line(Kind.CONFLICT, f"person {person.label}", DELETED)
        else:
            yield from try_alone(f"person {person.label}", partial(_create, person, role, password))
    if hidden is not None:
        yield from _move_service_accounts(hidden, edits, roles)


def find_account(username: str | None, email: str | None) -> User | None:
    names = [name for name in (email, username) if name]
    return next((user for name in names if (user := User.objects.known_as(name).first())), None)


def find_accounts(hidden: Hidden) -> dict[int, User]:
    """Accounts here by ids there."""
    accounts = ((row.id, find_account(row.username, row.email)) for row in hidden.users.values())
    return {key: user for key, user in accounts if user is not None}


def _create(person: SourcePerson, role: int | None, password: str) -> Iterator[Line]:
    user = create_account(
        NewAccount(
            username=person.username or person.email or "",
            name=person.name or "",
            email=person.email,
            root_role=role,
        ),
        caller=SYSTEM,
    )
    has_password = adopt_password(user, password, caller=SYSTEM)
    how = "with the same password" if has_password else "without a password: send a login link"
    yield Line(Kind.CREATE, f"person {person.label}", f"{_name_role(role)}, {how}")
    if role is None and person.root_role is not None:
        yield Line(
            Kind.CANNOT, f"root role of {person.label}", "is a custom one, which only --database brings"
        )


def _keep(person: SourcePerson, present: User, role: int | None, password: str) -> Iterator[Line]:
    """An account that came over the API before gets the password that the database has."""
    subject = f"person {person.label}"
    if present.is_service:
        yield Line(Kind.CANNOT, subject, "a service account here has this name")
        return
    if password and present.seen_at is None and adopt_password(present, password, caller=SYSTEM):
        yield Line(Kind.CHANGE, subject, "password none → the same as there")
    if role is not None and role != present.root_role_id:
        detail = f"has {_name_role(present.root_role_id)} here and {_name_role(role)} there, and stays"
        yield Line(Kind.NOTE, subject, detail)


def _move_service_accounts(hidden: Hidden, edits: Edits, roles: dict[int, int]) -> Iterator[Line]:
    for row in hidden.users.values():
        name = row.username or row.name or ""
        if not row.is_service or User.objects.known_as(name).exists():
            continue
        subject = f"service account {name}"
        if edits.has("service-account-", name):
            yield Line(Kind.CONFLICT, subject, DELETED)
            continue
        role = _find_role(_as_person(row, hidden), roles)
        new = NewAccount(username=name, name=row.name or "", is_service=True, root_role=role)
        yield from try_alone(subject, partial(_create_service_account, subject, new))


def _create_service_account(subject: str, new: NewAccount) -> Iterator[Line]:
    user = create_account(new, caller=SYSTEM)
    yield Line(Kind.CREATE, subject, _name_role(user.root_role_id))


def _as_person(row: UserRow, hidden: Hidden) -> SourcePerson:
    return SourcePerson(id=row.id, username=row.username, root_role=hidden.find_root_role(row.id))


def _find_role(person: SourcePerson, roles: dict[int, int]) -> int | None:
    role = person.root_role
    return role if role in ROOT_ROLES else roles.get(role or 0)


def _name_role(role: int | None) -> str:
    return "no root role" if role is None else Role.objects.get(pk=role).name
