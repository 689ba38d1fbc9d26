"""The command line of `flagadmin relay`. Each option can be given as an environment variable instead.

The settings of the open-source Unleash Edge are accepted too, so that a relay can replace it. Edge has no file of its
own: it is configured by variables, each named after its option (`--upstream-url`, UPSTREAM_URL), which are usually in
an environment file. docs/relay.md lists them all in a table.
"""

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """Reads the options. Ends the process with a message if one is missing or wrong."""
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
    """Reads settings that are not on the command line: from the environment, then from Edge. Raises OSError
    and ValueError.
    """
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
    """Parses a header. Raises ValueError without the text, which may contain a secret."""
    name, separator, value = text.partition(":")
    if not (separator and name.strip() and name.strip().lower() != "authorization"):
        raise ValueError(f"--upstream-header {number} must be 'NAME: VALUE' and not Authorization")
    return name.strip(), value.strip()


TAKEN = {
    "APP_NAME": "REGION",
    "BACKUP_FOLDER": "DATA",
    "CORS_ORIGIN": "ORIGINS",
    "CUSTOM_CLIENT_HEADERS": "UPSTREAM_HEADERS",
    "FEATURES_REFRESH_INTERVAL_SECONDS": "POLL_SECONDS",
    "INTERFACE": "HOST",
    "METRICS_INTERVAL_SECONDS": "REPORT_SECONDS",
    "PORT": "PORT",
    "STRICT": "STRICT",
    "TOKENS": "TOKENS",
    "TRUST_PROXY": "BEHIND_PROXY",
    "UPSTREAM_REQUEST_TIMEOUT": "TIMEOUT_SECONDS",
    "UPSTREAM_URL": "UPSTREAM",
}
"""Edge's variables, and the relay's equivalents."""

NEEDLESS = frozenset(
    (
        *("CORS_ALLOWED_HEADERS", "CORS_EXPOSED_HEADERS", "CORS_MAX_AGE", "CORS_METHODS"),
        *("DISABLE_ALL_ENDPOINT", "DISABLE_FEATURES_ENDPOINT", "DISABLE_INSTANCE_DATA_ENDPOINT"),
        *("DISABLE_METRICS_BATCH_ENDPOINT", "DISABLE_METRICS_ENDPOINT", "DISABLE_TOKENS_ENDPOINT"),
        *("CLIENT_KEEPALIVE_TIMEOUT", "EDGE_KEEPALIVE_TIMEOUT", "EDGE_REQUEST_TIMEOUT"),
        *("DYNAMIC", "INSTANCE_ID", "LOG_FORMAT", "TOKEN_REVALIDATION_INTERVAL_SECONDS"),
        *("UPSTREAM_SOCKET_TIMEOUT", "WORKERS"),
        *("REDIS_HOST", "REDIS_MODE", "REDIS_PASSWORD", "REDIS_PORT", "REDIS_SCHEME", "REDIS_SECURE"),
        *("REDIS_READ_CONNECTION_TIMEOUT_MILLISECONDS", "REDIS_URL", "REDIS_USERNAME", "S3_BUCKET_NAME"),
        *("REDIS_WRITE_CONNECTION_TIMEOUT_MILLISECONDS", "PROMETHEUS_PUSH_INTERVAL"),
        *("SENTRY_DEBUG", "SENTRY_ENABLE_LOGS", "SENTRY_TRACING_RATE", "TLS_SERVER_PORT"),
    )
)
"""Settings that a relay always applies or does not need."""

_PROXY = "a proxy in front of the relay does this"
_TOKEN = "SDKs send their token in Authorization; a proxy in front of the relay can rename a header"
_CERTIFICATE = "a proxy between the relay and its upstream does this"
_OFFLINE = "a relay has no offline mode: start it with the directory of one that has run"
_FIGURES = "Prometheus reads /metrics, with FLAGADMIN_RELAY_METRICS_TOKEN"

REFUSED = {
    **dict.fromkeys(("ALLOW_LIST", "BASE_PATH", "DENY_LIST", "REDIRECT_HTTP_TO_HTTPS", "TLS_ENABLE"), _PROXY),
    **dict.fromkeys(("TLS_SERVER_CERT", "TLS_SERVER_KEY"), _PROXY),
    "PROXY_TRUSTED_SERVERS": "a relay trusts the last entry of X-Forwarded-For and nothing else",
    **dict.fromkeys(("EDGE_AUTH_HEADER", "TOKEN_HEADER"), _TOKEN),
    "UPSTREAM_AUTH_HEADER": "tokens are sent in Authorization; FLAGADMIN_RELAY_UPSTREAM_HEADERS adds others",
    "PRETRUSTED_TOKENS": "the upstream says which tokens are valid",
    "SKIP_SSL_VERIFICATION": "certificates are always checked; SSL_CERT_FILE names an authority of your own",
    **dict.fromkeys(("PEM_CERT_FILE", "UPSTREAM_CERTIFICATE_FILE"), "SSL_CERT_FILE names it"),
    **dict.fromkeys(("PKCS8_CLIENT_CERTIFICATE_FILE", "PKCS8_CLIENT_KEY_FILE"), _CERTIFICATE),
    **dict.fromkeys(("PKCS12_IDENTITY_FILE", "PKCS12_PASSPHRASE"), _CERTIFICATE),
    **dict.fromkeys(("BOOTSTRAP_FILE", "CLIENT_TOKENS", "FRONTEND_TOKENS", "RELOAD_INTERVAL"), _OFFLINE),
    **dict.fromkeys(("PROMETHEUS_REMOTE_WRITE_URL", "PROMETHEUS_USERNAME"), _FIGURES),
    **dict.fromkeys(("PROMETHEUS_PASSWORD", "PROMETHEUS_USER_ID", "DATADOG_URL"), _FIGURES),
    **dict.fromkeys(("OTEL_COLLECTOR_URL", "SENTRY_DSN"), _FIGURES),
}
"""Unsupported features, and the alternatives."""

_OFF = ("", "0", "false")


def read_edge_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """A relay's settings by name. Raises ValueError for unsupported settings; ignores other variables."""
    used = {name: value for name, value in variables.items() if value.strip().lower() not in _OFF}
    if refused := sorted(used.keys() & REFUSED.keys()):
        reasons = "; ".join(f"{name}: {REFUSED[name]}" for name in refused)
        raise ValueError(f"A relay cannot take over these settings of Unleash Edge: {reasons}.")
    settings = {"HOST": "0.0.0.0"}  # noqa: S104 - where Edge listens unless it is told otherwise
    settings |= {TAKEN[name]: value for name, value in used.items() if name in TAKEN}
    return settings | {name: "1" for name in ("BEHIND_PROXY", "STRICT") if name in settings}


def parse_variables(lines: Iterable[str]) -> dict[str, str]:
    """The variables of an environment file. Raises ValueError for a line without the form NAME=value."""
    variables = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip().removeprefix("export ")
        if not text or text.startswith("#"):
            continue
        name, separator, value = text.partition("=")
        if not (separator and name.isidentifier()):
            raise ValueError(
                f"Line {number} must be NAME=value."
            )  # without the line, which may contain a token
        variables[name] = _drop_quotes(value.strip())
    return variables


def _drop_quotes(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value
