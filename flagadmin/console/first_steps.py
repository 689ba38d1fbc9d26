"""The three steps of the start page of an empty installation: connect an application, create a flag, roll it out."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from groups.access import Caller
from projects.applications.details import find_readable_applications
from projects.applications.sdk_versions import format_sdk
from projects.models import ApplicationInstance, Environment, Flag, FlagEnvironment

FEW_FLAGS = 5  # with more of them, nobody needs to be told how to begin


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """``instance``: the SDK that was seen last, with its application."""

    instance: ApplicationInstance | None
    flag: Flag | None
    is_rolled_out: bool

    @property
    def done(self) -> Sequence[bool]:
        return (self.instance is not None, self.flag is not None, self.is_rolled_out)

    @property
    def current(self) -> int:
        """The number of the first that is not done, 4 if all are."""
        return next((number for number, is_done in enumerate(self.done, start=1) if not is_done), 4)

    @property
    def number_done(self) -> int:
        return sum(self.done)

    @property
    def sdk(self) -> str:
        return format_sdk(self.instance.sdk_version) if self.instance else ""


def find_first_steps(caller: Caller, flags: QuerySet[Flag]) -> FirstSteps | None:
    """Finds which first steps are done with these flags, None if there is nothing left to say. At most four queries."""
    if len(listed := list(flags.order_by("created_at")[:FEW_FLAGS])) == FEW_FLAGS:
        return None
    applications = find_readable_applications(caller).values("pk")
    instances = ApplicationInstance.objects.filter(application_id__in=applications)
    production = Environment.objects.filter(type=Environment.PRODUCTION).values("name")
    in_production = FlagEnvironment.objects.filter(flag__in=listed, environment__in=production, enabled=True)
    steps = FirstSteps(
        instances.select_related("application").order_by("-seen_at").first(),
        listed[0] if listed else None,
        in_production.exists(),
    )
    return steps if steps.current <= 3 else None
