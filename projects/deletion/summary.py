"""Describes what deleting a project removes, as sentences and lists of names."""

from collections.abc import Iterable

from flagadmin.core.wording import join_words, pluralize
from projects.deletion.plan import Access, DeletionPlan


def describe_loss(plan: DeletionPlan) -> str:
    """Describes the losses, such as ``project shop, its 4 archived flags, 2 API tokens, and the access of 1 group``."""
    flags = len(plan.archived) + len(plan.active)
    state = "" if plan.active else "archived "
    parts = [
        f"project {plan.project.pk}",
        f"its {pluralize(flags, f'{state}flag')}" if flags else "",
        pluralize(len(plan.segments), "segment") if plan.segments else "",
        pluralize(len(plan.context_fields), "context field") if plan.context_fields else "",
        pluralize(len(plan.saved_contexts), "saved context") if plan.saved_contexts else "",
        pluralize(len(plan.release_plans), "release plan") if plan.release_plans else "",
        pluralize(len(plan.release_templates), "release template") if plan.release_templates else "",
        pluralize(plan.change_requests, "change request") if plan.change_requests else "",
        pluralize(len(plan.deleted_tokens), "API token") if plan.deleted_tokens else "",
        f"the access of {count_holders(plan)}" if plan.groups or plan.people else "",
    ]
    return join_words([part for part in parts if part], comma=",")


def count_holders(plan: DeletionPlan) -> str:
    """Counts the holders, such as ``1 group and 3 people``; a holder of several roles counts once."""
    numbers = [
        pluralize(_count_people(plan.groups), "group") if plan.groups else "",
        pluralize(_count_people(select_people(plan)), "person", "people") if select_people(plan) else "",
        pluralize(_count_people(select_services(plan)), "service account") if select_services(plan) else "",
    ]
    return join_words([number for number in numbers if number])


def select_people(plan: DeletionPlan) -> list[Access]:
    return [access for access in plan.people if not access.is_service]


def select_services(plan: DeletionPlan) -> list[Access]:
    return [access for access in plan.people if access.is_service]


def list_losses(plan: DeletionPlan) -> list[tuple[str, list[str]]]:
    """Lists what would be deleted, as [(label, names), …], without empty entries."""
    named = [
        ("Archived flags", plan.archived),
        ("Active flags", plan.active_names),
        ("Segments", plan.segments),
        ("Context fields", plan.context_fields),
        ("Saved contexts", plan.saved_contexts),
        ("Release plans", plan.release_plans),
        ("Release templates", plan.release_templates),
        ("API tokens", plan.deleted_tokens),
        ("Groups", _name_with_roles(plan.groups)),
        ("People", _name_with_roles(select_people(plan))),
        ("Service accounts", _name_with_roles(select_services(plan))),
    ]
    return [(label, names) for label, names in named if names]


def explain_block(plan: DeletionPlan) -> str:
    """Explains why the delete button is disabled; "" if nothing blocks deletion."""
    if plan.is_default:
        return "The default project cannot be deleted."
    if plan.active:
        return f"{count_active(plan)}."
    if plan.dependants:
        flags = len({dependant.name for dependant in plan.dependants})
        verb = "needs" if flags == 1 else "need"
        return f"{pluralize(flags, 'flag')} elsewhere still {verb} what is here."
    return ""


def count_active(plan: DeletionPlan) -> str:
    verb = "is" if len(plan.active) == 1 else "are"
    return f"{pluralize(len(plan.active), 'flag')} {verb} still active"


def _count_people(accesses: Iterable[Access]) -> int:
    return len({access.id for access in accesses})


def _name_with_roles(accesses: Iterable[Access]) -> list[str]:
    """Names the holders with their roles, such as ``Maria Olsen (Owner, Member)``, sorted by name."""
    names: dict[int, str] = {}
    roles: dict[int, list[str]] = {}
    for access in accesses:
        names[access.id] = access.name
        roles.setdefault(access.id, []).append(access.role)
    return [f"{names[key]} ({', '.join(roles[key])})" for key in sorted(names, key=lambda key: names[key])]
