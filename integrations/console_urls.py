"""URL patterns of the integrations pages."""

from django.urls import path

from integrations.addons import pages
from integrations.calendar import pages as calendar
from integrations.mcp.pages import AgentsPage
from integrations.signals import pages as rule_pages
from integrations.signals import pages as signals

INTEGRATION = "integrations/<int:integration_id>/"
SOURCE = "signals/<int:source_id>/"
RULE = f"{SOURCE}rules/<int:rule_id>/"

urlpatterns = [
    path("access/agents/", AgentsPage.as_view(), name="agents"),
    path("integrations/", pages.IntegrationsPage.as_view(), name="integrations"),
    path(
        "projects/<str:project_id>/settings/integrations/",
        pages.ProjectIntegrationsPage.as_view(),
        name="project-integrations",
    ),
    path("integrations/new/<str:provider>", pages.NewIntegration.as_view(), name="integration-new"),
    path(INTEGRATION, pages.EditIntegration.as_view(), name="integration"),
    path(f"{INTEGRATION}deliveries/", pages.DeliveriesPage.as_view(), name="deliveries"),
    path(
        f"{INTEGRATION}deliveries/<int:delivery_id>/again", pages.SendAgain.as_view(), name="delivery-again"
    ),
    path(f"{INTEGRATION}deliveries/again", pages.SendAllAgain.as_view(), name="deliveries-again"),
    path(f"{INTEGRATION}test", pages.SendTest.as_view(), name="integration-test"),
    path(f"{INTEGRATION}signing-key", pages.NewSigningKey.as_view(), name="integration-signing-key"),
    path(f"{INTEGRATION}delete", pages.DeleteIntegration.as_view(), name="integration-delete"),
    path("calendar/", calendar.CalendarPage.as_view(), name="calendar"),
    path("calendar/delete", calendar.DeleteCalendar.as_view(), name="calendar-delete"),
    path("calendar/<str:token>.ics", calendar.CalendarFeedView.as_view(), name="calendar-feed"),
    path("signals/", signals.SignalsPage.as_view(), name="signals"),
    path("signals/new/", signals.NewSource.as_view(), name="signal-source-new"),
    path(SOURCE, signals.SourcePage.as_view(), name="signal-source"),
    path(f"{SOURCE}token", signals.NewToken.as_view(), name="signal-token"),
    path(f"{SOURCE}delete", signals.DeleteSource.as_view(), name="signal-source-delete"),
    path(f"{SOURCE}rules/new/", rule_pages.NewRule.as_view(), name="signal-rule-new"),
    path(RULE, rule_pages.EditRule.as_view(), name="signal-rule"),
    path(f"{RULE}try", rule_pages.TryRule.as_view(), name="signal-rule-try"),
    path(f"{RULE}delete", rule_pages.DeleteRule.as_view(), name="signal-rule-delete"),
]
