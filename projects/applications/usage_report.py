"""What SDKs report, as plain data that adds up: one post or several together."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from projects.applications.impact_metrics import Samples

HOURS_KEPT = timedelta(hours=48)
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)  # what SDKs send before is no time at all


class Place(NamedTuple):
    """Where an instance runs. The order is that of the table's key."""

    application: str
    instance_id: str
    environment: str


class Use(NamedTuple):
    """An application asking for a flag in an environment."""

    application: str
    flag: str
    environment: str


@dataclass(slots=True)
class Instance:
    """What an SDK says of itself. Empty text: it did not say."""

    sdk_version: str = ""
    sdk_type: str = ""
    platform_name: str = ""
    platform_version: str = ""
    spec_version: str = ""
    engine_version: str = ""
    sdk_flavor: str = ""

    def over(self, known: "Instance") -> "Instance":
        """This on top of what was known: nothing known is replaced by nothing."""
        return Instance(*(getattr(self, f.name) or getattr(known, f.name) for f in fields(self)))


@dataclass(slots=True)
class Count:
    yes: int = 0
    no: int = 0
    variants: dict[str, int] = field(default_factory=dict)

    def add(self, other: "Count") -> None:
        self.yes += other.yes
        self.no += other.no
        for name, number in other.variants.items():
            self.variants[name] = self.variants.get(name, 0) + number


@dataclass(slots=True)
class Report:
    """``used`` has the latest time of each use, ``hours`` its counts by the hour's beginning (UTC).

    ``strategies`` names every application of the report, with the strategies it said it knows; ``tokens`` has the id
    of the token that told of an application. ``impact`` are impact metrics; ``invalid_impact`` how many were not
    valid, by token.
    """

    instances: dict[Place, Instance] = field(default_factory=dict)
    strategies: dict[str, set[str]] = field(default_factory=dict)
    used: dict[Use, datetime] = field(default_factory=dict)
    hours: dict[tuple[Use, datetime], Count] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    impact: Samples = field(default_factory=dict)
    invalid_impact: Counter[int] = field(default_factory=Counter)

    def told_by(self, token: int) -> "Report":
        self.tokens = dict.fromkeys(self.strategies, token)
        self.invalid_impact = Counter({token: self.invalid_impact.total()})
        return self

    def saw(self, place: Place, instance: Instance, strategies: Iterable[str] = ()) -> None:
        known = self.instances.get(place)
        self.instances[place] = instance.over(known) if known else instance
        self.strategies.setdefault(place.application, set()).update(strategies)

    def counted(self, use: Use, at: datetime, count: Count, *, now: datetime) -> None:
        """A count of zero is no use. A time that is yet to come counts as now, one of long ago as EARLIEST."""
        if not count.yes and not count.no:
            return
        at = max(EARLIEST, min(at, now))
        self._used(use, at)
        if now - at < HOURS_KEPT:
            hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
            self.hours.setdefault((use, hour), Count()).add(count)

    def add(self, other: "Report") -> None:
        for place, instance in other.instances.items():
            self.saw(place, instance)
        for application, names in other.strategies.items():
            self.strategies.setdefault(application, set()).update(names)
        for use, at in other.used.items():
            self._used(use, at)
        for hour, count in other.hours.items():
            self.hours.setdefault(hour, Count()).add(count)
        self.tokens = other.tokens | self.tokens
        for series, sample in other.impact.items():
            self.impact[series] = self.impact[series].then(sample) if series in self.impact else sample
        self.invalid_impact += other.invalid_impact

    def _used(self, use: Use, at: datetime) -> None:
        self.strategies.setdefault(use.application, set())
        self.used[use] = max(at, self.used.get(use, at))
