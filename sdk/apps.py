"""The sdk app: the APIs that applications call, with answers from memory, streams and the watcher."""

import re
from datetime import timedelta

from django.apps import AppConfig


class SdkConfig(AppConfig):
    name = "sdk"
    verbose_name = "SDKs"

    def ready(self) -> None:
        from flagadmin.core.hook import add, later
        from flagadmin.core.http.error_formats import register_error_format
        from flagadmin.core.server import background_tasks, loop_routes

        background_tasks.run_every(timedelta(days=1), later("sdk.delta.states:forget_unused"))
        background_tasks.run_every(timedelta(days=1), later("sdk.reports.batcher:forget_reports"))
        add("loop routes", "sdk.loop:register")
        register_error_format("/ofrep/", later("sdk.ofrep.answers:make_error_body"))
        loop_routes.add_evaluations(re.compile(r"/ofrep/.*|/api/(frontend|proxy)/?", re.DOTALL))
