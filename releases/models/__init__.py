"""Models of change requests, release plans and safeguards."""

from releases.models.plans import Milestone, ReleasePlan, ReleaseTemplate
from releases.models.requests import Change, ChangeRequest, Comment, Review, Schedule
from releases.models.safeguards import MetricChart, Safeguard

__all__ = [
    "Change",
    "ChangeRequest",
    "Comment",
    "MetricChart",
    "Milestone",
    "ReleasePlan",
    "ReleaseTemplate",
    "Review",
    "Safeguard",
    "Schedule",
]
