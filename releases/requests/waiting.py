"""Change requests that wait for a user to approve, apply, send or review them."""

from collections.abc import Collection

from django.db.models import Count, F, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from groups.access import Caller
from projects.models import ProjectEnvironment
from releases.models import ChangeRequest, Review, Schedule
from releases.requests.apply import APPLY
from releases.requests.approvals import find_strictest
from releases.requests.approvers import may_approve
from releases.requests.lapses import find_lapses
from releases.requests.queries import by, visible_requests

State, Status = ChangeRequest.State, Schedule.Status
NONE = Q(pk__in=[])


def waiting_for(caller: Caller, requests: QuerySet[ChangeRequest]) -> QuerySet[ChangeRequest]:
    """The requests that the caller may approve and has not, or may apply.

    One or two queries per environment, and a few for all approvals, of which only those count that have not lapsed.
    """
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
    given = Review.objects.filter(request=OuterRef("pk"), approved=True).exclude(
        pk__in=_find_lapsed(undecided)
    )
    numbers = given.order_by().values("request").annotate(number=Count("pk")).values("number")
    counted = requests.annotate(approvals=Coalesce(Subquery(numbers), 0))
    is_enough = Q(approvals__gte=F("required_approvals"))
    approved_by_now = Q(apply & is_enough | review & ~is_enough, state=State.APPROVED)
    return counted.filter(Q(review | enough, state=State.IN_REVIEW) | approved_by_now)


def _find_lapsed(undecided: QuerySet[ChangeRequest]) -> list[int]:
    """The ids of approvals that do not count."""
    reviews = Review.objects.select_related("author").defer("impact", "fingerprint")
    given = Review.objects.filter(approved=True, request__in=undecided.values("pk")).values("request")
    requests = ChangeRequest.objects.filter(pk__in=given).select_related("author")
    requests = requests.defer("impact", "summary", "fingerprint", "moved")
    return list(find_lapses(list(requests.prefetch_related(Prefetch("reviews", reviews)))))


def _read_most_needed(projects: Collection[str]) -> dict[tuple[str, str], int]:
    """The most approvals that a request may need in each guarded environment."""
    links = ProjectEnvironment.objects.needing_requests().filter(project__in=projects)
    return {(link.project_id, link.environment_id): find_strictest(link) for link in links}


def read_drafts(caller: Caller) -> QuerySet[ChangeRequest]:
    return visible_requests(caller).filter(by(caller), state=State.DRAFT)


def scheduled_next(caller: Caller) -> QuerySet[ChangeRequest]:
    """Scheduled requests, the next one first."""
    scheduled = visible_requests(caller).filter(state=State.SCHEDULED, schedule__status=Status.PENDING)
    return scheduled.order_by("schedule__at", "schedule__id")


def suspended(caller: Caller) -> QuerySet[ChangeRequest]:
    """Requests that failed at their time: the caller's own or scheduled by them; for admins, all."""
    requests = visible_requests(caller).filter(state=State.SCHEDULED)
    requests = requests.filter(schedule__status__in=(Status.SUSPENDED, Status.FAILED))
    return requests if caller.is_admin else requests.filter(by(caller) | Q(schedule__by=caller.id))
