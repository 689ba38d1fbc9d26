"""Plain flags and contexts, each with a few odd values, from a seed: the same in every run."""

from collections.abc import Sequence
from random import Random
from typing import Any

from tests.support import generators as odd

ODDS = 0.06  # of a value being odd
FIELDS = {
    "userId": ("u1", "u2", "user-7", "42"),
    "sessionId": ("s-1", "s-2"),
    "remoteAddress": ("10.0.0.1", "192.168.1.77"),
    "country": ("NO", "SE"),
    "age": ("5", "41", "41.5"),
    "appVersion": ("1.2.3", "2.0.0-rc.1"),
    "currentTime": ("2022-01-29T13:00:00.000Z", "2024-02-29T23:59:59Z"),
}
ODD_PATTERNS = (*odd.PATTERNS, r"^\w+$", r"\d")
ODD_TEXTS = ("", " ", " NO ", "é用户", "İ")
ODD_VALUES: dict[str, Sequence[str]] = {
    "remoteAddress": odd.ADDRESSES,
    "age": odd.NUMBERS,
    "appVersion": odd.VERSIONS,
    "currentTime": odd.TIMES,
}
STRATEGIES = ("flexibleRollout", "flexibleRollout", "userWithId", "remoteAddress", "gradualRolloutUserId")
COMPARED = {"age": "NUM", "appVersion": "SEMVER"}


class OddFlags:
    """A source of states and contexts."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def pick(self, plain: Sequence[Any], odd: Sequence[Any] = ()) -> Any:
        return self._random.choice(odd if odd and self._random.random() < ODDS else plain)

    def happens(self, odds: float = ODDS) -> bool:
        return self._random.random() < odds

    def text(self, field: str) -> str:
        return self.pick(FIELDS[field], ODD_VALUES.get(field, ODD_TEXTS))

    def context(self) -> dict[str, Any]:
        values = {field: self.text(field) for field in FIELDS if self.happens(0.7)}
        own = ("userId", "sessionId", "remoteAddress", "currentTime")
        top = {field: text for field, text in values.items() if field in own and not self.happens()}
        properties = {
            field: text for field, text in values.items() if field not in top and field != "currentTime"
        }
        return {"appName": "app", "environment": "default", "properties": properties, **top}

    def constraint(self) -> dict[str, Any]:
        field = self.pick(tuple(FIELDS))
        drawn: dict[str, Any] = {"contextName": field, "inverted": self.happens(0.3)}
        if field in COMPARED:
            relation = self.pick(("EQ", "GT", "LT", "GTE", "LTE"))
            return drawn | {"operator": f"{COMPARED[field]}_{relation}", "value": self.text(field)}
        if field == "currentTime":
            drawn["contextName"] = self.pick((field,), ("appVersion", "country"))
            return drawn | {"operator": self.pick(("DATE_AFTER", "DATE_BEFORE")), "value": self.text(field)}
        if field == "country" and self.happens(0.3):
            return drawn | {
                "operator": "REGEX",
                "value": self.pick(("^N", "E$"), ODD_PATTERNS),
                "inverted": False,
            }
        if field == "remoteAddress":
            networks = [self.pick(("10.0.0.0/8", "192.168.1.77"), odd.NETWORKS)]
            return drawn | {"operator": "IN_CIDR", "values": networks}
        operator = self.pick(("IN", "NOT_IN", "STR_STARTS_WITH", "STR_ENDS_WITH", "STR_CONTAINS"))
        values = [self.text(field) for _ in range(self.pick((1, 2), (0,)))]
        return drawn | {"operator": operator, "values": values, "caseInsensitive": self.happens(0.3)}

    def variants(self, stickiness: str) -> list[dict[str, Any]]:
        return [
            {"name": f"v{n}", "weight": self.pick((500, 250, 1)), "stickiness": stickiness}
            for n in range(self.pick((2, 3)))
        ]

    def strategy(self, segments: Sequence[int]) -> dict[str, Any]:
        stickiness = self.pick(("default", "userId", "country"))
        name = self.pick(STRATEGIES, odd.STRATEGY_NAMES)
        parameters = {
            "rollout": self.pick(("50", "100", "7"), odd.PERCENTAGES),
            "percentage": self.pick(("50", "100"), odd.PERCENTAGES),
            "stickiness": stickiness,
            "userIds": self.pick(("u1,u2", "42"), ("u1 , u2", " u1", "é用户,42")),
            "IPs": self.pick(("10.0.0.0/8", "10.0.0.1, 192.168.1.77"), odd.NETWORKS),
            "groupId": self.pick(("g", "shared"), odd.GROUPS),
        }
        if self.happens():
            del parameters[self.pick(tuple(parameters))]
        strategy = {"name": name, "parameters": parameters, "constraints": []}
        if self.happens(0.4):
            strategy["constraints"] = [self.constraint()]
        if self.happens(0.2):
            strategy["segments"] = [self.pick(segments, (404,))]
        if self.happens(0.3):
            strategy["variants"] = self.variants(self.pick((stickiness,), odd.STICKINESS))
        return strategy

    def state(self) -> dict[str, Any]:
        segments = [{"id": n, "name": f"s{n}", "constraints": [self.constraint()]} for n in (1, 2)]
        flags: list[dict[str, Any]] = []
        for n in range(3):
            flag = {
                "name": self.pick(("f", "flag"), ("é用户 ",)) + str(n),
                "type": "release",
                "enabled": not self.happens(0.2),
                "strategies": [self.strategy((1, 2)) for _ in range(self.pick((1, 2, 0)))],
            }
            if self.happens(0.3):
                flag["variants"] = self.variants(self.pick(("default", "country"), odd.STICKINESS))
            parents = [other["name"] for other in flags]
            if parents and self.happens(0.3):
                flag["dependencies"] = [self.dependency(self.pick(parents))]
            flags.append(flag)
        return {"version": 2, "features": flags, "segments": segments}

    def dependency(self, parent: str) -> dict[str, Any]:
        if self.happens(0.3):
            return {"feature": parent, "enabled": False}
        if self.happens(0.3):
            return {"feature": parent, "variants": [self.pick(("v0", "v1"), ("disabled",))]}
        return {"feature": self.pick((parent,), ("nowhere",))}
