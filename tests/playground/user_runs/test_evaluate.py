"""Results of files of users are those of the playground, user by user."""

import csv
import zlib
from io import BytesIO, StringIO
from typing import Any

import pytest

from playground.engine.compilation import compile_snapshot
from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.reasons import Reasons
from playground.engine.snapshot import Snapshot
from playground.pages.tables import WORDS, list_rows
from playground.user_runs import evaluate as module
from playground.user_runs.evaluate import GZIP, UserEvaluation
from playground.user_runs.file import UserFile
from tests.benchmarks.bench_engine import make_flag

NOW = "2026-11-21T09:00:00.000Z"


def rollout(percent: int, stickiness: str = "default", **more: Any) -> dict[str, Any]:
    parameters = {"rollout": str(percent), "stickiness": stickiness, "groupId": "g"}
    return {"id": "1", "name": "flexibleRollout", "parameters": parameters, "constraints": [], **more}


def flag(name: str, *strategies: dict[str, Any], **more: Any) -> dict[str, Any]:
    variants = {"variants": [], "dependencies": [], "impression_data": False}
    return {
        "name": name,
        "project": "shop",
        "enabled": True,
        "strategies": list(strategies),
        **variants,
        **more,
    }


def compiled(*flags: dict[str, Any]) -> Snapshot:
    return compile_snapshot(list(flags), {}, environment="production")


def run(snapshot: Snapshot, text: str, names: list[str] | None = None) -> tuple[list[dict[str, str]], Any]:
    evaluation = UserEvaluation(snapshot, names or snapshot.names, now=NOW)
    chunks = list(evaluation.chunks(UserFile(BytesIO(text.encode()))))
    plain = zlib.decompress(b"".join(chunk.data for chunk in chunks), GZIP)
    assert sum(chunk.size for chunk in chunks) == len(plain)
    return list(csv.DictReader(StringIO(plain.decode(), newline=""))), evaluation.counts()


@pytest.mark.parametrize("chunk", [1, 7, 1_000])
def test_as_in_the_playground(chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_ROWS", chunk)
    snapshot = compiled(*(make_flag(index) for index in range(6)))
    users = [
        {"userId": f"u{n}", "country": "NO" if n % 3 else 'U"S', "appVersion": f"1.{n}.0", "age": str(n)}
        for n in range(20)
    ]
    text = "userId,country,appVersion,age\n" + "".join(
        ",".join(f'"{value.replace(chr(34), chr(34) * 2)}"' for value in user.values()) + "\n"
        for user in users
    )
    expected = []
    counts: dict[tuple[str, Any, str | None], int] = {}
    for number, user in enumerate(users, 2):
        evaluation = evaluate(
            snapshot, Context({"properties": user}), now=1_763_715_600_000, random=lambda: 0.0
        )
        for row, reason in zip(list_rows(evaluation), Reasons(evaluation).all(), strict=True):
            cells = (str(number), user["userId"], row.name, WORDS[row.result], row.variant or "", reason)
            expected.append(
                dict(zip(("row", "userId", "flag", "result", "variant", "reason"), cells, strict=True))
            )
            key = row.name, row.result == "on", row.variant
            counts[key] = counts.get(key, 0) + 1
    lines, found = run(snapshot, text)
    assert lines == expected
    assert {
        (each["name"], result["isEnabled"], result["variant"]): result["contexts"]
        for each in found
        for result in each["results"]
    } == counts


def test_random_results_count_with_their_share():
    half = [{"name": name, "weight": 500, "weightType": "variable", "stickiness": "default"} for name in "ab"]
    snapshot = compiled(flag("dark", rollout(30)), flag("split", rollout(100), variants=half))
    lines, counts = run(snapshot, "country\nNO\nSE\n")
    assert [(line["flag"], line["result"], line["variant"]) for line in lines[:2]] == [
        ("dark", "On for 30 % of calls", ""),
        ("split", "On", "a 50 %; b 50 %"),
    ]
    assert counts[0]["results"] == [
        {"isEnabled": False, "variant": None, "contexts": 1.4},
        {"isEnabled": True, "variant": None, "contexts": 0.6},
    ]
    assert [result["contexts"] for result in counts[1]["results"]] == [1.0, 1.0]


def test_what_only_an_sdk_can_tell():
    snapshot = compiled(flag("own", {"id": "1", "name": "hostGroup", "parameters": {}, "constraints": []}))
    lines, counts = run(snapshot, "userId\n1\n")
    assert lines[0]["result"] == "Can't tell"
    assert counts[0]["results"][0]["isEnabled"] == "unknown"


def test_one_flag_with_its_parent():
    child = flag("child", rollout(100), dependencies=[{"feature": "parent", "enabled": True}])
    snapshot = compiled(child, flag("parent", rollout(0)), flag("zero")).only("child")
    lines, counts = run(snapshot, "sessionId\ns1\n", ["child"])
    assert [(line["sessionId"], line["flag"], line["result"]) for line in lines] == [("s1", "child", "Off")]
    assert "parent" in lines[0]["reason"]
    assert len(counts) == 1


@pytest.mark.parametrize("user", ["=1+1", "+4712345678", "-1", "@ada", "'quoted"])
def test_ids_come_back_as_they_were_sent(user):
    lines, _ = run(compiled(flag("dark")), f"userId\n{user}\n")
    assert lines[0]["userId"] == user
