"""``{% load undo %}{{ message|undone_event }}``: the event that its Undo button reverts, "" without one."""

from django import template
from django.contrib.messages.storage.base import Message

from projects.reverts.change_plan import UNDO

register = template.Library()


@register.filter
def undone_event(message: Message) -> str:
    tag = message.extra_tags or ""
    return tag.removeprefix(UNDO) if tag.startswith(UNDO) else ""
