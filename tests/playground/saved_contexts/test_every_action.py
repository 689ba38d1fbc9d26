"""Every action there is either breaks no expectation, or is refused where a project enforces it.

The actions are read from the code. A new one fails here until it is listed with a change of it that must be refused, or
with what it changes in place of evaluations.
"""

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.change_checks import BrokenExpectations
from importer.apply.execute import CheckedImport, apply_checked, import_body, promote_flags
from importer.apply.progress import NoProgress
from importer.apply.undo import undo_import
from importer.body.schemas import read_body
from importer.promotion import Promotion
from importer.runs import create_run
from projects.access import change_in_each_project
from projects.flags import archive, dependencies, environments, move
from projects.flags.actions import NewFlag
from projects.flags.create_running import create_running_flag
from projects.flags.revert import revert_flag
from projects.flags.revert_plan import Target
from projects.models import Dependency, Segment
from projects.segments.actions import update_segment
from projects.strategies import actions as strategies
from tests.playground.saved_contexts.guarded import (
    GREEN,
    NOBODY,
    PLACE,
    WHO,
    an_import,
    cart,
    expected,
    failing,
    persona,
    strategy,
)
from tests.support.cast import make_project
from tests.support.paths import ROOT
from tests.support.playground import live_flag

__all__ = ["cart"]

OFF = ("shop", "off", "production")
Change = Callable[[], Any]

# Whatever leads there is written first, and the last change is what must be refused.


def confirmed_import() -> Change:
    run = create_run(json.dumps(an_import()).encode(), caller=WHO)
    checked = CheckedImport("shop", lambda: read_body(an_import()), run.fingerprint, run.checked_at)
    return lambda: apply_checked(checked, caller=WHO, run=run, progress=NoProgress())


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
    return lambda: revert_flag("shop", "other", Target(off.created_at, off.pk), caller=WHO)


def promoted() -> Change:
    """The flag is off in development."""
    promotion = Promotion("shop", "development", "production", ("cart",), frozenset({"enabled"}))
    return lambda: promote_flags(promotion, caller=WHO)


def plain(by: Change) -> Callable[[], Change]:
    return lambda: by


REFUSED: dict[str, Callable[[], Change]] = {
    "importer.apply.execute.apply_checked": confirmed_import,
    "importer.apply.execute.import_body": plain(lambda: import_body(read_body(an_import()), caller=WHO)),
    "importer.apply.execute.promote_flags": promoted,
    "importer.apply.undo.undo_import": undone,
    "projects.flags.archive.archive_flags": plain(
        lambda: archive.archive_flags("shop", ["cart", "child"], caller=WHO)
    ),
    "projects.flags.archive.archive_flags_of_projects": plain(
        lambda: archive.archive_flags_of_projects({"shop": ["cart", "child"]}, caller=WHO)
    ),
    "projects.access.change_in_each_project": plain(
        lambda: change_in_each_project(
            {"shop": ["other", "cart"]},
            lambda project, names: environments.disable_flags(project, names, "production", caller=WHO),
            caller=WHO,
        )
    ),
    "projects.flags.create_running.create_running_flag": plain(
        lambda: create_running_flag("shop", NewFlag(name="off"), "production", None, caller=WHO)
    ),
    "projects.flags.dependencies.add_dependency": plain(
        lambda: dependencies.add_dependency(
            "shop", "child", {"feature": "cart", "enabled": False}, caller=WHO
        )
    ),
    "projects.flags.dependencies.clear_dependencies": without_parent(
        lambda: dependencies.clear_dependencies("shop", "off", caller=WHO)
    ),
    "projects.flags.dependencies.remove_dependency": without_parent(
        lambda: dependencies.remove_dependency("shop", "off", "above", caller=WHO)
    ),
    "projects.flags.environments.disable_flag": plain(lambda: environments.disable_flag(*PLACE, caller=WHO)),
    "projects.flags.environments.disable_flags": plain(
        lambda: environments.disable_flags("shop", ["other", "cart"], "production", caller=WHO)
    ),
    "projects.flags.environments.edit_variants": plain(
        lambda: environments.set_variants(*PLACE, GREEN, caller=WHO)
    ),
    "projects.flags.environments.enable_flag": turned_on(lambda: environments.enable_flag(*OFF, caller=WHO)),
    "projects.flags.environments.enable_flags": turned_on(
        lambda: environments.enable_flags("shop", ["off"], "production", caller=WHO)
    ),
    "projects.flags.environments.set_variants_in": plain(
        lambda: environments.set_variants_in("shop", "cart", ["production"], GREEN, caller=WHO)
    ),
    "projects.flags.move.move_flag": moved_away,
    "projects.flags.revert.revert_flag": reverted,
    "projects.segments.actions.update_segment": plain(
        lambda: update_segment(Segment.objects.get().pk, {"constraints": NOBODY}, caller=WHO)
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

# What gives every context the same result as before, by the reason.
HARMLESS = {
    "a flag that is off, as one that does not exist": """
        projects.flags.actions.create_flag projects.flags.archive.delete_flags projects.flags.archive.revive_flags
        projects.flags.clone.clone_flag""",
    "no flag is on there, or in it": """
        projects.deletion.execute.delete_project projects.environments.actions.delete_environment
        projects.projects.actions.archive_project projects.projects.actions.create_project
        projects.projects.actions.revive_project projects.projects.environments.add_environment
        projects.projects.environments.remove_environment""",
    "no strategy uses it": """
        projects.segments.actions.create_segment projects.segments.actions.delete_segment""",
    "what flags get that are turned on later": "projects.projects.environments.set_default_strategy",
    "details that no evaluation reads": """
        projects.environments.actions.create_environment projects.environments.actions.sort_environments
        projects.environments.actions.update_environment projects.flags.actions.edit_flag
        projects.flags.actions.set_stale projects.flags.flag_types.set_lifetime
        projects.flags.lifecycle.complete_flag projects.flags.lifecycle.uncomplete_flag
        projects.flags.links.add_link projects.flags.links.remove_link projects.flags.links.update_link
        projects.flags.tags.change_tags projects.flags.tags.change_tags_of_many
        projects.installation.actions._write
        projects.projects.actions.update_project projects.projects.favorites.set_flag_favorite
        projects.projects.favorites.set_project_favorite projects.tag_types.actions.create_tag_type
        projects.tag_types.actions.delete_tag_type projects.tag_types.actions.update_tag_type
        projects.tag_types.tags.create_tag projects.tag_types.tags.delete_tag""",
    "what may be entered, not what is stored": """
        projects.context_fields.actions.create_context_field projects.context_fields.actions.delete_context_field
        projects.context_fields.actions.update_context_field projects.context_fields.actions._change_legal_values
        projects.strategies.strategy_types.create_strategy_type
        projects.strategies.strategy_types.delete_strategy_type
        projects.strategies.strategy_types.deprecate_strategy_type
        projects.strategies.strategy_types.reactivate_strategy_type
        projects.strategies.strategy_types.update_strategy_type""",
    "who may do what": """
        projects.members.actions.add_roles projects.members.actions.remove_role
        projects.members.actions.replace_access projects.members.actions.set_roles projects.members.grant_page.grant
        projects.tokens.actions.create_project_token projects.tokens.actions.create_token
        projects.tokens.actions.delete_project_token projects.tokens.actions.delete_token
        projects.tokens.actions.update_token projects.tokens.automation.create_automation
        projects.tokens.start_up.create_init_tokens""",
    "what SDKs report": """
        projects.applications.actions.delete_application projects.applications.actions.update_application
        projects.applications.cleanup._delete projects.applications.store_report.store_report
        projects.applications.usage_sums.delete_hours projects.applications.usage_sums.refresh_totals
        projects.connect.refusals._store projects.connect.refusals._forget
        sdk.delta.version_ids._store_next_id""",
    "files that are not imported yet, or evaluated": """
        importer.runs.create_run importer.runs.create_promotion importer.runs.change_parts
        importer.runs.check_run playground.user_runs.runs.create_run""",
    "what is expected, which is decided by those of the project": """
        playground.saved_contexts.actions.create_saved_context
        playground.saved_contexts.actions.delete_saved_context
        playground.saved_contexts.actions.update_saved_context""",
}


def actions() -> Iterator[str]:
    """Every function that runs in `transactional`, in what knows of flags."""
    for package in ("projects", "playground", "sdk", "importer"):
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield from (f"{module}.{name}" for name in _transactional_functions(path))


def _transactional_functions(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and "transactional" in map(ast.unparse, node.decorator_list):
            yield node.name


def test_every_action_is_listed():
    listed = [*REFUSED, *(name for names in HARMLESS.values() for name in names.split())]
    assert sorted(actions()) == sorted(listed)


@pytest.mark.parametrize("action", REFUSED)
def test_what_breaks_an_expectation_is_refused(cart, action):
    change = REFUSED[action]()
    assert not failing()
    before = AuditEvent.objects.count()
    with pytest.raises(BrokenExpectations), transaction.atomic():
        change()
    assert not failing()
    assert AuditEvent.objects.count() == before
