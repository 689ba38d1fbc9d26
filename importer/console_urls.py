"""URLs of the console's import and export pages."""

from django.urls import path

from importer.pages.if_imported import EvaluatePage, WhoChangesPage
from importer.pages.move import MovePage, MoveRunPage, SourceHistoryPage
from importer.pages.run import ProgressPart, PromotePage, RunPage, UndoPage
from importer.pages.upload import ExportFile, HistoryPage, UploadPage

urlpatterns = [
    path("import/", UploadPage.as_view(), name="import"),
    path("import/<uuid:run_id>/", RunPage.as_view(), name="import-run"),
    path("import/<uuid:run_id>/undo", UndoPage.as_view(), name="import-undo"),
    path("import/<uuid:run_id>/progress/", ProgressPart.as_view(), name="import-progress"),
    path("import/<uuid:run_id>/evaluate/", EvaluatePage.as_view(), name="import-evaluate"),
    path("import/<uuid:run_id>/who-changes/", WhoChangesPage.as_view(), name="import-who-changes"),
    path("projects/<str:project_id>/promote", PromotePage.as_view(), name="promote"),
    path("move/", MovePage.as_view(), name="move"),
    path("move/history/", SourceHistoryPage.as_view(), name="source-history"),
    path("move/<uuid:run_id>/", MoveRunPage.as_view(), name="move-run"),
    path("imports/", HistoryPage.as_view(), name="imports"),
    path("projects/<str:project_id>/export", ExportFile.as_view(), name="project-export"),
]
