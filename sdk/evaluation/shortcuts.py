"""The paths whose contexts the event loop evaluates."""

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.json_bodies import Bounds, read_json
from flagadmin.core.server import loop_routes
from sdk.evaluation.prepared import Answer, Prepared
from sdk.evaluation.shortcut import Caller, ContextAnswers, Request, make_request_context, read_parameters
from sdk.evaluation.toggles import answer_toggles, read_body_context, read_query_context, recall_toggles
from sdk.ofrep.answers import answer_flag, answer_flags, event_streams, remembered
from sdk.ofrep.request import read_body
from sdk.ofrep.tickets import ticket_for
from sdk.watcher.watcher import Watcher

FRONTEND, PROXY = "/api/frontend", "/api/proxy"
FLAGS = "/ofrep/v1/evaluate/flags"
# About 2 ms of CPU time: more are evaluated in a thread.
MAX_TOGGLES = 2_000
MAX_EXPLAINED = 200
BOUNDS = Bounds()


def add_shortcuts(watcher: Watcher) -> None:
    for path in (FRONTEND, PROXY):
        loop_routes.add_shortcut(path, ContextAnswers(watcher, evaluate_query, path[1:], recall_toggles))
        loop_routes.add_post_shortcut(path, ContextAnswers(watcher, evaluate_body, path[1:], recall_toggles))
    loop_routes.add_post_shortcut(FLAGS, ContextAnswers(watcher, evaluate_flags, FLAGS[1:], remembered.get))
    single = ContextAnswers(watcher, evaluate_flag, f"{FLAGS[1:]}/<text:key>")
    loop_routes.add_post_shortcut(f"{FLAGS}/", single)


def evaluate_query(prepared: Prepared, caller: Caller, request: Request) -> Answer | None:
    try:
        parameters = read_parameters(request)
    except ValueError:
        raise ValidationError from None
    fields = read_body_context({"context": read_query_context(parameters)})
    context = make_request_context(fields, caller, request)
    return answer_toggles(
        prepared, context, request.if_none_match, may_evaluate=_may_evaluate_toggles(prepared)
    )


def evaluate_body(prepared: Prepared, caller: Caller, request: Request) -> Answer | None:
    fields = read_body_context(read_json(request.body, BOUNDS))
    context = make_request_context(fields, caller, request)
    return answer_toggles(prepared, context, "", may_evaluate=_may_evaluate_toggles(prepared))


def _may_evaluate_toggles(prepared: Prepared) -> bool:
    return prepared.has_toggles and len(prepared.flags) <= MAX_TOGGLES


def evaluate_flags(prepared: Prepared, caller: Caller, request: Request) -> Answer | None:
    context = make_request_context(read_body(read_json(request.body, BOUNDS)), caller, request)
    streams = caller.notes.get("streams")
    if streams is None:
        streams = event_streams(ticket_for(caller.token_id, caller.token.secret_hash))
        caller.notes["streams"] = streams
    return answer_flags(
        prepared,
        context,
        request.if_none_match,
        browser=caller.is_browser,
        streams=streams,
        may_evaluate=prepared.has_batch and len(prepared.flags) <= MAX_EXPLAINED,
    )


def evaluate_flag(prepared: Prepared, caller: Caller, request: Request) -> Answer | None:
    context = make_request_context(read_body(read_json(request.body, BOUNDS)), caller, request)
    name = request.path[len(FLAGS) + 1 :]
    return answer_flag(prepared, name, context, browser=caller.is_browser)
