"""The tool that finds removable flags with proof: their result for everyone, their dependents and their last use."""

from threading import Lock

from django.utils import timezone
from pydantic import Field

from flagadmin.core.errors import TooManyRequests
from integrations.mcp.tool import Answer, Call, ListArguments, Tool
from playground.stale.queries import find_candidates, make_proof_document, prove_flags
from projects.access import check_project
from projects.flags.lists.conditions import list_reasons
from projects.models import Flag

FEW = 5
PATIENCE = 5.0  # seconds
_one_at_a_time = Lock()  # each proof evaluates a flag for a thousand contexts in each environment


class FindStaleFlags(ListArguments):
    project: str | None = Field(None, description="Id of a project; without it, all that you may read.")


def find_stale_flags(call: Call, arguments: FindStaleFlags) -> Answer:
    """Proves one flag at a time in a worker. Raises TooManyRequests if other calls are waiting."""
    if not _one_at_a_time.acquire(timeout=PATIENCE):
        raise TooManyRequests(
            "Other calls of find_stale_flags are running. Call it again later.", headers={"Retry-After": "10"}
        )
    try:
        return _prove(call, arguments)
    finally:
        _one_at_a_time.release()


def _prove(call: Call, arguments: FindStaleFlags) -> Answer:
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
