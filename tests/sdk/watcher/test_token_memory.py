"""Callers that a worker remembers: found without a query, and never after a revocation."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from flagadmin.core.db import commits
from flagadmin.core.errors import AuthenticationRequired
from groups import tokens as module
from groups.access import Caller
from groups.authentication import authenticate_secret
from groups.models import ApiToken, User
from groups.people.actions import update_account
from groups.permissions import BuiltIn, Permission
from groups.tokens import find_token, hash_secret, note_uses, token_memory
from projects.models import Project
from projects.projects.actions import update_project
from sdk.watcher import watcher as watching_module
from sdk.watcher.watcher import Watcher
from tests.support.cast import make_project, make_token, make_user
from tests.support.event_loop import in_thread, until
from tests.support.watching import PATIENCE, beside_watcher, watching

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    token_memory.forget()
    token_memory._used.clear()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read stays certain until something is committed."""
    monkeypatch.setattr(module, "SURE_SECONDS", PATIENCE)
    monkeypatch.setattr(module, "IDLE", PATIENCE)


@pytest.fixture
def person() -> User:
    make_project("shop")
    return make_user("person", root_role=BuiltIn.EDITOR)


@pytest.fixture
def secret(person: User) -> str:
    secret = make_token("personal", user=person)
    note_uses([secret])  # otherwise the first request does
    return secret


def ask(secret: str) -> tuple[Caller, int]:
    """The caller with its rights, and the number of queries."""
    with CaptureQueriesContext(connection) as queries:
        caller, _ = authenticate_secret(secret)
        _ = caller.rights
    return caller, len(queries)


async def remembered(secret: str) -> Caller:
    """The caller, once it is found without a query."""

    def without_query() -> Caller | None:
        caller, queries = ask(secret)
        return None if queries else caller

    while not (caller := await in_thread(without_query)):
        pass
    return caller


@pytest.mark.parametrize("kind", ["personal", "admin"])
def test_a_remembered_caller_is_the_stored_one(patient: None, person: User, kind: str) -> None:
    secret = make_token(kind, user=person if kind == "personal" else None)
    note_uses([secret])
    stored, queries = ask(secret)
    assert queries == 1

    async def work(watcher: Watcher) -> Caller:
        return await remembered(secret)

    caller = watching(work)
    assert caller.rights == stored.rights
    for row, expected in ((caller.token, stored.token), (caller.user, stored.user)):
        assert _values(row) == _values(expected)


def _values(row: Any) -> dict[str, Any] | None:
    return row and {name: value for name, value in vars(row).items() if not name.startswith("_")}


def set_active(person: User, active: bool) -> None:
    update_account(person.pk, {"is_active": active}, is_service=False, caller=Caller.system())


@beside_watcher
async def test_the_next_request_of_a_deactivated_person_is_refused(
    watcher: Watcher, patient: None, person: User, secret: str
) -> None:
    for _ in range(5):
        await remembered(secret)
        await in_thread(lambda: set_active(person, False))
        with pytest.raises(AuthenticationRequired):
            await in_thread(lambda: ask(secret))
        await in_thread(lambda: set_active(person, True))


REVOCATIONS: dict[str, Callable[[], Any]] = {
    "token": lambda: ApiToken.objects.all().delete(),
    "expiry": lambda: ApiToken.objects.update(expires_at="2020-01-01T00:00:00Z"),
    "person": lambda: User.objects.filter(username="person").update(is_active=False),
    "deleted person": lambda: User.objects.filter(username="person").delete(),
}


@pytest.mark.parametrize("revoke", REVOCATIONS.values(), ids=REVOCATIONS)
@beside_watcher
async def test_a_revocation_elsewhere_counts_with_the_next_read(
    watcher: Watcher, secret: str, revoke: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by another machine, whose commits are not counted here: nobody is told, and the watcher reads anyway."""
    monkeypatch.setattr(watching_module, "PAUSE", 0.01)
    await remembered(secret)
    await in_thread(revoke)
    revoked_at = time.monotonic()
    await until(lambda: watcher._read_at > revoked_at)
    with pytest.raises(AuthenticationRequired):
        await in_thread(lambda: ask(secret))


@beside_watcher
async def test_rights_that_are_taken_away(watcher: Watcher, patient: None, person: User, secret: str) -> None:
    callers = [await remembered(secret)]
    await in_thread(lambda: User.objects.filter(pk=person.pk).update(root_role=BuiltIn.VIEWER))
    commits.mark()
    callers += [await in_thread(lambda: ask(secret)[0]), await remembered(secret)]
    may_create = [each.can(Permission.CREATE_FEATURE, project="default") for each in callers]
    assert may_create == [True, False, False]


@beside_watcher
async def test_a_project_that_becomes_private(
    watcher: Watcher, patient: None, person: User, secret: str
) -> None:
    """By the API, and by plain SQL on another machine, which only the database tells."""
    callers = [await remembered(secret)]
    await in_thread(lambda: update_project("shop", {"mode": "private"}, caller=Caller.system()))
    callers += [await in_thread(lambda: ask(secret)[0]), await remembered(secret)]
    await in_thread(lambda: Project.objects.update(mode="open"))
    opened_at = time.monotonic()
    await until(lambda: watcher._read_at > opened_at)
    callers += [await remembered(secret)]
    assert [each.can_read("shop") for each in callers] == [True, False, False, True]


def test_what_was_read_too_long_ago_is_not_certain(secret: str) -> None:
    digest = hash_secret(secret)
    token_memory.learn({digest: ("row",)}, began=float("-inf"), committed=commits.count())
    assert token_memory.find(digest) is None


def test_unknown_secrets_are_not_read(secret: str) -> None:
    with pytest.raises(AuthenticationRequired):
        find_token("user:unknown", now=timezone.now())
    assert token_memory.list_used() == []
    ask(secret)
    assert token_memory.list_used() == [hash_secret(secret)]


def test_the_tokens_in_use_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(module.MAX_TOKENS + 1):
        token_memory.use(str(number))
    assert len(token_memory.list_used()) == module.MAX_TOKENS
    monkeypatch.setattr(module, "IDLE", -1.0)
    assert token_memory.list_used() == []
