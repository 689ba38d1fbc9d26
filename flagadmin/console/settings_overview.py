"""/settings/: everything that is set for the whole installation, in groups."""

from typing import Any

from flagadmin.console.navigation import Group, find_place, list_pages
from groups.console import ConsolePage


class SettingsOverview(ConsolePage):
    template_name = "console/settings.html"
    title = "Settings"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        section, _, _ = find_place(self.request.path)
        groups: tuple[Group, ...] = section.groups if section else ()
        listed = [(group.label, list_pages(group, self.caller)) for group in groups]
        return super().get_context_data(groups=[group for group in listed if group[1]], **kwargs)
