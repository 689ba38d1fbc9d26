"""A template filter that names a browser and its device: ``{% load devices %}{{ session.user_agent|device }}``."""

from django import template

register = template.Library()

# Names that ua-parser spells differently from their makers.
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

    agent = ua_parser.parse(user_agent)
    browser = agent.user_agent.family if agent.user_agent else ""
    system = agent.os.family if agent.os else ""
    if agent.device and agent.device.family in ("iPhone", "iPad"):
        system = agent.device.family
    return " on ".join(_NAMES.get(name, name) for name in (browser, system) if name) or "unknown browser"
