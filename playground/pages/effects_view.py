"""Presents the effects of a change on saved contexts."""

from collections.abc import Sequence
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import cached_property

from playground.pages.lines import Line, Who, make_sides
from playground.saved_contexts.effects import SavedChange, SavedEffects
from playground.saved_contexts.expectations import Checked
from projects.models import Project

MAX_SENTENCES = 20
MAX_BESIDE = 4


def trace_url(change: SavedChange) -> str:
    """The trace of what the flag gives now."""
    query = {"environment": change.environment, "saved": change.saved.name}
    return f"{reverse('playground-flag', args=[change.flag])}?{urlencode(query)}"


class EffectsView:
    """The effects as the template reads them: ``lines`` are saved contexts by name, with the flag.

    Beside a form they have no links, which would leave it.
    """

    def __init__(self, effects: SavedEffects, *, beside: bool = False) -> None:
        self.effects = effects
        self.changed = len(effects.who)
        changes = effects.changes[:MAX_BESIDE] if beside else effects.changes
        self.lines = [
            Line(
                Who(change.saved.name, change.flag),
                *make_sides(change.before, change.after),
                "" if beside else trace_url(change),
            )
            for change in changes
        ]
        self.named = len({change.saved.pk for change in changes})

    @property
    def broken(self) -> Sequence[Checked]:
        return self.effects.broken[:MAX_SENTENCES]

    @property
    def more_broken(self) -> int:
        return len(self.effects.broken) - len(self.broken)

    @cached_property
    def refused_by(self) -> Sequence[str]:
        """The names of projects that refuse the change because of what it breaks."""
        if not self.effects.broken:
            return ()
        projects = {check.expectation.enforced_in for check in self.effects.broken}
        refusing = Project.objects.filter(pk__in=projects, refuse_broken_expectations=True)
        return list(refusing.values_list("name", flat=True))

    @property
    def more(self) -> int:
        """Saved contexts that change and are not named."""
        return self.changed - self.named
