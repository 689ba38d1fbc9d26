"""Measures the conversion of other products' files: recognizing, reading, converting, counting who changes.

    python -m tests.benchmarks.bench_convert [FLAGS]

In seconds of CPU time. Each file has 10,000 flags with two rules, a segment if the product has some, and a percentage for every tenth.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import django
import yaml

FLAGS = 10_000


def flagd(count: int) -> bytes:
    targeting = {"if": [{"in": [{"var": "country"}, ["NO", "SE"]]}, "on", {">": [{"var": "age"}, 18]}, "on"]}
    split = {"fractional": [["on", 20], ["off", 80]]}
    flags = {
        f"flag-{number}": {
            "state": "ENABLED",
            "variants": {"on": True, "off": False},
            "defaultVariant": "off",
            "targeting": targeting if number % 10 else split,
        }
        for number in range(count)
    }
    return json.dumps({"flags": flags}).encode()


def launchdarkly(count: int) -> bytes:
    rules = [
        {"clauses": [{"attribute": "country", "op": "in", "values": ["NO", "SE"]}], "variation": 0},
        {
            "clauses": [{"op": "segmentMatch", "values": [f"segment-{number}" for number in range(2)]}],
            "variation": 0,
        },
    ]
    split = {
        "rollout": {"variations": [{"variation": 0, "weight": 20_000}, {"variation": 1, "weight": 80_000}]}
    }
    items = [
        {
            "key": f"flag-{number}",
            "variations": [{"value": True}, {"value": False}],
            "environments": {
                "production": {
                    "on": True,
                    "salt": "salt",
                    "offVariation": 1,
                    "rules": rules,
                    "fallthrough": {"variation": 1} if number % 10 else split,
                }
            },
        }
        for number in range(count)
    ]
    members = [f"user-{number}" for number in range(900)]
    segments = [{"key": f"segment-{number}", "included": members} for number in range(2)]
    return json.dumps({"items": items, "segments": segments}).encode()


def growthbook(count: int) -> bytes:
    rules = [
        {"condition": {"country": {"$in": ["NO", "SE"]}}, "force": True},
        {"condition": {"age": {"$gt": 18}}, "force": True},
    ]
    split = [{"force": True, "coverage": 0.2, "hashAttribute": "id"}]
    features = {
        f"flag-{number}": {"defaultValue": False, "rules": rules if number % 10 else split}
        for number in range(count)
    }
    return json.dumps({"features": features}).encode()


def flagsmith(count: int) -> bytes:
    def state(number: int, **more: Any) -> Any:
        return {"feature": {"name": f"flag-{number}"}, "enabled": True, "feature_state_value": "a", **more}

    option = {"percentage_allocation": 20.0, "multivariate_feature_option": {"value": "b"}}
    condition = {"operator": "IN", "property_": "country", "value": "NO,SE"}
    segment = {
        "id": 1,
        "name": "nordic",
        "rules": [{"type": "ALL", "rules": [], "conditions": [condition]}],
        "feature_states": [state(number, feature_segment={"priority": 1}) for number in range(count)],
    }
    states = [
        state(number, **({} if number % 10 else {"multivariate_feature_state_values": [option]}))
        for number in range(count)
    ]
    return json.dumps({"project": {"segments": [segment]}, "feature_states": states}).encode()


def go_feature_flag(count: int) -> dict[str, Any]:
    targeting = [{"query": 'country eq "NO"', "variation": "on"}, {"query": "age gt 18", "variation": "on"}]
    return {
        f"flag-{number}": {
            "variations": {"on": True, "off": False},
            "targeting": targeting,
            "defaultRule": {"variation": "off"} if number % 10 else {"percentage": {"on": 20, "off": 80}},
        }
        for number in range(count)
    }


FILES: dict[str, Callable[[int], bytes]] = {
    "flagd": flagd,
    "LaunchDarkly": launchdarkly,
    "GrowthBook": growthbook,
    "Flagsmith": flagsmith,
    "GO Feature Flag, JSON": lambda count: json.dumps(go_feature_flag(count)).encode(),
    "GO Feature Flag, YAML": lambda count: yaml.safe_dump(
        json.loads(json.dumps(go_feature_flag(count)))
    ).encode(),
}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from importer.converting.changes import count_changes
    from importer.converting.convert import convert_file

    count = int(sys.argv[1]) if len(sys.argv) > 1 else FLAGS
    print(f"{'':24}{'MB':>8}{'convert s':>12}{'count s':>10}{'result MB':>12}{'memory MB':>12}")
    for name, make in FILES.items():
        content = make(count)
        begun = time.process_time()
        conversion = convert_file(content)
        body = conversion.dump()
        converted = time.process_time()
        count_changes(conversion)
        counted = time.process_time()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        print(
            f"{name:24}{len(content) / 1e6:8.1f}{converted - begun:12.2f}{counted - converted:10.2f}"
            f"{len(body) / 1e6:12.1f}{memory:12.0f}"
        )


if __name__ == "__main__":
    main()
