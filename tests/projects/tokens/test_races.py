"""Creating a token while its project is deleted: the result is that of one after the other."""

import pytest
from django.db import transaction

from flagadmin.core.errors import NotFound, ValidationError
from groups.access import Caller
from groups.models import ApiToken, ApiTokenProject
from groups.permissions import Permission
from projects.access import access_project_for_update, lock_projects
from projects.deletion.execute import delete_project
from projects.models import Project
from projects.projects.actions import create_project
from projects.tokens.actions import NewToken, create_project_token, create_token, delete_token
from projects.tokens.start_up import create_init_tokens
from tests.support.cast import make_project
from tests.support.racing import in_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.exhaustive]
SYSTEM = Caller.system()
NEW = NewToken(name="new", kind="backend", projects=("shop", "other"), environment="production")


@pytest.fixture(autouse=True)
def projects(transactional_db):
    make_project("shop")
    make_project("other")


def test_deleted_first_then_it_is_unknown():
    with transaction.atomic():
        access_project_for_update(SYSTEM, "shop", Permission.DELETE_PROJECT, for_deletion=True)
        making = in_thread(lambda: create_token(NEW, caller=SYSTEM))
        in_project = in_thread(
            lambda: create_project_token(
                "shop",
                NewToken(name="x", kind="backend", projects=("shop",), environment="production"),
                caller=SYSTEM,
            )
        )
        delete_project("shop", caller=SYSTEM)
        assert not making.done()
    assert isinstance(making.exception(timeout=60), ValidationError)
    assert isinstance(in_project.exception(timeout=60), NotFound)
    assert not ApiToken.objects.exists()


def test_made_first_then_it_loses_the_project():
    with transaction.atomic():
        lock_projects(SYSTEM, ["shop", "other"])
        deleting = in_thread(lambda: delete_project("shop", caller=SYSTEM))
        create_token(NEW, caller=SYSTEM)
        assert not deleting.done()
    deleting.result(timeout=60)
    token = ApiToken.objects.get()
    assert not token.all_projects
    assert [scope.project_id for scope in token.scopes.all()] == ["other"]


def test_revoked_while_the_project_is_deleted():
    token, _ = create_token(
        NewToken(name="own", kind="backend", projects=("shop",), environment="production"), caller=SYSTEM
    )
    revoking = in_thread(lambda: delete_token(str(token.pk), caller=SYSTEM))
    deleting = in_thread(lambda: delete_project("shop", caller=SYSTEM))
    deleting.result(timeout=60)
    assert revoking.exception(timeout=60) is None or isinstance(revoking.exception(), NotFound)
    assert not ApiToken.objects.exists()
    assert not ApiTokenProject.objects.exists()
    assert not Project.objects.filter(id="shop").exists()


def test_tokens_and_deletions_at_once_do_not_fail():
    work = [lambda: create_token(NEW, caller=SYSTEM)] * 4 + [
        lambda: delete_project("shop", caller=SYSTEM)
    ] * 2
    for future in [in_thread(action) for action in work]:
        error = future.exception(timeout=60)
        assert error is None or isinstance(error, NotFound | ValidationError)
    assert not ApiTokenProject.objects.filter(project_id="shop").exists()
    assert not ApiToken.objects.filter(all_projects=True).exists()
    for token in ApiToken.objects.all():
        assert [scope.project_id for scope in token.scopes.all()] == ["other"]


def test_a_token_is_not_left_pending_for_a_project_that_is_being_created():
    secret = "pay:production.a-long-random-part"
    with transaction.atomic():
        create_project({"id": "pay", "name": "Pay"}, caller=SYSTEM)
        starting = in_thread(lambda: create_init_tokens({"INIT_CLIENT_API_TOKENS": secret}))
        assert not starting.done()
    assert starting.result(timeout=60) == 1
    token = ApiToken.objects.get()
    assert not token.is_pending
    assert [scope.project_id for scope in token.scopes.all()] == ["pay"]


def test_a_project_that_is_created_during_a_start_gets_its_token():
    secret = "pay:production.a-long-random-part"
    with transaction.atomic():
        create_init_tokens({"INIT_CLIENT_API_TOKENS": secret})
        creating = in_thread(lambda: create_project({"id": "pay", "name": "Pay"}, caller=SYSTEM))
        assert not creating.done()
    creating.result(timeout=60)
    assert not ApiToken.objects.get().is_pending
