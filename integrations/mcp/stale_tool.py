"""The tool that finds flags that can go, with the proof: what everybody gets, what depends on it, who still asks."""

from django.utils import timezone
from pydantic import Field

from integrations.mcp.tool import Answer, Call, ListArguments, Tool
from playground.stale.documents import make_proof_document
from playground.stale.queries import find_candidates, list_reasons, prove_flags
from projects.access import check_project
from projects.models import Flag

FEW = 5


class FindStaleFlags(ListArguments):
    project: str | None = Field(None, description="Id of a project; without it, all that you may read.")


def find_stale_flags(call: Call, arguments: FindStaleFlags) -> Answer:
    now = timezone.now()
    flags = Flag.objects.readable_by(call.caller)
    if arguments.project is not None:
        flags = flags.filter(project=check_project(call.caller, arguments.project))
    reasons = list_reasons(now)
    candidates = find_candidates(flags, reasons)
    proofs = prove_flags(list(candidates[: arguments.limit or FEW]), reasons, now=now, caller=call.caller)
    return {
        "total": candidates.count(),
        "flags": [
            {key: value for key, value in make_proof_document(proof).items() if key != "task"}
            for proof in proofs
        ],
    }


TOOLS = [
    Tool(
        "find_stale_flags",
        "Find flags that can go",
        "Flags that are past their time, oldest first, each with the proof: what everybody gets in each environment "
        "(saved contexts, and generated ones that meet and miss each rule), when it was last evaluated, what depends "
        "on it.",
        FindStaleFlags,
        find_stale_flags,
    )
]
