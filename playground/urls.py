from playground.api import urlpatterns

__all__ = ["urlpatterns"]
