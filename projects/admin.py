"""Registers the admin classes of every package in this app; Django autodiscovers only this module."""

from projects.applications import admin as applications
from projects.context_fields import admin as context_fields
from projects.environments import admin as environments
from projects.flags import admin as flags
from projects.members import admin as members
from projects.projects import admin as projects
from projects.segments import admin as segments
from projects.strategies import admin as strategies
from projects.tag_types import admin as tag_types
from projects.tokens import admin as tokens
