"""The style guide: every component of the console with its HTML. Available only with DEBUG."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from flagadmin.core.templatetags.icons import ICONS
from groups.console import ConsolePage


class StyleGuidePage(ConsolePage):
    template_name = "styleguide/styleguide.html"
    title = "Style guide"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            tabs=[("Flags", "?", 22_000, True), ("Access", "?", 6, False), ("Settings", "?", None, False)],
            segments=[("Active", "?", 9, True), ("Stale", "?", 2, False), ("Archived", "?", 1, False)],
            icons=sorted(ICONS),
            moment=timezone.now() - timedelta(minutes=3),
            **kwargs,
        )
