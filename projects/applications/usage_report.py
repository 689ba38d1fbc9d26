"""Usage reports of SDKs as plain data. Reports can be added together."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from projects.applications.impact_metrics import Samples

HOURS_KEPT = timedelta(hours=48)
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)  # earlier times in reports are invalid


class InstanceKey(NamedTuple):
    """An instance of an application in an environment, in the order of the table's key."""

    application: str
    instance_id: str
    environment: str


class FlagUse(NamedTuple):
    """The use of a flag by an application in an environment."""

    application: str
    flag: str
    environment: str


@dataclass(slots=True)
class Instance:
    """An SDK's report about itself; "" for what it does not report."""

    sdk_version: str = ""
    sdk_type: str = ""
    platform_name: str = ""
    platform_version: str = ""
    spec_version: str = ""
    engine_version: str = ""
    sdk_flavor: str = ""

    def completed_by(self, known: "Instance") -> "Instance":
        """This instance, completed with what was known before."""
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
class UsageReport:
    """A report. ``used`` has the latest time of each use, ``hours`` the counts of each use by hour (UTC).

    ``strategies`` has every application in the report with its known strategies; ``tokens`` the id of the
    token that reported each application. ``impact`` are impact metrics; ``invalid_impact`` counts the invalid
    ones by token.
    """

    instances: dict[InstanceKey, Instance] = field(default_factory=dict)
    strategies: dict[str, set[str]] = field(default_factory=dict)
    used: dict[FlagUse, datetime] = field(default_factory=dict)
    hours: dict[tuple[FlagUse, datetime], Count] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    impact: Samples = field(default_factory=dict)
    invalid_impact: Counter[int] = field(default_factory=Counter)

    def with_token(self, token: int) -> "UsageReport":
        self.tokens = dict.fromkeys(self.strategies, token)
        self.invalid_impact = Counter({token: self.invalid_impact.total()})
        return self

    def add_instance(self, key: InstanceKey, instance: Instance, strategies: Iterable[str] = ()) -> None:
        known = self.instances.get(key)
        self.instances[key] = instance.completed_by(known) if known else instance
        self.strategies.setdefault(key.application, set()).update(strategies)

    def add_count(self, use: FlagUse, at: datetime, count: Count, *, now: datetime) -> None:
        """Ignores zero counts. Limits the time to between EARLIEST and now."""
        if not count.yes and not count.no:
            return
        at = max(EARLIEST, min(at, now))
        self._note_use(use, at)
        if now - at < HOURS_KEPT:
            hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
            self.hours.setdefault((use, hour), Count()).add(count)

    def add(self, other: "UsageReport") -> None:
        for key, instance in other.instances.items():
            self.add_instance(key, instance)
        for application, names in other.strategies.items():
            self.strategies.setdefault(application, set()).update(names)
        for use, at in other.used.items():
            self._note_use(use, at)
        for hour, count in other.hours.items():
            self.hours.setdefault(hour, Count()).add(count)
        self.tokens = other.tokens | self.tokens
        for series, sample in other.impact.items():
            self.impact[series] = self.impact[series].add(sample) if series in self.impact else sample
        self.invalid_impact += other.invalid_impact

    def _note_use(self, use: FlagUse, at: datetime) -> None:
        self.strategies.setdefault(use.application, set())
        self.used[use] = max(at, self.used.get(use, at))
