"""Template tags for icons and avatars: ``{% load icons %}{% icon "plus" %}``, ``{{ name|initials }}``."""

import re

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

# Stroke icons on a grid of 16; the stylesheet gives size, color and stroke.
ICONS = {
    "alert": '<path d="M8 2.5 14 13H2z"/><path d="M8 6.5v3M8 11.2v.1"/>',
    "archive": '<path d="M2.5 3h11v3h-11zM3.5 6v7h9V6M6.5 8.5h3"/>',
    "arrow": '<path d="M3 8h10M9.5 4.5 13 8l-3.5 3.5"/>',
    "bolt": '<path d="M9 2 3.5 9H8l-1 5 5.5-7H8z"/>',
    "branch": '<circle cx="4" cy="4" r="1.8"/><circle cx="12" cy="12" r="1.8"/><path d="M4 6v3a3 3 0 0 0 3 3h3"/>',
    "calendar": '<path d="M2.5 3.5h11v10h-11zM2.5 6.5h11M5.5 2v3M10.5 2v3"/>',
    "check": '<path d="m3.5 8.5 3 3 6-7"/>',
    "clock": '<circle cx="8" cy="8" r="5.5"/><path d="M8 5v3.2l2 1.3"/>',
    "code": '<path d="m5.5 4.5-3.5 3.5 3.5 3.5M10.5 4.5 14 8l-3.5 3.5"/>',
    "copy": '<path d="M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3"/>',
    "cross": '<path d="m4.5 4.5 7 7m0-7-7 7"/>',
    "dots": '<circle cx="3.5" cy="8" r=".7"/><circle cx="8" cy="8" r=".7"/><circle cx="12.5" cy="8" r=".7"/>',
    "down": '<path d="m4.5 6.5 3.5 3.5 3.5-3.5"/>',
    "download": '<path d="M8 2.5v7m-3-3 3 3 3-3M3 12.5h10"/>',
    "edit": '<path d="m10.5 3 2.5 2.5L6 12.5l-3 .5.5-3z"/>',
    "filter": '<path d="M2.5 3.5h11L9.5 8.5v4l-3-1.5V8.5z"/>',
    "flag": '<path d="M4 14V3h8.5l-2 3 2 3H4"/>',
    "folder": '<path d="M2.5 4h4l1.5 1.5h5.5v7h-11z"/>',
    "half": '<circle cx="8" cy="8" r="5.5"/><path d="M8 2.5v11a5.5 5.5 0 0 0 0-11z" fill="currentColor"/>',
    "key": '<circle cx="5" cy="11" r="2.5"/><path d="m7 9 6-6M10.5 5.5l2 2"/>',
    "keyboard": '<path d="M2 4.5h12v7H2zM5 9.5h6M4.5 7h.1M7 7h.1M9.5 7h.1M12 7h.1"/>',
    "link": '<path d="m6.5 9.5 3-3M7 4.5l1.5-1.5a2.8 2.8 0 0 1 4 4L11 8.5M9 11.5 7.5 13a2.8 2.8 0 0 1-4-4L5 7.5"/>',
    "lock": '<path d="M3.5 7.5h9v6h-9zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5"/>',
    "logout": '<path d="M6.5 2.5h-4v11h4M6.5 8H14M11 5l3 3-3 3"/>',
    "menu": '<path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11"/>',
    "moon": '<path d="M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z"/>',
    "people": '<circle cx="6" cy="5.5" r="2.3"/><path d="M2 13a4 4 0 0 1 8 0M10.5 3.5a2.3 2.3 0 0 1 0 4M12 9.8a4 4 0 0 1 2 3.2"/>',  # noqa: E501
    "play": '<path d="M5 3.5v9l7.5-4.5z"/>',
    "plus": '<path d="M8 3.5v9M3.5 8h9"/>',
    "search": '<circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3 3"/>',
    "star": '<path d="m8 1.9 1.9 3.8 4.2.6-3 3 .7 4.2L8 11.5l-3.8 2 .7-4.2-3-3 4.2-.6z"/>',
    "sun": '<circle cx="8" cy="8" r="2.8"/><path d="M8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9"/>',  # noqa: E501
    "swap": '<path d="M3 5.5h10M10.5 3 13 5.5 10.5 8M13 10.5H3M5.5 8 3 10.5 5.5 13"/>',
    "tag": '<path d="M2.5 2.5h5l6 6-5 5-6-6z"/><circle cx="5.3" cy="5.3" r=".6"/>',
    "target": '<circle cx="8" cy="8" r="5.5"/><circle cx="8" cy="8" r="2"/>',
    "trash": '<path d="M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.5 9h6l.5-9M6.8 7v4M9.2 7v4"/>',
    "undo": '<path d="M5.5 3 2.5 6l3 3M2.5 6h7a3.5 3.5 0 0 1 0 7H6"/>',
    "upload": '<path d="M8 9.5v-7m-3 3 3-3 3 3M3 12.5h10"/>',
    "eye": '<path d="M1.5 8q6.5-9 13 0-6.5 9-13 0z"/><circle cx="8" cy="8" r="2"/>',
    "user": '<circle cx="8" cy="5.5" r="2.5"/><path d="M3 13.5a5 5 0 0 1 10 0"/>',
    "window": '<path d="M2.5 3h11v10h-11zM2.5 6h11"/>',
}  # fmt: skip


@register.simple_tag
def icon(name: str) -> SafeString:
    """The icon as an inline SVG that screen readers skip. Raises KeyError for an unknown name."""
    return mark_safe(f'<svg viewBox="0 0 16 16" aria-hidden="true">{ICONS[name]}</svg>')  # noqa: S308 (ours)


@register.simple_tag
def avatar(name: str, is_service: bool = False) -> SafeString:
    """A circle with a person's initials, or a square for a service account; screen readers skip it."""
    kind = "bot" if is_service else ("", "v", "t")[sum(map(ord, name)) % 3]
    return format_html('<span class="face {}" aria-hidden="true">{}</span>', kind, initials(name))


@register.filter
def initials(name: str) -> str:
    """``Kari Nordmann`` → ``KN``, ``deploy-bot`` → ``DB``, ``demo`` → ``D``."""
    words = re.findall(r"\w+", name)
    return "".join(word[0] for word in (words[:1] + words[1:][-1:])).upper()
