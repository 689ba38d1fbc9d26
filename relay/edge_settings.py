"""Reads the settings of the open-source Unleash Edge, so that a relay can take its place.

Edge has no file of its own: it is set up by variables, each named as its option (`--upstream-url`, UPSTREAM_URL), which
usually stand in an environment file. docs/relay.md has them all in a table.
"""

from collections.abc import Iterable, Mapping

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
"""Edge's variables, and those of a relay that mean the same."""

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
"""The settings that a relay applies anyway, or has nothing for."""

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
"""The missing features, and what to do instead."""

_OFF = ("", "0", "false")


def read_edge_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """A relay's settings by name. Raises ValueError for what a relay cannot do; other variables are ignored."""
    used = {name: value for name, value in variables.items() if value.strip().lower() not in _OFF}
    if refused := sorted(used.keys() & REFUSED.keys()):
        reasons = "; ".join(f"{name}: {REFUSED[name]}" for name in refused)
        raise ValueError(f"A relay cannot take over these settings of Unleash Edge: {reasons}.")
    settings = {"HOST": "0.0.0.0"}  # noqa: S104 - where Edge listens unless it is told otherwise
    settings |= {TAKEN[name]: value for name, value in used.items() if name in TAKEN}
    return settings | {name: "1" for name in ("BEHIND_PROXY", "STRICT") if name in settings}


def parse_variables(lines: Iterable[str]) -> dict[str, str]:
    """The variables of an environment file. Raises ValueError for a line that is not NAME=value."""
    variables = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip().removeprefix("export ")
        if not text or text.startswith("#"):
            continue
        name, separator, value = text.partition("=")
        if not (separator and name.isidentifier()):
            raise ValueError(f"Line {number} must be NAME=value.")  # without it: it may be a token
        variables[name] = _drop_quotes(value.strip())
    return variables


def _drop_quotes(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value
