"""The tool that reads what came of flags."""

from typing import Any

from pydantic import Field

from integrations.mcp.tool import Answer, Call, ListArguments, Tool, find_flag
from playground.outcomes.analyses.queries import access_analysis, list_analyses, make_analysis_document

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
]
