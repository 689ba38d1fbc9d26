"""A template filter that names a browser and its device: ``{% load devices %}{{ session.user_agent|device }}``."""

from django import template

register = template.Library()

# The names of what ua-parser calls differently from its makers.
_NAMES = {
    "Mobile Safari": "Safari",
    "Chrome Mobile": "Chrome",
    "Firefox Mobile": "Firefox",
    "Mac OS X": "macOS",
}


@register.filter
def device(user_agent: str) -> str:
    """``Firefox on Windows``, ``Safari on iPhone``, ``curl``; "unknown browser" if the header says nothing."""
    import ua_parser  # takes 150 ms, and most workers never show a session

    found = ua_parser.parse(user_agent)
    browser = found.user_agent.family if found.user_agent else ""
    system = found.os.family if found.os else ""
    if found.device and found.device.family in ("iPhone", "iPad"):
        system = found.device.family
    return " on ".join(_NAMES.get(name, name) for name in (browser, system) if name) or "unknown browser"
