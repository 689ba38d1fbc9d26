"""Template filter for links to applications: ``{% load applications %}{{ name|application_url }}``."""

from django import template

from projects.console import application_url

register = template.Library()

register.filter("application_url", application_url)
