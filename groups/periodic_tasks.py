"""Tasks for accounts and logins that `manage.py serve` runs at start-up and every hour."""

import logging

from flagadmin.core.server import background_tasks
from groups.login.links import create_setup_link, forget_old_links
from groups.login.passwords import forget_old_attempts
from groups.sessions.store import forget_ended_sessions

log = logging.getLogger("flagadmin.setup")


def offer_setup_link() -> None:
    """Logs a link for creating the first account, if there is none. Anyone who reads the log can use it."""
    if link := create_setup_link():
        log.warning(
            "No account exists yet. Create the first one at %s%s (works once, for a day)",
            background_tasks.public_url,
            link,
        )


def delete_expired() -> None:
    forget_old_attempts()
    forget_old_links()
    forget_ended_sessions()
