"""The base class of pages about one group."""

from django.urls import reverse, reverse_lazy

from groups.console import ConsolePage
from groups.groups.actions import access_group
from groups.models import Group

GROUPS = ("Groups", reverse_lazy("groups"))


def group_url(group_id: int) -> str:
    return reverse("group", args=[group_id])


class OneGroup(ConsolePage):
    """A page about one group."""

    @property
    def group_id(self) -> int:
        return self.kwargs["group_id"]

    def group(self) -> Group:
        """The group without its members, of whom there may be many. Raises NoAccess, NotFound."""
        return access_group(self.caller, self.group_id, with_members=False)
