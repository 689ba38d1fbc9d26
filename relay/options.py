"""The command line of `flagadmin relay`. Each option can be given as an environment variable instead."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PREFIX = "FLAGADMIN_RELAY_"


@dataclass(frozen=True, slots=True)
class Options:
    """Times are in seconds."""

    upstream: str
    data: Path
    tokens: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 3063
    region: str = ""
    poll: float = 15.0
    report: float = 60.0
    timeout: float = 5.0
    origins: tuple[str, ...] = ("*",)
    metrics_token: str = ""
    is_behind_proxy: bool = False


def read_options(arguments: Sequence[str]) -> Options:
    """Ends the process with a message if an option is missing or wrong."""
    parser = argparse.ArgumentParser(
        "flagadmin relay", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    _add(parser, "upstream", "address of the server or relay to ask, such as https://flags.example.org")
    _add(parser, "data", "directory of what the relay keeps")
    parser.add_argument(
        "--token",
        action="append",
        default=_listed(os.environ.get(f"{PREFIX}TOKENS", "")),
        help="backend token that is asked about from the beginning; can be repeated",
    )
    _add(parser, "host", "address to listen at", "127.0.0.1")
    _add(parser, "port", "port to listen at", "3063")
    _add(parser, "region", "name of the region in reports", "")
    _add(parser, "poll-seconds", "seconds between two looks at the upstream", "15")
    _add(parser, "report-seconds", "seconds between two reports to the upstream", "60")
    _add(parser, "timeout-seconds", "seconds to wait for the upstream", "5")
    _add(parser, "origins", "origins whose pages may ask, separated by commas", "*")
    _add(parser, "metrics-token", "token of those who may read /metrics; nobody without it", "")
    parser.add_argument(
        "--behind-proxy",
        action="store_true",
        default=os.environ.get(f"{PREFIX}BEHIND_PROXY") == "1",
        help=f"take client addresses from X-Forwarded-For ({PREFIX}BEHIND_PROXY=1)",
    )
    given = parser.parse_args(arguments)
    for name in ("upstream", "data"):
        if not getattr(given, name):
            parser.error(f"--{name} is required (or {PREFIX}{name.upper()})")
    if not given.upstream.startswith(("http://", "https://")):
        parser.error("--upstream must begin with http:// or https://")
    try:
        return _make_options(given)
    except ValueError as error:
        parser.error(str(error))


def _make_options(given: argparse.Namespace) -> Options:
    return Options(
        upstream=given.upstream.rstrip("/").removesuffix("/api"),
        data=Path(given.data),
        tokens=tuple(dict.fromkeys(given.token)),
        host=given.host,
        port=int(given.port),
        region=given.region,
        poll=_seconds("poll-seconds", given.poll_seconds, at_least=1),
        report=_seconds("report-seconds", given.report_seconds, at_least=0.1),
        timeout=_seconds("timeout-seconds", given.timeout_seconds, at_least=0.1),
        origins=tuple(_listed(given.origins)),
        metrics_token=given.metrics_token,
        is_behind_proxy=given.behind_proxy,
    )


def _add(parser: argparse.ArgumentParser, name: str, text: str, default: str = "") -> None:
    variable = PREFIX + name.upper().replace("-", "_")
    parser.add_argument(f"--{name}", default=os.environ.get(variable, default), help=f"{text} ({variable})")


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _seconds(name: str, text: str, *, at_least: float) -> float:
    seconds = float(text)
    if not at_least <= seconds < 86_400:
        raise ValueError(f"--{name} must be from {at_least:g} to 86400, not {text}")
    return seconds
