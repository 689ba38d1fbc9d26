"""Registers what a worker's event loop answers for applications, and the tasks behind it."""

from flagadmin.core.installation.state import keep_origins
from flagadmin.core.server import loop_routes
from sdk.evaluation.shortcuts import add_shortcuts
from sdk.ofrep.answers import EVENTS
from sdk.ofrep.change_events import change_events, watch_clock
from sdk.poll_shortcuts import delta_answers, features_answers
from sdk.streaming.sdk_streams import sdk_streams
from sdk.watcher.token_streams import streams
from sdk.watcher.watcher import watcher


def register() -> None:
    loop_routes.run_in_loop(watcher.run)
    loop_routes.add_shortcut("/api/client/features", features_answers)
    loop_routes.add_shortcut("/api/client/delta", delta_answers)
    loop_routes.add_stream("/api/client/streaming", sdk_streams.serve)
    loop_routes.run_in_loop(streams.keep_alive)
    loop_routes.run_in_loop(sdk_streams.use_tokens)
    add_shortcuts(watcher)
    loop_routes.run_in_loop(keep_origins)
    loop_routes.add_stream(EVENTS, change_events.serve)
    loop_routes.run_in_loop(change_events.use_tokens)
    loop_routes.run_in_loop(watch_clock)
