"""Change requests that wait for somebody: to be approved or applied, to be sent, or to be looked at again."""

from django.db.models import Q, QuerySet

from groups.access import Caller
from releases.models import ChangeRequest, Review, Schedule
from releases.requests.apply import APPLY
from releases.requests.approvals import may_approve
from releases.requests.queries import by, visible_requests

State, Status = ChangeRequest.State, Schedule.Status
NONE = Q(pk__in=[])


def waiting_for(caller: Caller, requests: QuerySet[ChangeRequest]) -> QuerySet[ChangeRequest]:
    """Finds the requests that the caller may approve, and has not, or may apply. One or two queries per environment."""
    undecided = requests.filter(state__in=(State.IN_REVIEW, State.APPROVED)).order_by()
    review, apply = NONE, by(caller) & Q(required_approvals=0)
    for project, environment in undecided.values_list("project_id", "environment_id").distinct():
        here = Q(project=project, environment=environment)
        if may_approve(project, environment, caller):
            review |= here
        if caller.can(APPLY, project=project, environment=environment):
            apply |= here
    approved = Review.objects.filter(by(caller), approved=True)
    review &= ~Q(pk__in=approved.values("request"))
    if not caller.is_admin:
        review &= ~by(caller)
    return requests.filter(Q(review, state=State.IN_REVIEW) | Q(apply, state=State.APPROVED))


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
