"""Tools that evaluate: reasons for a result, effects of a change, expectations of saved contexts, removable flags."""

import csv
from collections.abc import Mapping, Sequence
from datetime import datetime
from io import StringIO
from typing import Any

import orjson
from django.utils import timezone
from pydantic import Field

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.fields import validate_body
from groups.access import Caller
from integrations.mcp.tool import FEW, Answer, Arguments, Call, ListArguments, Tool, find_flag
from playground.comparison.compare import FlagReasons
from playground.comparison.past import compile_flag_then
from playground.comparison.request import CompareBody, compare_states, explain_nobody
from playground.comparison.results import StateResults
from playground.comparison.table import ContextTable
from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.explanation import ConstraintExplanation, StrategyExplanation, explain
from playground.engine.snapshot import Snapshot
from playground.outcomes import incident
from playground.outcomes.answer import DEFAULT_LAG, SmallAnswer
from playground.outcomes.history import Sight, read_now
from playground.outcomes.runs import CHANGES_AT_ONCE, create_assignments
from playground.request import PlaygroundRequest, read_request
from playground.saved_contexts.checks import check_request, summarize
from playground.saved_contexts.expectations import (
    Checked,
    compile_flags,
    describe_shares,
    read_stored_flags,
)
from playground.user_runs.runs import access_run
from playground.user_runs.serializers import make_result_document
from projects.access import check_environment, check_project
from projects.models import Flag

USERS = 1_000
EXAMPLES = 3
CONTEXT = 'Fields of the user: {"userId": "42", "country": "NO"}. Also sessionId, remoteAddress, appName, currentTime.'


class ExplainFlag(Arguments):
    flag: str = Field(description="Its name.")
    environment: str
    context: dict[str, Any] = Field(default_factory=dict, description=CONTEXT)
    at: str | None = Field(
        None,
        description="A moment, such as 2026-11-20T12:00:00Z, also ahead, with what is scheduled; now without it.",
    )


def explain_flag(call: Call, arguments: ExplainFlag) -> Answer:
    fields = {key: value for key, value in arguments.context.items() if key != "properties"}
    properties = arguments.context.get("properties") or {}
    body = {
        "environment": arguments.environment,
        "context": fields | {"properties": properties},
        "at": arguments.at,
    }
    query = read_request(body)
    snapshot = _read_flag(call.caller, arguments.flag, query)
    now = query.at or timezone.now()
    context = Context(query.context).at(now)
    [shares] = StateResults(snapshot, ContextTable([context])).results(arguments.flag)
    explained = explain(evaluate(snapshot, context, now=now, random=lambda: 0.0), arguments.flag)
    return {
        "flag": arguments.flag,
        "environment": arguments.environment,
        **({"at": arguments.at} if query.at else {}),
        "result": describe_shares(shares),
        "reason": FlagReasons(snapshot, arguments.flag).of(context),
        "enabled": explained.enabled,
        "strategies": [_make_strategy(strategy) for strategy in explained.strategies],
        **({"parents": [parent.sentence for parent in explained.parents]} if explained.parents else {}),
    }


def _read_flag(caller: Caller, name: str, query: PlaygroundRequest) -> Snapshot:
    """The flag with its parents, now or at an earlier time. Raises ValidationError."""
    [environment] = query.environments
    if query.at is not None:
        [snapshot] = compile_flag_then(caller, query, {"environment": environment}, name).values()
    else:
        check_environment(environment)
        flag = find_flag(caller, name, archived=False)
        snapshot = compile_flags(read_stored_flags([flag.project_id], environment, {name}), environment)
    if name not in snapshot.positions:
        when = " then" if query.at else ""
        raise ValidationError.at("flag", f"flag {name[:100]} not found in {environment}{when}.")
    return snapshot


def _make_strategy(strategy: StrategyExplanation) -> Answer:
    conditions = [*strategy.constraints, *(each for part in strategy.segments for each in part.constraints)]
    return {
        "strategy": strategy.title or strategy.name,
        "result": "disabled" if strategy.disabled else strategy.state.value,
        "sentence": strategy.sentence,
        **({"conditions": [_make_condition(each) for each in conditions]} if conditions else {}),
        **({"decides": True} if strategy.decides else {}),
    }


def _make_condition(condition: ConstraintExplanation) -> str:
    return f"{'holds' if condition.holds else 'does not hold'}: {condition.sentence}"


class WhoHadFlag(Arguments):
    flag: str = Field(description="Its name.")
    environment: str
    rows: list[dict[str, Any]] = Field(
        default_factory=list,
        max_length=200,
        description='What happened, each with its time and fields of the user: {"time": "2026-11-20T12:00:00Z", '
        '"userId": "42"}.',
    )
    query: str = Field(
        "",
        description="In place of rows, a query that the operator has set up. Answers with a run, to ask for later.",
    )
    run: str = Field("", description="The id of such a run: answers with the counts once it is done.")


def who_had_flag(call: Call, arguments: WhoHadFlag) -> Answer:
    if sum(map(bool, (arguments.rows, arguments.query, arguments.run))) != 1:
        raise ValidationError.at("rows", "give either rows, query or run")
    if not arguments.rows:
        return _find_run(call, arguments)
    answer = SmallAnswer(
        call.caller, arguments.environment, [arguments.flag], lag=DEFAULT_LAG, spreadsheet=False
    )
    columns = dict.fromkeys(name for row in arguments.rows for name in row)
    lines = (orjson.dumps({name: row.get(name) for name in columns}) for row in arguments.rows)
    found = csv.DictReader(StringIO(answer.answer(b"\n".join(lines)), newline=""))
    rows = [{name: text for name, text in row.items() if text} for row in found]
    [counts] = answer.summarize()["flags"]
    return {
        "flag": arguments.flag,
        "environment": arguments.environment,
        "counts": counts["results"],
        "rows": rows,
    }


def _find_run(call: Call, arguments: WhoHadFlag) -> Answer:
    if arguments.run:
        run = access_run(call.caller, arguments.run)
    else:
        run = create_assignments(
            b"",
            caller=call.caller,
            environment=arguments.environment,
            flags=[arguments.flag],
            lag=DEFAULT_LAG,
            query=arguments.query,
            replaces=False,
        )
    document = make_result_document(run)
    return {
        name: document[name]
        for name in ("id", "state", "flag", "environment", "problem", "assigned")
        if name in document
    }


class FindCause(Arguments):
    environment: str
    since: datetime = Field(alias="from", description="When it was still good, such as 2026-11-20T12:00:00Z.")
    to: datetime
    affected: list[str] = Field(
        min_length=1, max_length=2_000, description="The userId of users with the problem."
    )
    others: list[str] = Field(
        default_factory=list,
        max_length=2_000,
        description="Of users without it; else generated users stand in.",
    )


def find_cause(call: Call, arguments: FindCause) -> Answer:
    sight = Sight.of(call.caller, arguments.environment)
    window = incident.check_window(arguments.since, arguments.to, read_now())
    groups = [
        incident.Users(["userId"], [[user] for user in ids]) for ids in (arguments.affected, arguments.others)
    ]
    found = incident.find_cause(
        sight,
        arguments.environment,
        window,
        groups[0],
        groups[1] if arguments.others else None,
        max_changes=CHANGES_AT_ONCE,
    )
    return found | {
        "changes": [change for change in found["changes"] if change["noticed"]["affected"]][:FEW],
        "changesThatNoAffectedUserNoticed": sum(not each["noticed"]["affected"] for each in found["changes"]),
    }


class WhoChanges(Arguments):
    flag: str = Field(description="Its name.")
    environment: str
    draft: dict[str, Any] = Field(
        description="What would be different, of: enabled (bool), archived (bool), strategies (all of them; with id, "
        "members not given stay), variants (all), dependencies (all). As the API's POST /playground/compare takes it."
    )
    fixed: dict[str, Any] = Field(
        default_factory=dict, description='Fields that all users have: {"country": "DE"}.'
    )
    limit: int = Field(EXAMPLES, ge=0, le=50, description="How many users to show.")


def who_changes(call: Call, arguments: WhoChanges) -> Answer:
    flag = find_flag(call.caller, arguments.flag, archived=False)
    counted = count_who_changes(
        call.caller,
        flag,
        arguments.environment,
        arguments.draft,
        examples=arguments.limit,
        fixed=arguments.fixed,
    )
    return {"flag": flag.name, "environment": arguments.environment, **counted}


def count_who_changes(
    caller: Caller,
    flag: Flag,
    environment: str,
    draft: Mapping[str, Any],
    *,
    examples: int,
    fixed: Mapping[str, Any] | None = None,
) -> Answer:
    """Counts how many of 1,000 generated users get a different result from the flag or from flags that depend on it."""
    contexts = {"synthetic": USERS, "generated": True} | ({"fixed": dict(fixed)} if fixed else {})
    body = {
        "from": {"environment": environment},
        "to": {"environment": environment, "draft": {**draft, "flag": flag.name}},
        "projects": [flag.project_id],
        "flag": flag.name,
        "contexts": contexts,
        "limit": examples,
    }
    answer, who = compare_states(caller, validate_body(CompareBody(data=body)))
    return {
        "contexts": answer["contexts"],
        "changed": answer["people"],
        "changes": {kind: number for kind, number in answer["counts"].items() if number},
        "otherFlags": [each["name"] for each in answer["flags"] if each["name"] != flag.name],
        "brokenExpectations": [
            {name: broken[name] for name in ("savedContext", "flag", "enabled", "variant")}
            for broken in answer["expectations"]["broken"]
        ],
        **({"examples": [_make_example(each) for each in answer["examples"]]} if examples else {}),
        **({} if answer["people"] else {"whyNobody": explain_nobody(who, flag.name)}),
        **({"notes": answer["notes"]} if "notes" in answer else {}),
    }


def _make_example(example: Mapping[str, Any]) -> Answer:
    return {
        "flag": example["flag"],
        "context": example["context"],
        "change": example["change"],
        "reasonBefore": example["before"]["reason"],
        "reasonAfter": example["after"]["reason"],
    }


class CheckExpectations(ListArguments):
    project: str | None = Field(None, description="Id of a project; without it, all that you may read.")
    environment: str | None = None


def check_expectations(call: Call, arguments: CheckExpectations) -> Answer:
    body: dict[str, Any] = {}
    if arguments.project is not None:
        body["projects"] = [check_project(call.caller, arguments.project).pk]
    if arguments.environment is not None:
        body["environments"] = [check_environment(arguments.environment).name]
    checked = check_request(call.caller, body)
    failed = [check for check in checked if not check.met]
    return {
        "checked": len(checked),
        "failed": len(failed),
        "summary": summarize(checked),
        "notMet": [_make_unmet(check) for check in failed[: arguments.most]],
    }


def _make_unmet(check: Checked) -> Answer:
    return {"sentence": check.sentence, "reason": check.reason, "enforcedIn": check.expectation.enforced_in}


TOOLS: Sequence[Tool] = [
    Tool(
        "explain_flag",
        "Why does this user get this?",
        "What a user gets of a flag, now or at another moment, and why: rule by rule.",
        ExplainFlag,
        explain_flag,
    ),
    Tool(
        "who_had_flag",
        "Who had it at that time?",
        "What users had of a flag at past times (of orders, errors or tickets): on, off or unknown, since when, and by "
        "which change. Saves only the run of a query.",
        WhoHadFlag,
        who_had_flag,
        stores=True,
    ),
    Tool(
        "find_cause",
        "Which change did this?",
        "The changes that users with a problem noticed and others did not, the most telling first, with numbers and a "
        "sentence; and what these users had in common before.",
        FindCause,
        find_cause,
    ),
    Tool(
        "who_changes",
        "Who changes if …",
        "How many of 1,000 generated users would get something else if a flag were changed, who and why, and which "
        "expectations would break. Saves nothing.",
        WhoChanges,
        who_changes,
    ),
    Tool(
        "check_expectations",
        "Check expectations",
        "Whether flags give what saved contexts expect, and why not.",
        CheckExpectations,
        check_expectations,
    ),
]
