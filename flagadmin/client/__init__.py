"""Commands that work with a server from another machine, such as CI. They need neither a database nor Django."""

NAMES = ("pull", "plan", "apply", "stale", "references")
