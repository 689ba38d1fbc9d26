"""Date formats for pages without our own templates: the admin site."""
