"""The command line of `flagadmin relay`. Each option can be given as an environment variable instead."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from relay.edge_settings import parse_variables, read_edge_settings

PREFIX = "FLAGADMIN_RELAY_"
EDGE = "--edge-settings"
ENVIRONMENT = "-"


@dataclass(frozen=True, slots=True)
class Options:
    """Times are in seconds."""

    upstream: str
    data: Path
    upstream_headers: tuple[tuple[str, str], ...] = ()
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
    is_strict: bool = False


def read_options(arguments: Sequence[str]) -> Options:
    """Ends the process with a message if an option is missing or wrong."""
    parser = argparse.ArgumentParser(
        "flagadmin relay",
        description=__doc__.splitlines()[0] if __doc__ else "",
        allow_abbrev=False,
    )
    parser.add_argument(
        EDGE,
        nargs="?",
        const=ENVIRONMENT,
        metavar="FILE",
        help="take over the variables of Unleash Edge, from this environment file or the environment",
    )
    try:
        _add_options(parser, _read_settings(arguments))
        parsed = parser.parse_args(arguments)
        for name in ("upstream", "data"):
            if not getattr(parsed, name):
                parser.error(f"--{name} is required (or {PREFIX}{name.upper()})")
        return _make_options(parsed)
    except (OSError, ValueError) as error:
        parser.error(str(error))


def _read_settings(arguments: Sequence[str]) -> Mapping[str, str]:
    """Reads settings not on the command line: from the environment, then from Edge. Raises OSError and ValueError."""
    own = {name.removeprefix(PREFIX): value for name, value in os.environ.items() if name.startswith(PREFIX)}
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument(EDGE, nargs="?", const=ENVIRONMENT)
    source = first.parse_known_args(arguments)[0].edge_settings
    if source is None:
        return own
    variables = (
        os.environ if source == ENVIRONMENT else parse_variables(Path(source).read_text().splitlines())
    )
    return read_edge_settings(variables) | own


def _add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:
    def add(name: str, text: str, default: str = "") -> None:
        variable = name.upper().replace("-", "_")
        default = settings.get(variable, default)
        parser.add_argument(f"--{name}", default=default, help=f"{text} ({PREFIX}{variable})")

    def add_list(name: str, variable: str, text: str) -> None:
        default = _split_list(settings.get(variable, ""))
        parser.add_argument(f"--{name}", action="append", default=default, help=f"{text}; can be repeated")

    add("upstream", "address of the server or relay to ask, such as https://flags.example.org")
    add("data", "directory of what the relay keeps")
    add_list("upstream-header", "UPSTREAM_HEADERS", "header for the upstream, such as 'X-Gateway: secret'")
    add_list("token", "TOKENS", "backend token that is asked about from the beginning")
    add("host", "address to listen at", "127.0.0.1")
    add("port", "port to listen at", "3063")
    add("region", "name of the region in reports", "")
    add("poll-seconds", "seconds between two looks at the upstream", "15")
    add("report-seconds", "seconds between two reports to the upstream", "60")
    add("timeout-seconds", "seconds to wait for the upstream", "5")
    add("origins", "origins whose pages may ask, separated by commas", "*")
    add("metrics-token", "token of those who may read /metrics; nobody without it", "")
    parser.add_argument(
        "--behind-proxy",
        action="store_true",
        default=settings.get("BEHIND_PROXY") == "1",
        help=f"take client addresses from X-Forwarded-For ({PREFIX}BEHIND_PROXY=1)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        default=settings.get("STRICT") == "1",
        help=f"serve only tokens whose environment and projects one of --token covers ({PREFIX}STRICT=1)",
    )


def _make_options(parsed: argparse.Namespace) -> Options:
    """Raises ValueError."""
    if not parsed.upstream.startswith(("http://", "https://")):
        raise ValueError("--upstream must begin with http:// or https://")
    if parsed.strict and not parsed.token:
        raise ValueError("--strict needs --token: nobody else would be served")
    return Options(
        upstream=parsed.upstream.rstrip("/").removesuffix("/api"),
        data=Path(parsed.data),
        upstream_headers=tuple(
            _read_header(number, text) for number, text in enumerate(parsed.upstream_header, 1)
        ),
        tokens=tuple(dict.fromkeys(parsed.token)),
        host=parsed.host,
        port=int(parsed.port),
        region=parsed.region,
        poll=_read_seconds("poll-seconds", parsed.poll_seconds, at_least=1),
        report=_read_seconds("report-seconds", parsed.report_seconds, at_least=0.1),
        timeout=_read_seconds("timeout-seconds", parsed.timeout_seconds, at_least=0.1),
        origins=tuple(_split_list(parsed.origins)),
        metrics_token=parsed.metrics_token,
        is_behind_proxy=parsed.behind_proxy,
        is_strict=parsed.strict,
    )


def _split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _read_seconds(name: str, text: str, *, at_least: float) -> float:
    seconds = float(text)
    if not at_least <= seconds < 86_400:
        raise ValueError(f"--{name} must be from {at_least:g} to 86400, not {text}")
    return seconds


def _read_header(number: int, text: str) -> tuple[str, str]:
    """Raises ValueError, without the text: it may have a secret."""
    name, separator, value = text.partition(":")
    if not (separator and name.strip() and name.strip().lower() != "authorization"):
        raise ValueError(f"--upstream-header {number} must be 'NAME: VALUE' and not Authorization")
    return name.strip(), value.strip()
