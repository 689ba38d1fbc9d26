"""Makes accounts for the people of another installation. Those who have one here keep it as it is."""

from collections.abc import Iterator

from groups.models import Role, User
from groups.people.actions import NewAccount, create_account
from groups.permissions import BuiltIn
from importer.moving.installation import Installation
from importer.moving.keeping import SYSTEM
from importer.moving.report import Kind, Line
from importer.moving.shapes import SourcePerson


def move_people(installation: Installation) -> Iterator[Line]:
    for person in installation.people:
        present = find_person(person)
        if present is None:
            yield _create(person)
        elif (role := _find_role(person)) != present.root_role_id and role is not None:
            yield _note_role(person, present, role)


def find_person(person: SourcePerson) -> User | None:
    names = [name for name in (person.email, person.username) if name]
    return next((user for name in names if (user := User.objects.known_as(name).first())), None)


def _create(person: SourcePerson) -> Line:
    role = _find_role(person)
    new = NewAccount(
        username=person.username or person.email or "",
        name=person.name or "",
        email=person.email,
        root_role=role,
    )
    create_account(new, caller=SYSTEM)
    named = "no root role" if role is None else BuiltIn(role).name.capitalize()
    return Line(Kind.CREATE, f"person {person.label}", f"{named}, without a password: send a login link")


def _note_role(person: SourcePerson, present: User, role: int) -> Line:
    held = present.root_role.name if present.root_role else "no root role"
    return Line(
        Kind.NOTE,
        f"person {person.label}",
        f"has {held} here and {Role.objects.get(pk=role).name} there, and stays",
    )


def _find_role(person: SourcePerson) -> int | None:
    """Built-in roles have the same ids there."""
    root = (BuiltIn.ADMIN, BuiltIn.EDITOR, BuiltIn.VIEWER)
    return person.root_role if person.root_role in root else None
