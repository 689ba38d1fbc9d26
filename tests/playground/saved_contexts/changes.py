"""Changes of every kind that a flag's evaluation in production depends on, by the action that makes them."""

import json
from collections.abc import Callable
from typing import Any

from flagadmin.core.audit.models import AuditEvent
from importer.apply.execute import CheckedImport, apply_checked, import_body, promote_flags
from importer.apply.undo import undo_import
from importer.body.schemas import read_body
from importer.promotion import Promotion
from importer.runs import create_run
from projects.flags.actions import NewFlag
from projects.flags.archive import actions as archive
from projects.flags.copies import move
from projects.flags.dependencies import actions as dependencies
from projects.flags.environments import actions as environments
from projects.flags.form_pages import create_running_flag
from projects.models import Dependency, Segment
from projects.reverts.actions import revert_change, revert_environment, revert_flag
from projects.segments.actions import update_list, update_segment
from projects.segments.lists import SentList
from projects.strategies import actions as strategies
from tests.playground.saved_contexts.guarded import (
    GREEN,
    NOBODY,
    PLACE,
    WHO,
    an_import,
    expected,
    persona,
    strategy,
)
from tests.support.cast import make_project
from tests.support.playground import live_flag

OFF = ("shop", "off", "production")
Change = Callable[[], Any]

# Whatever leads there is written first, and the last change is what must be refused.


def confirmed_import() -> Change:
    run = create_run(json.dumps(an_import()).encode(), caller=WHO)
    checked = CheckedImport("shop", lambda: read_body(an_import()), run.fingerprint, run.checked_at)
    return lambda: apply_checked(checked, caller=WHO, run=run)


def reordered() -> Change:
    """The first strategy says which variant it is."""
    second = strategies.add_strategy(*PLACE, {"name": "default", "variants": GREEN}, caller=WHO)
    orders = [(second["id"], 0), (strategy(), 1)]
    return lambda: strategies.order_strategies(*PLACE, orders, caller=WHO)


def turned_on(by: Change) -> Callable[[], Change]:
    """A flag that is expected to be off."""

    def prepare() -> Change:
        live_flag("off", enabled=False)
        return by

    return prepare


def added_strategy() -> Change:
    live_flag("off", strategies=[{"name": "default", "constraints": NOBODY}])
    return lambda: strategies.add_strategy(*OFF, {"name": "default"}, caller=WHO)


def without_parent(by: Change) -> Callable[[], Change]:
    """A flag that is off because its parent is."""

    def prepare() -> Change:
        Dependency.objects.create(flag=live_flag("off"), parent=live_flag("above", enabled=False))
        return by

    return prepare


def moved_away() -> Change:
    make_project("docs")
    persona(expected("other"), name="Bea")
    return lambda: move.move_flag("shop", "other", "docs", caller=WHO)


def undone() -> Change:
    run = import_body(read_body(an_import("other", enabled=False)), caller=WHO)
    persona(expected("other", enabled=False), name="Bea")
    return lambda: undo_import(run.pk, caller=WHO)


def reverted() -> Change:
    environments.disable_flag("shop", "other", "production", caller=WHO)
    off = AuditEvent.objects.latest("id")
    environments.enable_flag("shop", "other", "production", caller=WHO)
    persona(expected("other"), name="Bea")
    return lambda: revert_flag("shop", "other", off.created_at, caller=WHO)


def set_back() -> Change:
    environments.disable_flag("shop", "other", "production", caller=WHO)
    off = AuditEvent.objects.latest("id")
    environments.enable_flag("shop", "other", "production", caller=WHO)
    persona(expected("other"), name="Bea")
    return lambda: revert_environment("production", off.created_at, caller=WHO)


def taken_back() -> Change:
    environments.disable_flag("shop", "other", "production", caller=WHO)
    off = AuditEvent.objects.latest("id")
    persona(expected("other", enabled=False), name="Bea")
    return lambda: revert_change(off.pk, caller=WHO)


def promoted() -> Change:
    """The flag is off in development."""
    promotion = Promotion("shop", "development", "production", ("cart",), frozenset({"enabled"}))
    return lambda: promote_flags(promotion, caller=WHO)


def plain(by: Change) -> Callable[[], Change]:
    return lambda: by


CHANGES: dict[str, Callable[[], Change]] = {
    "importer.apply.execute.apply_checked": confirmed_import,
    "importer.apply.execute.import_body": plain(lambda: import_body(read_body(an_import()), caller=WHO)),
    "importer.apply.execute.promote_flags": promoted,
    "importer.apply.undo.undo_import": undone,
    "projects.flags.archive.actions.archive_flags": plain(
        lambda: archive.archive_flags("shop", ["cart", "child"], caller=WHO)
    ),
    "projects.flags.archive.actions.archive_flags_of_projects": plain(
        lambda: archive.archive_flags_of_projects({"shop": ["cart", "child"]}, caller=WHO)
    ),
    "projects.flags.form_pages.create_running_flag": plain(
        lambda: create_running_flag("shop", NewFlag(name="off"), "production", None, caller=WHO)
    ),
    "projects.flags.dependencies.actions.add_dependency": plain(
        lambda: dependencies.add_dependency(
            "shop", "child", {"feature": "cart", "enabled": False}, caller=WHO
        )
    ),
    "projects.flags.dependencies.actions.clear_dependencies": without_parent(
        lambda: dependencies.clear_dependencies("shop", "off", caller=WHO)
    ),
    "projects.flags.dependencies.actions.remove_dependency": without_parent(
        lambda: dependencies.remove_dependency("shop", "off", "above", caller=WHO)
    ),
    "projects.flags.environments.actions.disable_flag": plain(
        lambda: environments.disable_flag(*PLACE, caller=WHO)
    ),
    "projects.flags.environments.actions.switch_flags": plain(
        lambda: environments.switch_flags({"shop": ["other", "cart"]}, "production", False, caller=WHO)
    ),
    "projects.flags.environments.actions.edit_variants": plain(
        lambda: environments.set_variants(*PLACE, GREEN, caller=WHO)
    ),
    "projects.flags.environments.actions.enable_flag": turned_on(
        lambda: environments.enable_flag(*OFF, caller=WHO)
    ),
    "projects.flags.environments.actions.set_variants_in": plain(
        lambda: environments.set_variants_in("shop", "cart", ["production"], GREEN, caller=WHO)
    ),
    "projects.flags.copies.move.move_flag": moved_away,
    "projects.reverts.actions.revert_flag": reverted,
    "projects.reverts.actions.revert_environment": set_back,
    "projects.reverts.actions.revert_change": taken_back,
    "projects.segments.actions.update_segment": plain(
        lambda: update_segment(Segment.objects.get().pk, {"constraints": NOBODY}, caller=WHO)
    ),
    "projects.segments.actions.update_list": plain(
        lambda: update_list(Segment.objects.get().pk, SentList(["nobody"], ""), mode="replace", caller=WHO)
    ),
    "projects.strategies.actions.add_strategy": added_strategy,
    "projects.strategies.actions.edit_strategy": plain(
        lambda: strategies.update_strategy(*PLACE, strategy(), {"constraints": NOBODY}, caller=WHO)
    ),
    "projects.strategies.actions.order_strategies": reordered,
    "projects.strategies.actions.update_for_some": plain(
        lambda: strategies.update_for_some(*PLACE, strategy(), {"variants": GREEN}, caller=WHO)
    ),
    "projects.strategies.actions.remove_strategy": plain(
        lambda: strategies.remove_strategy(*PLACE, strategy(), caller=WHO)
    ),
}
