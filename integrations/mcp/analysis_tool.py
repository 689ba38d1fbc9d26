"""Tools that analyze what came of flags, and read the analyses."""

from typing import Any

from pydantic import AwareDatetime, Field

from groups.permissions import Permission
from integrations.mcp.tool import Answer, Call, ListArguments, Tool, WriteArguments, done, find_flag, perform
from playground.outcomes.analyses.actions import (
    access_analysis,
    create_analysis,
    list_analyses,
    make_analysis_document,
)
from playground.outcomes.analyses.design import KINDS, Design, read_measures

DESIGN = ("id", "name", "environment", "state", "from", "to", "measures", "control", "method", "problem")
RESULT = ("sentence", "unit", "counts", "leftOut", "changes")
COMPARISON = (
    "measure",
    "side",
    "difference",
    "interval",
    "lift",
    "liftInterval",
    "pAdjusted",
    "isSignificant",
    "sentence",
)


class ReadAnalyses(ListArguments):
    flag: str = Field(description="Its name.")
    analysis: str | None = Field(
        None, description="The id of one; without it, all are listed, the latest first."
    )

    @property
    def wants_more(self) -> bool:
        return super().wants_more or self.analysis is not None


def read_analyses(call: Call, arguments: ReadAnalyses) -> Answer:
    flag = find_flag(call.caller, arguments.flag)
    if arguments.analysis is None:
        found = list_analyses(flag)
        listed = [
            _choose(make_analysis_document(each), DESIGN) | {"sentence": sentence} for each, sentence in found
        ]
        return {"flag": flag.name, "total": len(found), "analyses": listed[: arguments.most]}
    analysis = access_analysis(flag, arguments.analysis)
    answer = {"flag": flag.name} | _choose(make_analysis_document(analysis), DESIGN)
    if analysis.result is None:
        return answer
    result = analysis.result
    return answer | {
        "result": _choose(result, RESULT)
        | {
            "checks": [_choose(check, ("name", "state", "sentence")) for check in result["checks"]],
            "comparisons": [_choose(each, COMPARISON) for each in result["comparisons"]],
        }
    }


class AnalyzeFlag(WriteArguments):
    flag: str = Field(description="Its name.")
    environment: str
    name: str = Field(description="The question, such as Does one click sell more?")
    since: AwareDatetime = Field(alias="from", description="Such as 2026-11-01T00:00:00Z.")
    to: AwareDatetime = Field(description="Exclusive.")
    query: str = Field("", description="A query that the operator has set up: its rows are the table.")
    table: str = Field(
        "",
        description="Without a query: CSV with a header, or JSON lines, with time, the fields that the flag depends "
        "on, and the measures. A row for each user who came.",
    )
    proportion: list[str] = Field([], description="Columns: the share of users with anything but 0.")
    mean: list[str] = Field([], description="Columns: the mean of the users' sums.")
    ratio: list[str] = Field(
        [], description="revenue/visits: the sum of one column divided by that of another."
    )
    control: str = Field("", description="The side with which others are compared, if not off.")


def analyze_flag(call: Call, arguments: AnalyzeFlag) -> Answer:
    flag = find_flag(call.caller, arguments.flag)
    call.caller.check(
        Permission.UPDATE_FEATURE, project=flag.project_id
    )  # a viewer's token writes with no tool
    design = Design(
        since=arguments.since,
        until=arguments.to,
        measures=read_measures({kind: getattr(arguments, kind) for kind in KINDS}),
        control=arguments.control,
    )
    analysis = perform(
        call,
        arguments,
        lambda: create_analysis(
            arguments.table.encode(),
            design,
            project=flag.project_id,
            flag=flag.name,
            environment=arguments.environment,
            name=arguments.name,
            caller=call.caller,
            query=arguments.query,
        ),
    )
    made = _choose(make_analysis_document(analysis), DESIGN)
    return done(
        arguments, flag=flag.name, analysis=made, next="read_analyses has the result once its state is done."
    )


def _choose(document: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: document[name] for name in names}


TOOLS = [
    Tool(
        "read_analyses",
        "Did it work?",
        "Analyses of a flag: what its users did by what they had of it. With an id: the checks, and the difference of "
        "each measure with its interval. If a check failed, the result must not be used.",
        ReadAnalyses,
        read_analyses,
    ),
    Tool(
        "analyze_flag",
        "Measure what came of a flag",
        "Starts an analysis of a flag from a table of what its users did. It changes nothing that users get.",
        AnalyzeFlag,
        analyze_flag,
    ),
]
