"""Change requests that wait for somebody: to be approved or applied, to be sent, or to be looked at again."""

from collections.abc import Collection

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from groups.access import Caller
from projects.models import ProjectEnvironment
from releases.models import ChangeRequest, Review, Schedule
from releases.requests.apply import APPLY
from releases.requests.approvals import may_approve
from releases.requests.queries import by, visible_requests

State, Status = ChangeRequest.State, Schedule.Status
NONE = Q(pk__in=[])


def waiting_for(caller: Caller, requests: QuerySet[ChangeRequest]) -> QuerySet[ChangeRequest]:
    """Finds the requests that the caller may approve, and has not, or may apply. One or two queries per environment."""
    undecided = requests.filter(state__in=(State.IN_REVIEW, State.APPROVED)).order_by()
    places = list(undecided.values_list("project_id", "environment_id").distinct())
    review, apply, enough = NONE, by(caller) & Q(required_approvals=0), NONE
    most = _read_most_needed({project for project, _ in places})
    for project, environment in places:
        here = Q(project=project, environment=environment)
        if may_approve(project, environment, caller):
            review |= here
        if caller.can(APPLY, project=project, environment=environment):
            apply |= here
            enough |= here & Q(approvals__gte=most.get((project, environment), 0))
    approved = Review.objects.filter(by(caller), approved=True)
    review &= ~Q(pk__in=approved.values("request"))
    if not caller.is_admin:
        review &= ~by(caller)
    given = Review.objects.filter(request=OuterRef("pk"), approved=True).order_by().values("request")
    counted = requests.annotate(
        approvals=Coalesce(Subquery(given.annotate(number=Count("pk")).values("number")), 0)
    )
    return counted.filter(Q(review | enough, state=State.IN_REVIEW) | Q(apply, state=State.APPROVED))


def _read_most_needed(projects: Collection[str]) -> dict[tuple[str, str], int]:
    """The most approvals that a request needs in each guarded environment, whatever it does."""
    links = ProjectEnvironment.objects.needing_requests().filter(project__in=projects)
    return {
        (link.project_id, link.environment_id): max(
            link.required_approvals or 0, *(rule["requiredApprovals"] for rule in link.approval_rules), 0
        )
        for link in links
    }


def read_drafts(caller: Caller) -> QuerySet[ChangeRequest]:
    return visible_requests(caller).filter(by(caller), state=State.DRAFT)


def scheduled_next(caller: Caller) -> QuerySet[ChangeRequest]:
    """Finds what changes automatically, the next first."""
    scheduled = visible_requests(caller).filter(state=State.SCHEDULED, schedule__status=Status.PENDING)
    return scheduled.order_by("schedule__at", "schedule__id")


def suspended(caller: Caller) -> QuerySet[ChangeRequest]:
    """Finds what was not applied at its time, of the caller's own or scheduled by them; for admins, of anybody."""
    requests = visible_requests(caller).filter(state=State.SCHEDULED)
    requests = requests.filter(schedule__status__in=(Status.SUSPENDED, Status.FAILED))
    return requests if caller.is_admin else requests.filter(by(caller) | Q(schedule__by=caller.id))
