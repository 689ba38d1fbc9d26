"""Django settings, read from environment variables (see docs/reference/settings.md) and safe by default."""

from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from flagadmin import __version__
from flagadmin.core import env as environment
from flagadmin.core.db import data_dir as datadir
from groups.login.sign_on.settings import password_login, read_sign_on_settings

PACKAGE = Path(__file__).resolve().parent
IN_CHECKOUT = (PACKAGE.parent / "manage.py").exists()  # otherwise installed as a package
TEMPLATES_DIR = PACKAGE.parent / "templates" if IN_CHECKOUT else PACKAGE / "templates"

DEBUG = environment.flag("FLAGADMIN_DEBUG")
DATABASE_URL = environment.text("DATABASE_URL")

if IN_CHECKOUT:
    default_data_dir = PACKAGE.parent / ".flagadmin"
else:  # the XDG base directory specification's place for data
    default_data_dir = Path(environment.text("XDG_DATA_HOME") or "~/.local/share") / "flagadmin"

try:
    DATA_DIR = datadir.make_data_dir(Path(environment.text("FLAGADMIN_DATA_DIR") or default_data_dir))
    SECRET_KEY = environment.text("SECRET_KEY")
    if not SECRET_KEY:
        if DATABASE_URL:
            raise ImproperlyConfigured(
                "DATABASE_URL is set, so SECRET_KEY must be set too:"
                " every machine that uses this database needs the same one."
            )
        SECRET_KEY = datadir.read_secret_key(DATA_DIR)
except (OSError, ValueError) as error:
    raise ImproperlyConfigured(str(error)) from error

# Earlier keys: data signed or encrypted with them stays valid.
SECRET_KEY_FALLBACKS = environment.names("SECRET_KEY_FALLBACKS")

# Hosts and URLs -----------------------------------------------------------------------------------------

# The base URL of links in pages and logs, without a trailing slash. If empty, links use the request's host.
PUBLIC_URL = environment.origin("FLAGADMIN_PUBLIC_URL")
ALLOWED_HOSTS = [
    *environment.names("FLAGADMIN_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]"),
    *filter(None, [urlsplit(PUBLIC_URL).hostname]),
]
HTTPS = environment.flag("FLAGADMIN_HTTPS", default=PUBLIC_URL.startswith("https://"))
# Origins allowed to call the frontend API from a browser (CORS).
FRONTEND_API_ORIGINS = environment.names("FLAGADMIN_FRONTEND_ORIGINS", "*")
CSRF_TRUSTED_ORIGINS = [*filter(None, [PUBLIC_URL]), *environment.names("FLAGADMIN_CSRF_TRUSTED_ORIGINS")]

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_SSL_REDIRECT = HTTPS and environment.flag("FLAGADMIN_HTTPS_REDIRECT", default=True)
SECURE_REDIRECT_EXEMPT = [r"^health(z)?$", r"^ready(z)?$", r"^metrics$"]  # probed behind the TLS proxy
SECURE_HSTS_SECONDS = environment.integer("FLAGADMIN_HSTS_SECONDS", 31_536_000) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS and environment.flag("FLAGADMIN_HSTS_SUBDOMAINS")
# Off by default: it affects other hosts of the domain.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
# Only behind a proxy that always sets X-Forwarded-Proto itself: otherwise any client could claim HTTPS.
BEHIND_PROXY = environment.flag("FLAGADMIN_BEHIND_PROXY")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None

# Limits -------------------------------------------------------------------------------------------------

BODY_LIMIT = environment.integer("FLAGADMIN_BODY_LIMIT", 1_000_000, at_least=1_000)  # bytes, inflated
IMPORT_BODY_LIMIT = environment.integer("FLAGADMIN_IMPORT_BODY_LIMIT", 64_000_000, at_least=1_000)
COMPARE_BODY_LIMIT = environment.integer("FLAGADMIN_COMPARE_BODY_LIMIT", 16_000_000, at_least=1_000)
# Tables of users and times from the company's own PostgreSQL (playground/outcomes/sql.py).
QUERIES = environment.text("FLAGADMIN_QUERIES")  # the path of a YAML file
QUERIES_DATABASE_URL = environment.text("FLAGADMIN_QUERIES_DATABASE_URL")
QUERIES_SECONDS = environment.integer("FLAGADMIN_QUERIES_SECONDS", 600, at_least=1, at_most=86_400)
# Larger bodies are imported in a separate process, which would cost smaller ones more than it saves.
IMPORT_PROCESS_BYTES = environment.integer("FLAGADMIN_IMPORT_PROCESS_BYTES", 8_000_000, at_least=0)
# Django's limit applies after BODY_LIMIT and must not be lower.
DATA_UPLOAD_MAX_MEMORY_SIZE = max(BODY_LIMIT, IMPORT_BODY_LIMIT, COMPARE_BODY_LIMIT)
FILE_UPLOAD_MAX_MEMORY_SIZE = DATA_UPLOAD_MAX_MEMORY_SIZE
# Limits of an installation and of a flag (projects/actions.py).
FLAGS_LIMIT = environment.positive("FLAGADMIN_FLAGS_LIMIT", 200_000)  # not counting archived flags
FLAG_ENVIRONMENT_STRATEGIES_LIMIT = environment.positive("FLAGADMIN_FLAG_ENVIRONMENT_STRATEGIES", 30)
STRATEGY_CONSTRAINTS_LIMIT = environment.positive("FLAGADMIN_STRATEGY_CONSTRAINTS", 30)
STRATEGY_SEGMENTS_LIMIT = environment.positive("FLAGADMIN_STRATEGY_SEGMENTS", 5)
CONSTRAINT_VALUES_LIMIT = environment.positive("FLAGADMIN_CONSTRAINT_VALUES", 250)
SEGMENT_VALUES_LIMIT = environment.positive("FLAGADMIN_SEGMENT_VALUES", 1_000)
# Values of an uploaded list; more would make SDKs slow.
SEGMENT_LIST_LIMIT = environment.integer("FLAGADMIN_SEGMENT_LIST", 10_000, at_least=1, at_most=100_000)
CONSTRAINT_VALUE_LENGTH_LIMIT = environment.positive("FLAGADMIN_CONSTRAINT_VALUE_LENGTH", 100)
# Hourly limits on the rows that SDK reports create, for each worker (projects/applications/sdk_versions.py).
REPORT_APPLICATIONS_LIMIT = environment.positive("FLAGADMIN_REPORT_APPLICATIONS", 500)  # for each token
REPORT_INSTANCES_LIMIT = environment.positive("FLAGADMIN_REPORT_INSTANCES", 5_000)  # for each application
# For each flag of an application.
REPORT_VARIANTS_LIMIT = environment.positive("FLAGADMIN_REPORT_VARIANTS", 100)
IMPACT_METRICS_LIMIT = environment.positive("FLAGADMIN_IMPACT_METRICS", 100)
PROMETHEUS_URL = environment.text("FLAGADMIN_PROMETHEUS_URL")
IMPACT_POINTS_LIMIT = environment.integer("FLAGADMIN_IMPACT_POINTS", 2_000_000, at_least=0)  # rows
IMPACT_SERIES_LIMIT = environment.positive("FLAGADMIN_IMPACT_SERIES", 1_000)  # for each metric
FLAG_LINKS_LIMIT = environment.positive("FLAGADMIN_FLAG_LINKS", 10)
GUARD_PRODUCTION_TOKENS = environment.flag("FLAGADMIN_GUARD_PRODUCTION_TOKENS")
PLAYGROUND_MAX_EVALUATIONS = environment.positive("FLAGADMIN_PLAYGROUND_MAX_EVALUATIONS", 50_000)
USER_RESULTS_BYTES = environment.positive("FLAGADMIN_USER_RESULTS_BYTES", 4_000_000_000)
# For each worker.
SNAPSHOT_CACHE_BYTES = environment.integer("FLAGADMIN_SNAPSHOT_CACHE_BYTES", 600_000_000)
CLIENT_FEATURES_CACHE_BYTES = environment.integer("FLAGADMIN_CLIENT_FEATURES_CACHE_BYTES", 256_000_000)
APPLICATION_INSTANCE_WINDOW = timedelta(days=environment.positive("FLAGADMIN_APPLICATION_INSTANCE_DAYS", 7))
APPLICATION_INSTANCES_LISTED = environment.positive("FLAGADMIN_APPLICATION_INSTANCES", 100)

# Networks without public addresses that integrations may call, for example 10.0.0.0/8; TLS is optional there.
INTEGRATION_NETWORKS = environment.networks("FLAGADMIN_INTEGRATION_NETWORKS")
# The prefix of message titles to Datadog and Teams, for filtering.
INTEGRATION_NAME = environment.text("FLAGADMIN_INTEGRATION_NAME", "flagadmin")

# An additional destination for the audit log, as JSON lines: stdout, a path, or a URL of syslog.
AUDIT_LOG = environment.log_target("FLAGADMIN_AUDIT_LOG")
# Days after which events about accounts and the like are removed; 0: never (integrations/audit_log.py).
AUDIT_DAYS = environment.integer("FLAGADMIN_AUDIT_DAYS", 0)
# Days for which former versions of flags and segments are kept; 0: for ever (projects/history/retention.py).
VERSIONS_DAYS = environment.integer("FLAGADMIN_VERSIONS_DAYS", 0)

# E-mail. Without a server, none is sent.
_MAIL_SERVER = environment.mail_server("FLAGADMIN_SMTP_URL")
EMAIL_HOST, EMAIL_PORT = _MAIL_SERVER.host, _MAIL_SERVER.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _MAIL_SERVER.user, _MAIL_SERVER.password
EMAIL_USE_TLS, EMAIL_USE_SSL = _MAIL_SERVER.starttls, _MAIL_SERVER.tls
DEFAULT_FROM_EMAIL = environment.text("FLAGADMIN_MAIL_FROM", "flagadmin@localhost")

# Serving ------------------------------------------------------------------------------------------------

# For each worker. Many, because most wait, for example SDK reports for the commit of their batch.
SERVER_THREADS = environment.positive("FLAGADMIN_THREADS", 32)
# The token for reading /metrics. Without it, metrics are off.
METRICS_TOKEN = environment.secret("FLAGADMIN_METRICS_TOKEN")
STREAMS_LIMIT = environment.integer("FLAGADMIN_STREAMS", 5_000, at_least=0)  # open at once, for each worker

# Databases ----------------------------------------------------------------------------------------------

# Seconds to wait for a connection before responding 503.
DATABASE_SECONDS = environment.positive("FLAGADMIN_DATABASE_SECONDS", 3)
# Seconds that a commit may wait for a synchronous standby before responding 503.
COMMIT_SECONDS = environment.positive("FLAGADMIN_COMMIT_SECONDS", 5)
# Seconds for which SDKs are answered from memory while the database cannot be reached.
SERVE_STALE_SECONDS = environment.integer("FLAGADMIN_SERVE_STALE_SECONDS", 300)

_POOL: dict[str, Any] = {
    "min_size": 1,
    "max_size": SERVER_THREADS + 2,
    "timeout": DATABASE_SECONDS,
    "max_lifetime": 3600,
    # Seconds of connection attempts, with growing pauses. The next request starts again: with the default of five
    # minutes, it would wait for a pause as long as the previous outage.
    "reconnect_timeout": 3,
    # Seconds after which an idle connection is closed, so that connections opened in a burst are soon released for
    # other users of the database server.
    "max_idle": 1,
}


DATABASES: dict[str, dict[str, Any]] = {
    "default": environment.database(DATABASE_URL, _POOL)
    if DATABASE_URL
    else {
        "ENGINE": "flagadmin.core.db.bundled",
        "NAME": "flagadmin",
        "OPTIONS": {
            "data_dir": DATA_DIR,
            "durable": environment.flag("FLAGADMIN_DATABASE_DURABLE", default=True),
            "pool": dict(_POOL),
        },
    }
}
# Only for SDK endpoints, whose responses may lag behind by the replication delay.
if replica_url := environment.text("DATABASE_REPLICA_URL"):
    DATABASES["replica"] = {**environment.database(replica_url, _POOL), "TEST": {"MIRROR": "default"}}
    DATABASES["replica"]["OPTIONS"]["pool"]["timeout"] = 1  # after that, the primary is asked

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Application --------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "flagadmin.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "django_filters",
    "django_htmx",
    "pgtrigger",
    # Without "allauth" itself, which has the templates: so it cannot render pages of its own.
    "allauth.account",
    "allauth.socialaccount",
    "allauth.mfa",
    "allauth.usersessions",
    "flagadmin",
    "flagadmin.core",
    "flagadmin.core.installation",
    "flagadmin.core.audit",
    "groups",
    "projects",
    "playground",
    "releases",
    "sdk",
    "importer",
    "integrations",
    "flagadmin.console",
]

MIDDLEWARE = [
    "flagadmin.core.http.middleware.RequestMetricsMiddleware",
    "flagadmin.core.http.middleware.RequestIdMiddleware",
    "flagadmin.core.http.middleware.OutageMiddleware",
    "flagadmin.core.http.middleware.SecurityHeadersMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "flagadmin.core.http.middleware.ErrorMiddleware",
    "flagadmin.core.http.request_bodies.BoundedBodyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "flagadmin.core.http.middleware.LengthMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "groups.sessions.store.SessionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "groups.second_factor.required.RequireSecondFactorMiddleware",
]

ROOT_URLCONF = "flagadmin.urls"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "flagadmin.core.template_backend.FreedContexts",
        "DIRS": [TEMPLATES_DIR],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "flagadmin.console.navigation.navigation",
            ],
        },
    },
]

# Users and sessions -------------------------------------------------------------------------------------

AUTH_USER_MODEL = "groups.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
    "groups.login.passwords.CuttingBcryptHasher",  # for people who moved here
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "start"
CSRF_FAILURE_VIEW = "groups.login.pages.csrf_failure"
# allauth handles the steps after the password: second factors and sessions. Accounts are ours.
ACCOUNT_ADAPTER = "groups.login.flow.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
# Our own throttle counts in the database, for all workers (groups/login/passwords.py).
ACCOUNT_RATE_LIMITS = MFA_RATE_LIMITS = False
MFA_ADAPTER = "groups.second_factor.passkeys.MFAAdapter"
REQUIRE_SECOND_FACTOR = environment.choice("FLAGADMIN_REQUIRE_SECOND_FACTOR", "off", "admins", "all")
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
SOCIALACCOUNT_ADAPTER = "groups.login.sign_on.adapter.SocialAccountAdapter"
SIGN_ON = read_sign_on_settings()
PASSWORD_LOGIN = password_login(SIGN_ON)
# Days for which a new account counts as the same person as its creator.
NEW_ACCOUNT_DAYS = min(environment.integer("FLAGADMIN_NEW_ACCOUNT_DAYS", 7), 36_500)
# Counted from login, regardless of use: roles from the provider's claim change at the next login.
SESSION_COOKIE_AGE = 3600 * environment.positive("FLAGADMIN_SESSION_HOURS", 14 * 24)

# Language, time, static files ---------------------------------------------------------------------------

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
FORMAT_MODULE_PATH = "flagadmin.core.formats"  # Django has its own formats for each language

STATIC_URL = "/static/"
# `serve` collects them (flagadmin/core/server/static_files.py); with DEBUG they are served from the source.
STATIC_ROOT: Path | None = DATA_DIR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "flagadmin.core.server.static_files.JoinedFilesFinder",
]
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = ("png", "map")

# API ----------------------------------------------------------------------------------------------------

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "groups.authentication.ApiKeyAuthentication",
        "groups.authentication.ConsoleSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["groups.authentication.IsAdminCaller"],
    "DEFAULT_RENDERER_CLASSES": ["flagadmin.core.http.request_bodies.OrjsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["flagadmin.core.http.request_bodies.StrictJSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "flagadmin.core.http.request_bodies.AlwaysJson",
    "DEFAULT_SCHEMA_CLASS": "flagadmin.core.http.openapi.ApiSchema",
    "EXCEPTION_HANDLER": "flagadmin.core.http.error_responses.exception_handler",
    "LIST_SERIALIZER_ERRORS_AS_DICT": True,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "TEST_REQUEST_RENDERER_CLASSES": ["flagadmin.core.http.request_bodies.OrjsonRenderer"],
    "UNAUTHENTICATED_USER": None,
}

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "flagadmin",
    "DESCRIPTION": (
        "Feature flag administration: evaluate, inspect, import and delete.\n\n"
        "Send the documented types. A number is also accepted for a string, a string of digits for a number, and "
        '`"true"`, `"false"`, 0 and 1 for a boolean. Every list, object and string in a body has a maximum size.'
    ),
    "VERSION": __version__,
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "flagadmin.core.http.openapi.main_operations_first",
    ],
    "GET_LIB_DOC_EXCLUDES": "flagadmin.core.http.openapi.list_undescribing_classes",
    "CAMELIZE_NAMES": True,  # path parameters use the specification's names
    # A console session works too, for "Try it", but clients send tokens.
    "AUTHENTICATION_WHITELIST": ["groups.authentication.ApiKeyAuthentication"],
}

# Logs ---------------------------------------------------------------------------------------------------

ACCESS_LOG = environment.flag("FLAGADMIN_ACCESS_LOG")  # a line for each request

LOG_LEVEL = environment.text("FLAGADMIN_LOG_LEVEL", "INFO").upper()
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {"()": "flagadmin.core.http.logs.JsonFormatter"},
        "plain": {"()": "flagadmin.core.http.logs.PlainFormatter"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "plain" if DEBUG else "json",
            "level": LOG_LEVEL,  # also for loggers with a level of their own
        },
    },
    "filters": {"not_told": {"()": "flagadmin.core.http.logs.NotToldFilter"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        # Django's default handlers would log everything twice.
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        "django.server": {"handlers": [], "level": "INFO", "propagate": True},
        # flagadmin.core.http.error_responses logs client errors with their reason and id.
        "django.request": {
            "handlers": [],
            "level": "ERROR",
            "filters": ["not_told"],
            "propagate": True,
        },
        "psycopg.pool": {"level": "ERROR"},
    },
}
