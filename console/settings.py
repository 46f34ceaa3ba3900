"""Django's settings, one file. The broker's own come from BrokerConfig; what concerns only the console is read here, by four readers."""

import ipaddress
import logging
import os
import secrets
import socket
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from broker_core.config import BrokerConfig
from console.oidc_settings import Settings

BASE_DIR = Path(__file__).resolve().parent.parent
BROKER = BrokerConfig.from_env()


# -- readers ------------------------------------------------------------------------------------------------------------------------
def env_text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def env_flag(name: str, default: bool = False) -> bool:
    text = env_text(name).lower()
    if text not in ("", "true", "1", "yes", "on", "false", "0", "no", "off"):
        raise ImproperlyConfigured(f"{name} is {text!r}, but must be true or false.")
    return text in ("true", "1", "yes", "on") if text else default


def env_list(name: str) -> list[str]:
    """Parts separated by commas."""
    return [part.strip() for part in env_text(name).split(",") if part.strip()]


def proxies(name: str, https: bool) -> list[str]:
    """IP addresses and networks, separated by commas; this machine if there is a proxy and nobody says where. Without one, nobody."""
    for given in env_list(name):
        try:
            ipaddress.ip_network(given)
        except ValueError:
            raise ImproperlyConfigured(f"{name} names {given!r}, but must name IP addresses or networks, separated by commas.") from None
    return (env_list(name) or ["127.0.0.1", "::1"]) if https else []


def single_sign_on() -> Settings | None:
    """From SURETY_OIDC_*. Every role has the groups whose members get it; whoever is in none of them stays outside."""
    given = {name: env_text(f"SURETY_OIDC_{name}") for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET")}
    if not any(given.values()):
        return None
    if missing := [name for name, value in given.items() if not value]:
        raise ImproperlyConfigured(f"SURETY_OIDC_{missing[0]} is missing: single sign-on needs an issuer, a client id and a client secret.")
    issuer = urlsplit(given["ISSUER"])
    if issuer.scheme != "https" and not (issuer.scheme == "http" and issuer.hostname in ("localhost", "127.0.0.1", "::1")):
        raise ImproperlyConfigured("SURETY_OIDC_ISSUER must be an https URL: who could change what the provider says could be anybody.")
    variables = ("administrator", "ADMINISTRATORS"), ("operator", "OPERATORS"), ("viewer", "VIEWERS"), ("restricted", "RESTRICTED")
    roles = tuple((role, frozenset(env_list(f"SURETY_OIDC_{name}"))) for role, name in variables)
    if not any(groups for _, groups in roles):
        raise ImproperlyConfigured("SURETY_OIDC_ADMINISTRATORS, _OPERATORS, _VIEWERS or _RESTRICTED must name a group, or nobody could log in.")
    claims = (env_text("SURETY_OIDC_NAME_CLAIM", "preferred_username"), env_text("SURETY_OIDC_GROUPS_CLAIM", "groups"))
    return Settings(given["ISSUER"], given["CLIENT_ID"], given["CLIENT_SECRET"], *claims, roles)


def secret_key(home: Path) -> str:
    """SURETY_SECRET_KEY, or one made at the first start and kept where only the owner reads it. Written aside and linked into place,
    so that of two processes that start at once both use the same."""
    if given := env_text("SURETY_SECRET_KEY"):
        return given
    kept = home / "secret_key"
    if not kept.exists():
        home.mkdir(parents=True, exist_ok=True)
        aside = home / f".secret_key.{os.getpid()}"
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(64))
        try:
            os.link(aside, kept)
        except FileExistsError:
            pass  # the other process was first; its key holds
        finally:
            aside.unlink()
    return kept.read_text().strip()


def database(url: str) -> dict[str, object]:
    """Django's form of a libpq URI; what Django has no key for (sslmode, ...) goes to libpq as it is."""
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except ProgrammingError:
        given = {"host": "@"}
    if "@" in given.get("host", ""):  # libpq's own words may hold a piece of the password
        raise ImproperlyConfigured("DATABASE_URL is no URI as libpq reads it: in its user and password, write @ as %40, : as %3A and / as %2F.")
    named = {key: given.pop(name, "") for key, name in (("NAME", "dbname"), ("USER", "user"), ("HOST", "host"), ("PORT", "port"))}
    return {
        "ENGINE": "django.db.backends.postgresql",
        **named,
        "PASSWORD": given.pop("password", ""),
        "CONN_HEALTH_CHECKS": True,  # a server that came back gets new connections, not errors from old ones
        # Under ASGI every request has a thread of its own, so connections are kept in a pool, not by thread. Twelve: one for each
        # request that is dealt with (live/admission.py), the others for the live feed and its sockets; PostgreSQL has a hundred.
        "OPTIONS": {
            "connect_timeout": "3",
            **given,
            "application_name": "surety console",
            "pool": {"min_size": 0, "max_size": 12, "timeout": 2},
        },
    }


JAVA_HOME = env_text("JAVA_HOME", "")
"""Where Java is, which the data pipeline needs; empty: on the PATH."""

# -- security -----------------------------------------------------------------------------------------------------------------------
SECRET_KEY = secret_key(BROKER.home)
DEBUG = False
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", socket.gethostname(), BROKER.bind, *env_list("SURETY_ALLOWED_HOSTS")]
CSRF_TRUSTED_ORIGINS = env_list("SURETY_TRUSTED_ORIGINS")
HTTPS = env_flag("SURETY_HTTPS")
"""True: the console is reached by HTTPS only, through a proxy that says so in X-Forwarded-Proto, and who asks in X-Forwarded-For."""
TRUSTED_PROXIES = proxies("SURETY_TRUSTED_PROXIES", HTTPS)
"""Only these may say so (asgi.py). Nobody else: who asks is what the login's throttle counts by and what the audit keeps."""
if HTTPS:
    SECURE_HSTS_SECONDS = 31_536_000
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "surety_session", "surety_csrf"
CSRF_FAILURE_VIEW = "console.pages.login.forged"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
DATA_UPLOAD_MAX_NUMBER_FIELDS = 100
PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL, LOGIN_REDIRECT_URL, LOGOUT_REDIRECT_URL = "login", "overview", "login"
LOGIN_ATTEMPTS_MAX, LOGIN_ATTEMPTS_MAX_ADDRESS, LOGIN_WINDOW_SECONDS = 5, 30, 300
"""Failures of one name from one address, and of one address, in the window; then the answer is 429."""
METRICS_TOKEN = env_text("SURETY_METRICS_TOKEN")
"""Whoever sends it as a bearer token may read /metrics; without one only loopback may."""
OIDC = single_sign_on()
"""None: nobody logs in by single sign-on."""
CONTROL_WAIT_SECONDS = 5.0
"""A page waits so long for the node's answer. A node that is alive answers within its next poll; a standby takes over within five."""
LOOK_WAIT_SECONDS = 2.0
"""For what the node is only asked; its answer comes within some ms."""
COMMAND_URL, COMMAND_TOKEN = env_text("SURETY_URL"), env_text("SURETY_TOKEN")
"""Of the console that `manage.py mq` talks to; empty: this installation, without a token."""
ADMIN_USER, ADMIN_PASSWORD = env_text("SURETY_ADMIN_USER", "admin"), env_text("SURETY_ADMIN_PASSWORD")

# -- application --------------------------------------------------------------------------------------------------------------------
DATABASES = {"default": database(BROKER.database_url)}
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "rest_framework",
    "django_celery_beat",
    "console",
]
MIDDLEWARE = [
    "console.security.security_headers",
    "console.live.admission.refused_are_told",
    "django.middleware.security.SecurityMiddleware",
    "console.static_files.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "console.pages.login.LoginRequired",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "console.pages.telling.Unshown",
]
ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.pages.navigation.frame",
            ],
            "libraries": {"quantities": "console.quantities", "console": "console.pages.tags"},
        },
    }
]
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
STATIC_URL = "/static/"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "console.static_files.Versioned"},
}
WHITENOISE_USE_FINDERS = True  # straight from the packages: no collectstatic step between a clone and a page
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DJANGO_CELERY_BEAT_TZ_AWARE = True
USE_TZ, TIME_ZONE, LANGUAGE_CODE, USE_I18N = True, "UTC", "en", False
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["console.api.authentication.Bearer", "rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["console.api.parsing.JSONBody"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "console.api.problems.handler",
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Surety",
    "DESCRIPTION": "What operators do, by machine. Every refusal is a problem document (RFC 9457); its codes are at /api/v1/problems.",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_PATCH": False,
    "POSTPROCESSING_HOOKS": ["console.api.documented.close_bodies"],
}


def is_news(record: logging.LogRecord) -> bool:
    """False for the answer "not ready": whoever polls it reads the reasons there, and a start would fill the terminal with them."""
    return not (getattr(record, "status_code", None) == 503 and record.args == ("Service Unavailable", "/health/ready"))


def is_no_page_that_listens(record: logging.LogRecord) -> bool:
    """False for what uvicorn says of every WebSocket that is opened and closed: three lines for every page that somebody looks at."""
    return not (record.levelno == logging.INFO and (record.msg in ("connection open", "connection closed") or '"WebSocket ' in str(record.msg)))


LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}, "json": {"()": "broker_core.logs.JsonLines"}},
    "filters": {
        "news": {"()": "django.utils.log.CallbackFilter", "callback": is_news},
        "no page that listens": {"()": "django.utils.log.CallbackFilter", "callback": is_no_page_that_listens},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json" if BROKER.log_json else "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "django.request": {"filters": ["news"]},
        "uvicorn.error": {"filters": ["no page that listens"]},
    },
}
if BROKER.log_json:  # the web server's own lines, which it has arranged before Django is there
    LOGGING["loggers"] |= {"uvicorn": {"handlers": ["stderr"], "level": "INFO", "propagate": False}, "uvicorn.access": {"propagate": False}}
