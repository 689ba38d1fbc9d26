"""Models of change requests, release plans and safeguards."""

from releases.models.plans import MetricChart, Milestone, ReleasePlan, ReleaseTemplate, Safeguard
from releases.models.requests import Change, ChangeRequest, Comment, Review, Schedule
