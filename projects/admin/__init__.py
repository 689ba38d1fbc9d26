"""The admin site's pages about projects, flags and what they are made of."""

from projects.admin import flags, observed, projects, tokens, vocabulary

__all__ = ["flags", "observed", "projects", "tokens", "vocabulary"]
