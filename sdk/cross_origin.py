"""The headers of answers to browsers of other origins (CORS). Knows no framework."""

from collections.abc import Collection

PREFLIGHT_SECONDS = "3600"
METHODS = "GET, POST, OPTIONS"


def make_headers(origin: str, allowed: Collection[str]) -> dict[str, str]:
    """``allowed`` are origins; ``*`` stands for all. Tokens are no cookies, so that * is safe."""
    headers = {"Vary": "Origin, Access-Control-Request-Headers, Accept-Encoding"}
    if "*" in allowed or origin in allowed:
        headers["Access-Control-Allow-Origin"] = "*" if "*" in allowed else origin
        headers["Access-Control-Expose-Headers"] = "ETag"
    return headers


def make_preflight_headers(requested: str, methods: str = METHODS) -> dict[str, str]:
    """``requested`` is what the browser asks for with Access-Control-Request-Headers."""
    return {
        "Access-Control-Allow-Methods": methods,
        "Access-Control-Allow-Headers": requested or "authorization, content-type",
        "Access-Control-Max-Age": PREFLIGHT_SECONDS,
    }
