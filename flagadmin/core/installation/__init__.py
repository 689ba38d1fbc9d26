"""The installation as a whole: its id, maintenance mode, and the settings that can change while it runs."""
