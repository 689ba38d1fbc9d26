"""The installation as a whole: its id, maintenance mode, and the settings that are changed while it runs."""
