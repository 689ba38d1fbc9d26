"""The built-in strategy types: the meaning of their parameters, and their names in sentences and forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from playground.engine.literals import trim
from playground.engine.sentences import shorten_value

_WHOLE_NUMBER = re.compile(r"\+?[0-9]{1,18}", re.ASCII)
FLEXIBLE_ROLLOUT = "flexibleRollout"


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """A parameter of strategies. `type`, `description` and `required` are the API's.

    Forms show `label` and `hint`. `input` is their kind of input (percentage, stickiness, list), also for a custom
    type with such a parameter; if empty, the parameter's type decides.
    """

    name: str
    label: str
    type: str = "string"
    description: str = ""
    required: bool = True
    input: str = ""
    hint: str = ""

    @property
    def definition(self) -> dict[str, Any]:
        """The parameter in the API's form."""
        return {
            "name": self.name,
            "type": self.type,
            "description": self.description,
            "required": self.required,
        }


ROLLOUT = Parameter(
    "rollout",
    "Rollout percentage",
    type="percentage",
    required=False,
    input="percentage",
)
PERCENTAGE = Parameter("percentage", "Rollout percentage", input="percentage")
STICKINESS = Parameter(
    "stickiness",
    "Stickiness",
    description="Which field keeps a result.",
    input="stickiness",
    hint="Requests with the same value get the same result. Default: userId, or sessionId, or random.",
)
GROUP_ID = Parameter(
    "groupId",
    "Group",
    description="Flags of one group share buckets.",
    hint="Flags in the same group share buckets. Default: the flag's name.",
)
USER_IDS = Parameter("userIds", "User IDs", input="list")
IPS = Parameter("IPs", "Addresses and networks", type="list", description="Addresses and networks (CIDR).")
HOST_NAMES = Parameter("hostNames", "Host names", type="list", description="Host names.", required=False)

PERCENTAGES = (ROLLOUT.name, PERCENTAGE.name)
"""The parameter's names in different types."""
_USE = "use a whole number from 0 to 100"


def read_percentage(text: str) -> int | None:
    """A stored percentage as SDKs read it: a whole number, possibly above 100. None if they read it as 0."""
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else None


@dataclass(frozen=True, kw_only=True)
class StrategyType:
    """A built-in type. Every installation has those with a `title`; others come with imports from older servers.

    A rollout has a `percentage`, the name of that parameter, and its `stickiness`, empty if a parameter sets it.
    Other types with a parameter list values there, which `operator` compares with the context's `field`. Without an
    operator, only an SDK can evaluate the type. `whom` is the sentence, with `{}` for the values.
    """

    name: str
    title: str = ""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    percentage: str = ""
    stickiness: str = ""
    field: str = ""
    operator: str = ""
    whom: str = "On for everyone"

    @cached_property
    def is_evaluated(self) -> bool:
        """Whether a server can evaluate it."""
        return bool(self.operator) or not self.lists

    @cached_property
    def lists(self) -> str:
        """The parameter that lists values; empty if none does."""
        return self.parameters[0].name if self.parameters and not self.percentage else ""

    def values(self, parameters: Mapping[str, str]) -> list[str] | None:
        """The values of a type with an operator; None if the strategy lacks the parameter."""
        text = parameters.get(self.lists) if self.operator else None
        return None if text is None else [trim(part) for part in text.split(",")]

    def threshold(self, parameters: Mapping[str, str]) -> int:
        """The percentage of a rollout, possibly above 100."""
        return read_percentage(parameters.get(self.percentage, "")) or 0

    def share(self, parameters: Mapping[str, str]) -> int:
        """The percentage of requests for which a rollout is on. A type with a group is off above 100."""
        threshold = self.threshold(parameters)
        return threshold if threshold <= 100 else 0 if GROUP_ID in self.parameters else 100

    def explain_percentage(self, parameters: Mapping[str, str]) -> str:
        """The effect on users if the percentage is not a whole number from 0 to 100; empty if it is one."""
        if not self.percentage:
            return ""
        text = parameters.get(self.percentage, "")
        read, shown = read_percentage(text), shorten_value(text)
        if read is None:
            return f"SDKs read the percentage {shown} as 0, so the strategy is on for nobody; {_USE}"
        if read <= 100:
            return ""
        if GROUP_ID in self.parameters:
            return f"SDKs cannot read the percentage {shown}, so the flag is off for everyone; {_USE}"
        return f"SDKs read the percentage {shown} as 100; {_USE}"


STRATEGY_TYPES = {
    kind.name: kind
    for kind in (
        StrategyType(
            name=FLEXIBLE_ROLLOUT,
            title="Gradual rollout",
            description="On for a percentage of users, sessions or calls, always the same ones.",
            parameters=(ROLLOUT, STICKINESS, GROUP_ID),
            percentage="rollout",
        ),
        StrategyType(name="default", title="Standard", description="On for everyone."),
        StrategyType(
            name="remoteAddress",
            title="IPs",
            description="On for the addresses and networks listed.",
            parameters=(IPS,),
            field="remoteAddress",
            operator="IN_CIDR",
            whom="On for the addresses {}",
        ),
        StrategyType(
            name="applicationHostname",
            title="Hosts",
            description="On for the hosts listed; the SDK compares the name of its own host.",
            parameters=(HOST_NAMES,),
            whom="On for applications on {}",
        ),
        StrategyType(
            name="userWithId",
            parameters=(USER_IDS,),
            field="userId",
            operator="IN",
            whom="On for userId {}",
        ),
        StrategyType(
            name="gradualRolloutUserId",
            parameters=(PERCENTAGE, GROUP_ID),
            percentage="percentage",
            stickiness="userId",
        ),
        StrategyType(
            name="gradualRolloutSessionId",
            parameters=(PERCENTAGE, GROUP_ID),
            percentage="percentage",
            stickiness="sessionId",
        ),
        StrategyType(
            name="gradualRolloutRandom",
            parameters=(PERCENTAGE,),
            percentage="percentage",
            stickiness="random",
        ),
    )
}


def find_parameters() -> dict[str, Parameter]:
    """The parameters of all types, by name."""
    return {parameter.name: parameter for kind in STRATEGY_TYPES.values() for parameter in kind.parameters}
