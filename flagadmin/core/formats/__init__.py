"""How Django writes times where no template does: in the admin site."""
