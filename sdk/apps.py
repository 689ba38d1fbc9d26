"""The sdk app: the APIs that applications call, with answers from memory, streams and the watcher."""

import re
from datetime import timedelta

from django.apps import AppConfig


class SdkConfig(AppConfig):
    name = "sdk"
    verbose_name = "SDKs"

    def ready(self) -> None:
        from flagadmin.core.http.error_responses import register_error_format
        from flagadmin.core.installation.state import keep_origins
        from flagadmin.core.server import background_tasks, loop_routes
        from sdk.delta.version_ids import forget_unused
        from sdk.evaluation.shortcuts import add_shortcuts
        from sdk.ofrep.answers import EVENTS
        from sdk.ofrep.change_events import change_events, watch_clock
        from sdk.ofrep.request import PREFIX, make_error_body
        from sdk.poll_shortcuts import delta_answers, features_answers
        from sdk.reports.batcher import forget_reports
        from sdk.streaming.sdk_streams import sdk_streams
        from sdk.watcher.token_streams import streams
        from sdk.watcher.watcher import watcher

        background_tasks.run_every(timedelta(days=1), forget_unused)
        background_tasks.run_every(timedelta(days=1), forget_reports)
        loop_routes.run_in_loop(watcher.run)
        loop_routes.add_shortcut("/api/client/features", features_answers)
        loop_routes.add_shortcut("/api/client/delta", delta_answers)
        loop_routes.add_stream("/api/client/streaming", sdk_streams.serve)
        loop_routes.run_in_loop(streams.keep_alive)
        loop_routes.run_in_loop(sdk_streams.use_tokens)

        register_error_format(PREFIX, make_error_body)
        loop_routes.add_evaluations(re.compile(r"/ofrep/.*|/api/(frontend|proxy)/?", re.DOTALL))
        add_shortcuts(watcher)
        loop_routes.run_in_loop(keep_origins)
        loop_routes.add_stream(EVENTS, change_events.serve)
        loop_routes.run_in_loop(change_events.use_tokens)
        loop_routes.run_in_loop(watch_clock)
