"""Models of change requests and release plans."""

from releases.models.plans import Milestone, ReleasePlan, ReleaseTemplate, Safeguard
from releases.models.requests import Change, ChangeRequest, Comment, Review, Schedule

__all__ = [
    "Change",
    "ChangeRequest",
    "Comment",
    "Milestone",
    "ReleasePlan",
    "ReleaseTemplate",
    "Review",
    "Safeguard",
    "Schedule",
]
