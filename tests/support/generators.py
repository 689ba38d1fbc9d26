"""Hypothesis generators for flags and contexts that the SDKs' engine (Yggdrasil) can load."""

from typing import Any

from hypothesis import strategies as st

FIELDS = (
    "userId",
    "sessionId",
    "remoteAddress",
    "environment",
    "appName",
    "country",
    "plan",
    "é用户",
    "a b",
    "x.y",
)
WORDS = (
    "", " ", "a", "A", "ab", "abc", "NO", "no", "se", " no ", "é用户", "ΑΣ", "ας", "İ", "i̇", "ß", "😀", "a,b", "x\"y", "a\\b",
    "1", "true", "null", "a'b", "tab\there", "line\nbreak", "u1", "u2", "user-7",
)  # fmt: skip
NUMBERS = (
    "0", "-0", "5", "5.0", " 5 ", "05", "+5", "-5", "5.", ".5", "1e3", "1E-3", "0.1", "0.30000000000000004", "0.3", "1e400",
    "9007199254740993", "9007199254740992", "Infinity", "inf", "-inf", "NaN", "0x10", "1_000", "1,000", "٥", "abc", "", "1.e2",
    "--5", "5 ", "4.999999999999999999", "-1e-400",
)  # fmt: skip
VERSIONS = (
    "1.2.3", "1.2.4", "1.10.0", "2.0.0", "1.2.3-alpha", "1.2.3-alpha.1", "1.2.3-alpha.beta", "1.2.3-beta.2", "1.2.3-beta.11",
    "1.2.3-rc.1", "1.2.3+build", "1.2.3-0", "1.2.3-ALPHA", "v1.2.3", " 1.2.3", "1.2", "1", "1.2.3.4", "01.2.3", "1.2.3-01",
    "18446744073709551615.0.0", "18446744073709551616.0.0", "abc", "", "1.2.3-99999999999999999999", "1.2.3--",
)  # fmt: skip
TIMES = (
    "2022-01-29T13:00:00.000Z", "2022-01-29T13:00:00Z", "2022-01-29T14:00:00+01:00", "2022-01-29T12:59:59.999Z",
    "2022-01-29T13:00:00.001Z", "2024-02-29T23:59:59Z", "2023-02-29T00:00:00Z", "2022-01-29", "2022-01-29T13:00:00",
    "2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z",
    "junk", "", "1643461200000", "2022-01-29 13:00:00Z", "2022-01-29T13:00:00.5Z", "2022-01-29T13:00:00-23:59",
    "2022-01-29T13:00:00.0009Z", "2022-13-01T00:00:00Z",
)  # fmt: skip
ADDRESSES = (
    "10.0.0.1", "10.1.2.3", "192.168.1.77", "127.0.0.1", "010.0.0.1", "10.0.0.1/32", " 10.0.0.1", "::1", "2001:db8::1",
    "2001:0DB8:0::1", "::ffff:10.0.0.1", "fe80::1%eth0", "256.1.1.1", "1.2.3", "junk", "",
)  # fmt: skip
NETWORKS = (
    "10.0.0.0/8", "10.1.2.3/24", "192.168.1.0/255.255.255.0", "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/33", "0.0.0.0/0",
    "2001:db8::/32", "::/0", "::1", "junk", "", "10.0.0.0/0.255.255.255", *ADDRESSES,
)  # fmt: skip
PATTERNS = (
    "^a", "b$", "^$", "", "[", "(?=a)a", "a{2,3}", "A", "(?i)no", "[a-c]+", "^.$", "x\"y", "a|no", "\\.", "(a)\\1", "^u[0-9]+$",
    "é", "用户", "\\\\b",
)  # fmt: skip
PERCENTAGES = (
    *(str(number) for number in range(0, 101, 7)),
    "1",
    "99",
    "100",
    "0",
    "99.5",
    "101",
    "abc",
    "",
    " 50 ",
    "+50",
)
STICKINESS = (
    "default",
    "userId",
    "sessionId",
    "random",
    "country",
    "plan",
    "remoteAddress",
    "appName",
    "",
    "é用户",
)
GROUPS = ("g", "shared group", "", "é用户", "a:b", "a'b", "a\\b")

ORDERINGS = (
    *((f"NUM_{relation}", NUMBERS) for relation in ("EQ", "GT", "GTE", "LT", "LTE")),
    *((f"SEMVER_{relation}", VERSIONS) for relation in ("EQ", "GT", "GTE", "LT", "LTE")),
    ("DATE_AFTER", TIMES),
    ("DATE_BEFORE", TIMES),
)

words = st.sampled_from(WORDS) | st.text(
    alphabet=st.characters(codec="utf-8", exclude_characters='"\\\x00'), max_size=6
)
mixed = st.sampled_from((*WORDS, *NUMBERS, *VERSIONS, *TIMES, *ADDRESSES))
flags = st.booleans()


@st.composite
def constraints(draw: st.DrawFn) -> dict[str, Any]:
    constraint: dict[str, Any] = {"contextName": draw(st.sampled_from(FIELDS))}
    kind = draw(
        st.sampled_from(("set", "set", "text", "ordering", "ordering", "ordering", "regex", "network"))
    )
    if kind == "ordering":
        operator, values = draw(st.sampled_from(ORDERINGS))
        constraint |= {"operator": operator, "value": draw(st.sampled_from(values))}
        if operator.startswith("DATE") and draw(flags):
            constraint["contextName"] = "currentTime"
    elif kind == "regex":
        constraint |= {"operator": "REGEX", "value": draw(st.sampled_from(PATTERNS))}
    else:
        operators = {
            "set": ("IN", "NOT_IN"),
            "text": ("STR_CONTAINS", "STR_STARTS_WITH", "STR_ENDS_WITH"),
            "network": ("IN_CIDR",),
        }[kind]
        members = st.sampled_from(NETWORKS) if kind == "network" else words
        constraint |= {
            "operator": draw(st.sampled_from(operators)),
            "values": draw(st.lists(members, min_size=draw(st.sampled_from((1, 1, 1, 0))), max_size=4)),
        }
        if kind == "network":
            constraint["contextName"] = draw(st.sampled_from(("remoteAddress", "country")))
    if draw(flags):
        constraint["inverted"] = draw(flags)
    if draw(flags):
        constraint["caseInsensitive"] = draw(flags)
    return constraint


@st.composite
def variants(draw: st.DrawFn, *, of_flag: bool) -> list[dict[str, Any]]:
    drawn = []
    for index in range(draw(st.integers(1, 4))):
        variant: dict[str, Any] = {
            "name": f"v{index}",
            "weight": draw(st.sampled_from((0, 1, 100, 333, 1000))),
        }
        if draw(flags):
            variant["stickiness"] = draw(st.sampled_from(STICKINESS))
        if draw(flags):
            variant["payload"] = {"type": "string", "value": draw(words)}
        if of_flag and draw(flags):
            variant["overrides"] = [
                {"contextName": draw(st.sampled_from(FIELDS)), "values": draw(st.lists(words, max_size=3))}
            ]
        drawn.append(variant)
    if not any(variant["weight"] for variant in drawn):
        drawn[-1]["weight"] = 1
    return drawn


@st.composite
def parameters(draw: st.DrawFn, name: str) -> dict[str, str]:
    drawn = {}
    if name == "flexibleRollout":
        drawn = {
            "rollout": draw(st.sampled_from(PERCENTAGES)),
            "stickiness": draw(st.sampled_from(STICKINESS)),
        }
    elif name.startswith("gradualRollout"):
        drawn = {"percentage": draw(st.sampled_from(PERCENTAGES))}
    elif name == "userWithId":
        drawn = {"userIds": draw(st.sampled_from((",", ", ", " ,"))).join(draw(st.lists(words, max_size=4)))}
    elif name == "remoteAddress":
        drawn = {
            "IPs": draw(st.sampled_from((",", ", ", " , "))).join(
                draw(st.lists(st.sampled_from(NETWORKS), max_size=4))
            )
        }
    if draw(st.sampled_from((True, True, True, False))):
        drawn["groupId"] = draw(st.sampled_from(GROUPS))
    if drawn and draw(st.integers(0, 15)) == 0:
        drawn.pop(draw(st.sampled_from(sorted(drawn))))
    return drawn


STRATEGY_NAMES = (
    "default", "default", "default", "flexibleRollout", "flexibleRollout", "flexibleRollout", "gradualRolloutUserId",
    "gradualRolloutSessionId", "gradualRolloutRandom", "userWithId", "remoteAddress", "applicationHostname", "myCustom",
)  # fmt: skip


@st.composite
def strategies(draw: st.DrawFn, segments: list[int]) -> dict[str, Any]:
    name = draw(st.sampled_from(STRATEGY_NAMES))
    strategy: dict[str, Any] = {"name": name, "parameters": draw(parameters(name))}
    if draw(flags):
        strategy["constraints"] = draw(st.lists(constraints(), max_size=2))
    if draw(st.integers(0, 3)) == 0:
        strategy["segments"] = draw(st.lists(st.sampled_from([*segments, 404]), max_size=2, unique=True))
    if draw(st.integers(0, 2)) == 0:
        strategy["variants"] = draw(variants(of_flag=False))
    return strategy


@st.composite
def states(draw: st.DrawFn) -> dict[str, Any]:
    """Segments and flags, where later flags may depend on earlier ones."""
    segments: list[dict[str, Any]] = [
        {"id": number, "name": f"s{number}", "constraints": draw(st.lists(constraints(), max_size=2))}
        for number in range(1, draw(st.integers(0, 2)) + 1)
    ]
    features: list[dict[str, Any]] = []
    for index in range(draw(st.integers(1, 4))):
        feature: dict[str, Any] = {
            "name": draw(st.sampled_from(("f", "flag é用户 ", "Z.flag-"))) + str(index),
            "type": "release",
            "enabled": draw(st.sampled_from((True, True, True, False))),
            "strategies": draw(st.lists(strategies([segment["id"] for segment in segments]), max_size=3)),
        }
        if draw(flags):
            feature["variants"] = draw(variants(of_flag=True))
        parents = [feature["name"] for feature in features if has_groups(feature)]
        if parents and draw(flags):
            feature["dependencies"] = draw(dependencies(parents))
        features.append(feature)
    return {"version": 2, "features": features, "segments": segments}


def has_groups(feature: dict[str, Any]) -> bool:
    """Whether all strategies have a groupId. Without one, Yggdrasil hashes a parent with its child's name."""
    return all("groupId" in strategy["parameters"] for strategy in feature["strategies"])


@st.composite
def dependencies(draw: st.DrawFn, names: list[str]) -> list[dict[str, Any]]:
    drawn = []
    for name in draw(st.lists(st.sampled_from([*names, "nowhere"]), max_size=2, unique=True)):
        dependency: dict[str, Any] = {"feature": name}
        if draw(flags):
            dependency["enabled"] = draw(flags)
        if dependency.get("enabled", True) and draw(flags):
            dependency["variants"] = draw(st.lists(st.sampled_from(("v0", "v1", "disabled")), max_size=2))
        drawn.append(dependency)
    return drawn


@st.composite
def contexts(draw: st.DrawFn) -> dict[str, Any]:
    """A context as an SDK sends it, always with appName and environment."""
    context: dict[str, Any] = {"appName": "app", "environment": draw(st.sampled_from(("default", "a", "")))}
    properties = {}
    for field in ("userId", "sessionId"):
        if draw(flags):
            context[field] = draw(words | st.integers(0, 999).map(str))
    if draw(flags):
        context["remoteAddress"] = draw(st.sampled_from(ADDRESSES))
    if draw(flags):
        context["currentTime"] = draw(st.sampled_from(TIMES))
    for field in ("country", "plan", "é用户", "a b", "x.y", "userId"):
        if draw(flags):
            properties[field] = draw(mixed)
    return context | {"properties": properties}
