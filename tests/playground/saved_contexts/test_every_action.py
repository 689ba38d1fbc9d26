"""Every action there is either breaks no expectation, or is refused where a project enforces it.

The actions are read from the code. A new one fails here until it is listed with a change of it that must be refused, or
with what it changes in place of evaluations.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.change_checks import BrokenExpectations
from projects.definitions import read_definitions
from projects.models import Project, ProjectEnvironment
from releases.gate_refusal import NeedsChangeRequest
from tests.playground.saved_contexts.changes import CHANGES
from tests.playground.saved_contexts.guarded import cart, failing
from tests.support.paths import ROOT

__all__ = ["cart"]

# What gives every context the same result as before, by the reason.
HARMLESS = {
    "a flag that is off, as one that does not exist": """
        projects.flags.actions.create_flag projects.flags.archive.actions.delete_flags projects.flags.archive.actions.revive_flags
        projects.flags.copies.clone.clone_flag""",
    "no flag is on there, or in it": """
        projects.deletion.execute.delete_project projects.environments.actions.delete_environment
        projects.projects.actions.archive_project projects.projects.actions.create_project
        projects.projects.actions.revive_project projects.projects.environments.add_environment
        projects.projects.environments.remove_environment""",
    "no strategy uses it": """
        projects.segments.actions.create_segment projects.segments.actions.delete_segment""",
    "what flags get that are turned on later": "projects.projects.environments.set_default_strategy",
    "who must approve changes": "projects.projects.environments.set_policy",
    "details that no evaluation reads": """
        projects.environments.actions.create_environment projects.environments.actions.sort_environments
        projects.environments.actions.update_environment projects.flags.actions.edit_flag
        projects.flags.payloads.actions.set_schema projects.segments.source_task.set_source projects.segments.source_task.fetch_soon
        projects.flags.actions.set_stale projects.flags.types.actions.set_lifetime
        projects.flags.lifecycle.actions.complete_flag projects.flags.lifecycle.actions.uncomplete_flag
        projects.flags.actions.add_link projects.flags.actions.remove_link projects.flags.actions.update_link
        projects.flags.actions.change_tags projects.flags.actions.change_tags_of_many
        projects.installation.actions._write
        projects.projects.actions.update_project projects.projects.environments.require_comment projects.projects.actions.set_flag_favorite
        projects.projects.actions.set_project_favorite projects.tag_types.actions.create_tag_type
        projects.tag_types.actions.delete_tag_type projects.tag_types.actions.update_tag_type
        projects.tag_types.actions.create_tag projects.tag_types.actions.delete_tag""",
    "what may be entered, not what is stored": """
        projects.context_fields.actions.create_context_field projects.context_fields.actions.delete_context_field
        projects.context_fields.actions.update_context_field projects.context_fields.actions._change_legal_values
        projects.strategies.strategy_types.create_strategy_type
        projects.strategies.strategy_types.delete_strategy_type
        projects.strategies.strategy_types.deprecate_strategy_type
        projects.strategies.strategy_types.reactivate_strategy_type
        projects.strategies.strategy_types.update_strategy_type""",
    "what one person sees": """
        projects.flags.lists.views.delete_view projects.flags.lists.views.save_view""",
    "who may do what": """
        projects.members.actions.add_roles projects.members.actions.remove_role
        projects.members.actions.replace_access projects.members.actions.set_roles projects.members.grant_page.grant
        projects.members.actions.invite
        projects.tokens.actions.create_project_token projects.tokens.actions.create_token
        projects.tokens.actions.delete_project_token projects.tokens.actions.delete_token
        projects.tokens.actions.update_token projects.tokens.actions.create_automation
        projects.tokens.start_up.create_init_tokens
        projects.tokens.pending.announce_expiring_tokens""",
    "what SDKs report": """
        projects.applications.cleanup.delete_application projects.applications.cleanup.update_application
        projects.applications.cleanup._delete projects.applications.store_report.store_report
        projects.applications.cleanup.delete_hours projects.applications.cleanup.refresh_totals
        projects.applications.impact_metrics.clean_points sdk.reports.batcher.count_once
        projects.connect.queries._store projects.connect.queries._forget
        projects.references.actions.report_references projects.relays.reports.store_relays
        sdk.delta.states._store_next_id""",
    "files that are not imported yet, or evaluated": """
        importer.runs.create_run importer.runs.create_promotion importer.runs.change_parts
        importer.converting.runs.change_conversion importer.converting.runs.create_conversion
        importer.runs.check_run playground.user_runs.runs.create_run
        playground.outcomes.analyses.actions.create_analysis playground.outcomes.analyses.actions.delete_analysis
        playground.outcomes.runs._create_incident playground.outcomes.runs.create_assignments
        playground.user_runs.file.keep_own_users playground.user_runs.file.forget_own_users""",
    "proposals, whose changes are made by the actions above": """
        releases.requests.details.ask_reviewer releases.requests.details.comment
        releases.requests.details.remove_reviewer releases.requests.details.set_reviewers
        releases.requests.details.set_title releases.requests.propose.add_changes
        releases.requests.propose.delete_request releases.requests.propose.edit_change
        releases.requests.propose.keep_change releases.requests.propose.remove_change
        releases.requests.revert.revert_request releases.requests.states._set_state
        releases.requests.propose.send_changes releases.schedules.later.save_later
        releases.schedules.actions._schedule releases.schedules.actions.cancel_schedule
        releases.schedules.due.apply_scheduled releases.schedules.due.note_failure""",
    "steps of release plans, whose strategies are written by the actions above": """
        releases.plans.actions._remove releases.plans.actions._start releases.plans.actions.pause_plan
        releases.plans.actions.resume_plan releases.plans.actions.set_transition releases.plans.actions.turn_off
        releases.plans.add.add_plan releases.plans.add.add_steps releases.plans.due._react
        releases.plans.due._take_step releases.plans.due.note_failure releases.plans.actions._edit
        releases.requests.propose.propose_once releases.plans.add.adopt_plan
        releases.safeguards.judge._turn_off releases.schedules.later._propose_steps
        releases.plans.add.save_in_steps""",
    "what plans are made from, and what holds them": """
        releases.safeguards.actions.note_alert releases.safeguards.actions.remove_safeguard
        releases.safeguards.actions.set_safeguard releases.templates.actions.edit_milestones
        releases.safeguards.actions.set_flag_safeguard releases.safeguards.actions.remove_flag_safeguard
        releases.safeguards.actions.set_chart releases.safeguards.actions.remove_chart
        releases.templates.actions.archive_template releases.templates.actions.create_template
        releases.templates.actions.delete_template releases.templates.actions.update_template""",
    "imports and lists from a URL, each of which is checked as above": """
        projects.segments.source_task._replace projects.segments.source_task._store
        importer.apply.execute.import_part importer.as_code.actions._write""",
    "the writer, which is called by the actions above": """
        projects.strategies.write.change_flag projects.strategies.write.change_flags
        releases.changes.flags.apply_together releases.plans.steps.write_strategies""",
    "what is expected, which is decided by those of the project": """
        playground.saved_contexts.actions.add_expectation
        playground.saved_contexts.actions.create_saved_context
        playground.saved_contexts.actions.delete_saved_context
        playground.saved_contexts.actions.update_saved_context""",
}


def actions() -> Iterator[str]:
    """Every function that runs in `transactional` or calls the writer, in what knows of flags."""
    for package in ("projects", "playground", "releases", "sdk", "importer"):
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield from (f"{module}.{name}" for name in _transactional_functions(path))


def _transactional_functions(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef):
            continue
        calls = {ast.unparse(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
        if "transactional" in map(ast.unparse, node.decorator_list) or calls & {
            "change_flag",
            "change_flags",
        }:
            yield node.name


def test_every_action_is_listed():
    listed = [*CHANGES, *(name for names in HARMLESS.values() for name in names.split())]
    assert sorted(actions()) == sorted(listed)


TRIED = frozenset({"projects.flags.form_pages.create_running_flag", "projects.flags.copies.move.move_flag"})
"""Their refusals are only found once they are written."""
WRITES = ("INSERT", "UPDATE", "DELETE", "COPY")


@pytest.mark.parametrize("action", CHANGES)
def test_what_breaks_an_expectation_is_refused_and_so_is_what_needs_a_change_request(cart, action):
    """Where the project asks for requests in place of expectations, the same effect is refused, whatever has it."""
    change = CHANGES[action]()
    assert not failing()
    before, answered = AuditEvent.objects.count(), read_definitions(["shop"], "production")
    check_refused(BrokenExpectations, change, before, writes=action in TRIED)
    assert not failing()
    Project.objects.filter(pk="shop").update(refuse_broken_expectations=False)
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)
    check_refused(NeedsChangeRequest, change, before, writes=action in TRIED)
    assert read_definitions(["shop"], "production") == answered


def check_refused(error, change, events, *, writes):
    with CaptureQueriesContext(connection) as queries, pytest.raises(error), transaction.atomic():
        change()
    assert AuditEvent.objects.count() == events
    assert any(query["sql"].lstrip().startswith(WRITES) for query in queries) == writes
