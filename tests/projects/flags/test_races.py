"""Concurrent changes to flags have the same result as one after the other."""

from collections.abc import Callable

import pytest

from flagadmin.core.errors import AppError
from groups.access import Caller
from projects.flags import (
    actions as flags,
)
from projects.flags.archive import actions as archiving
from projects.flags.copies import move as moving
from projects.flags.dependencies import actions as dependencies
from projects.flags.environments import actions as flag_environments
from projects.models import Dependency, Flag, FlagEnvironment, Strategy
from tests.support.cast import make_project
from tests.support.flags import add_strategy, make_flag
from tests.support.racing import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.exhaustive]


def told(*actions: Callable[[], object]) -> list[str]:
    """Runs them at the same moment; answers "done" or the refusal's name for each, sorted."""
    return sorted(each.name if isinstance(each, AppError) else "done" for each in together(*actions))


@pytest.fixture
def shop(transactional_db):
    return make_project("shop")


SYSTEM = Caller.system


@pytest.mark.parametrize(
    ("created", "limit", "outcome"),
    [
        pytest.param(["shop/a"] * 3, 5, ["NameExistsError", "NameExistsError", "done"], id="one name"),
        pytest.param(["shop/a", "other/a"], 5, ["NameExistsError", "done"], id="in two projects"),
        pytest.param(["shop/a", "shop/b"], 1, ["InvalidOperationError", "done"], id="the last place"),
    ],
)
def test_one_is_created(shop, created, limit, outcome):
    make_project("other")
    shop.flag_limit = limit
    shop.save()

    def create(path):
        project, name = path.split("/")
        return lambda: flags.create_flag(project, flags.NewFlag(name=name), caller=SYSTEM())

    assert told(*map(create, created)) == outcome
    assert Flag.objects.count() == 1


def test_archiving_while_switching_on(shop):
    for number in range(5):
        name = f"cart{number}"
        add_strategy(make_flag(name))
        outcomes = told(
            lambda name=name: archiving.archive_flags("shop", [name], caller=SYSTEM()),
            lambda name=name: flag_environments.enable_flag("shop", name, "development", caller=SYSTEM()),
        )
        # Switched on first and then archived, or archived first and then unknown: never an error of ours.
        assert outcomes in (["done", "done"], ["NotFoundError", "done"])
        assert Flag.objects.get(name=name).is_archived


def test_switching_on_twice_adds_one_default_strategy(shop):
    make_flag("cart")

    def switch_on():
        flag_environments.enable_flag("shop", "cart", "development", caller=SYSTEM())

    assert told(switch_on, switch_on) == ["done", "done"]
    assert Strategy.objects.count() == 1
    assert FlagEnvironment.objects.get(environment="development").enabled


def test_no_chain_comes_of_two_dependencies_at_once(shop):
    for name in ("a", "b", "c"):
        make_flag(name)

    def depend(child, parent):
        return lambda: dependencies.add_dependency("shop", child, {"feature": parent}, caller=SYSTEM())

    assert told(depend("a", "b"), depend("b", "c")) == ["ValidationError", "done"]
    assert Dependency.objects.count() == 1


def test_archiving_a_parent_while_it_gets_a_child(shop):
    make_flag("parent")
    make_flag("child")
    outcomes = told(
        lambda: archiving.archive_flags("shop", ["parent"], caller=SYSTEM()),
        lambda: dependencies.add_dependency("shop", "child", {"feature": "parent"}, caller=SYSTEM()),
    )
    assert outcomes in (["InvalidOperationError", "done"], ["ValidationError", "done"])
    assert Flag.objects.get(name="parent").is_archived != Dependency.objects.exists()


def test_two_flags_change_places(shop):
    make_project("other")
    make_flag("here")
    make_flag("there", "other")
    outcomes = told(
        lambda: moving.move_flag("shop", "here", "other", caller=SYSTEM()),
        lambda: moving.move_flag("other", "there", "shop", caller=SYSTEM()),
    )
    assert outcomes == ["done", "done"]
    assert dict(Flag.objects.values_list("name", "project")) == {"here": "other", "there": "shop"}
