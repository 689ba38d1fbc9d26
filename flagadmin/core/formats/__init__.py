"""Date formats for pages without templates of ours: the admin site."""
