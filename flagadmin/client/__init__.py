"""Commands that work with a server from another machine, such as CI's: they need no database and no Django."""

NAMES = ("pull", "plan", "apply", "stale", "references")
