"""The admin site's pages about projects, flags and what they are made of."""

from projects.applications import admin as applications
from projects.flags import admin as flags
from projects.projects import admin as projects
from projects.segments import admin as segments
from projects.tokens import admin as tokens

__all__ = ["applications", "flags", "projects", "segments", "tokens"]
