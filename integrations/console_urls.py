"""URL patterns of the integrations pages."""

from django.urls import path

from integrations.addons import pages

INTEGRATION = "integrations/<int:integration_id>/"

urlpatterns = [
    path("integrations/", pages.IntegrationsPage.as_view(), name="integrations"),
    path("integrations/new/<str:provider>", pages.NewIntegration.as_view(), name="integration-new"),
    path(INTEGRATION, pages.EditIntegration.as_view(), name="integration"),
    path(f"{INTEGRATION}deliveries/", pages.DeliveriesPage.as_view(), name="deliveries"),
    path(
        f"{INTEGRATION}deliveries/<int:delivery_id>/again", pages.SendAgain.as_view(), name="delivery-again"
    ),
    path(f"{INTEGRATION}test", pages.SendTest.as_view(), name="integration-test"),
    path(f"{INTEGRATION}signing-key", pages.NewSigningKey.as_view(), name="integration-signing-key"),
    path(f"{INTEGRATION}delete", pages.DeleteIntegration.as_view(), name="integration-delete"),
]
