"""/api/admin/…: users, groups, roles, service accounts and personal tokens."""

from flagadmin.core.http.routers import Router
from groups.groups.api import GroupViewSet
from groups.people.api import (
    CandidateViewSet,
    InactivePeopleViewSet,
    ServiceAccountTokenViewSet,
    ServiceAccountViewSet,
    UserViewSet,
)
from groups.people.me_api import FeedbackViewSet, MeViewSet, PersonalTokenViewSet
from groups.roles.api import PermissionViewSet, RoleViewSet
from groups.scim.api import ScimSettingsViewSet
from groups.sign_up.api import InviteLinkViewSet

router = Router()
router.register("groups", GroupViewSet)
router.register("roles", RoleViewSet)
router.register("permissions", PermissionViewSet)
router.register("invite-link/tokens", InviteLinkViewSet)
router.register("scim-settings", ScimSettingsViewSet)
router.register("", MeViewSet)
router.register("", FeedbackViewSet)
router.register("user/tokens", PersonalTokenViewSet)
router.register(
    "user-admin/inactive", InactivePeopleViewSet
)  # first: a later pattern also matches "inactive"
router.register("user-admin", CandidateViewSet)
router.register("user-admin", UserViewSet)
router.register("service-account", ServiceAccountViewSet)
router.register("service-account/<str:account_id>/token", ServiceAccountTokenViewSet)

urlpatterns = router.urls
