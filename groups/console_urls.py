"""URLs of the console pages for accounts, groups, roles and login."""

from typing import Any

from django.urls import URLPattern, path

from groups.groups import pages as groups
from groups.login import links
from groups.login import pages as login
from groups.login.sign_on import pages as sign_on
from groups.login.sign_on import pages as sign_on_admin
from groups.login.sign_on.pages import BackChannelLogout
from groups.people import edit_pages, own_account_pages, pages
from groups.people.console import PEOPLE, SERVICE
from groups.roles import pages as roles
from groups.scim import pages as scim
from groups.second_factor import login_pages
from groups.second_factor import login_pages as second_factor_login
from groups.second_factor import pages as passkey_pages
from groups.second_factor import pages as second_factor
from groups.second_factor import pages as second_factor_admin
from groups.sessions import pages as sessions
from groups.sign_up import pages as sign_up


def make_account_urls(prefix: str, kind: dict[str, Any]) -> list[URLPattern]:
    """The URLs for one kind of account: users or service accounts."""
    name = kind["url_name"]
    return [
        path(prefix, pages.AccountsPage.as_view(**kind), name=kind["list_name"]),
        path(f"{prefix}new/", edit_pages.NewAccountPage.as_view(**kind), name=f"{name}-new"),
        path(f"{prefix}<int:user_id>/", pages.AccountPage.as_view(**kind), name=name),
        path(f"{prefix}<int:user_id>/edit/", edit_pages.EditAccountPage.as_view(**kind), name=f"{name}-edit"),
        path(f"{prefix}<int:user_id>/active", edit_pages.SetActive.as_view(**kind), name=f"{name}-active"),
        path(
            f"{prefix}<int:user_id>/delete/",
            edit_pages.DeleteAccountPage.as_view(**kind),
            name=f"{name}-delete",
        ),
    ]


# fmt: off
urlpatterns = [
    path("login/", login.LoginPage.as_view(), name="login"),
    path("login/", login.LoginPage.as_view(), name="account_login"),  # what allauth calls it
    path(f"{links.PATH}<str:token>/", login.LoginLinkPage.as_view(), name="login-link"),
    path("login/invite/<str:token>/", sign_up.SignUpPage.as_view(), name="login-invite"),
    path("login/forgot/", login.ForgotPasswordPage.as_view(), name="login-forgot"),
    path("login/passkey/", login_pages.PasskeyLoginPage.as_view(), name="login-passkey"),
    path("login/code/", second_factor_login.SecondFactorPage.as_view(), name="mfa_authenticate"),  # allauth's name
    path("login/sso/", sign_on.StartPage.as_view(), name="sign-on"),
    path("login/sso/logout/", BackChannelLogout.as_view(), name="sign-on-logout"),
    path("login/sso/callback/", sign_on.CallbackPage.as_view(), name="sign-on-callback"),
    path("login/sso/metadata/", sign_on.MetadataPage.as_view(), name="sign-on-metadata"),
    path("logout/", login.LogoutPage.as_view(), name="logout"),
    path("admin/login/", login.redirect_admin_login, name="admin-login"),

    path("account/", own_account_pages.AccountPage.as_view(), name="account"),
    path("account/password/", own_account_pages.PasswordPage.as_view(), name="account-password"),
    path("account/tokens/new/", own_account_pages.NewTokenPage.as_view(), name="account-token-new"),
    path("account/tokens/<int:token_id>/revoke/", own_account_pages.RevokeTokenPage.as_view(), name="account-token-revoke"),
    path("account/sign-on/link/", sign_on.LinkPage.as_view(), name="sign-on-link"),
    path("account/sign-on/unlink/", sign_on.UnlinkPage.as_view(), name="sign-on-unlink"),
    path("account/log-out-everywhere/", own_account_pages.LogOutEverywherePage.as_view(), name="account-log-out"),
    path("account/confirm/", second_factor.ConfirmIdentityPage.as_view(), name="account-confirm"),
    path("account/two-step/", second_factor.OverviewPage.as_view(), name="two-step"),
    path("account/two-step/app/", second_factor.AddAppPage.as_view(), name="two-step-app"),
    path("account/two-step/recovery-codes/", second_factor.RecoveryCodesPage.as_view(), name="two-step-codes"),
    path("account/two-step/passkeys/new/", passkey_pages.AddPasskeyPage.as_view(), name="two-step-passkey-new"),
    path("account/two-step/passkeys/<int:factor_id>/", passkey_pages.RenamePasskeyPage.as_view(), name="two-step-passkey"),
    path("account/two-step/<int:factor_id>/remove/", second_factor.RemoveFactorPage.as_view(), name="two-step-remove"),
    path("account/sessions/end-others", sessions.EndOtherSessions.as_view(), name="account-sessions-end-others"),
    path("account/sessions/<int:session_id>/end", sessions.EndSession.as_view(), name="account-session-end"),

    *make_account_urls("access/people/", PEOPLE),
    path("access/people/<int:user_id>/confirm", pages.ConfirmAccount.as_view(**PEOPLE), name="person-confirm"),
    path("access/people/<int:user_id>/reset-password/", edit_pages.ResetPasswordPage.as_view(), name="person-reset-password"),
    path("access/people/<int:user_id>/identity/unlink/", sign_on_admin.UnlinkIdentityOf.as_view(**PEOPLE), name="person-unlink"),
    path("access/people/<int:user_id>/two-step/remove/", second_factor_admin.RemoveFactorsOf.as_view(**PEOPLE), name="person-two-step-remove"),
    path("access/people/<int:user_id>/end-sessions", sessions.EndSessionsOf.as_view(**PEOPLE), name="person-end-sessions"),
    *make_account_urls("access/service-accounts/", SERVICE),
    path("access/service-accounts/<int:user_id>/tokens/new/", pages.NewServiceToken.as_view(**SERVICE), name="service-account-token-new"),
    path("access/service-accounts/<int:user_id>/tokens/<int:token_id>/revoke/", pages.RevokeServiceToken.as_view(**SERVICE), name="service-account-token-revoke"),

    path("access/invite-links/", sign_up.InviteLinksPage.as_view(), name="invite-links"),
    path("access/invite-links/new/", sign_up.NewInviteLinkPage.as_view(), name="invite-link-new"),
    path("access/invite-links/<str:key>/enabled", sign_up.SetEnabled.as_view(), name="invite-link-enabled"),

    path("access/scim/", scim.ProvisioningPage.as_view(), name="scim"),
    path("access/scim/enabled", scim.SetProvisioning.as_view(), name="scim-enabled"),

    path("access/groups/", groups.GroupsPage.as_view(), name="groups"),
    path("access/groups/new/", groups.NewGroupPage.as_view(), name="group-new"),
    path("access/groups/<int:group_id>/", groups.GroupPage.as_view(), name="group"),
    path("access/groups/<int:group_id>/edit/", groups.EditGroupPage.as_view(), name="group-edit"),
    path("access/groups/<int:group_id>/delete/", groups.DeleteGroupPage.as_view(), name="group-delete"),
    path("access/groups/<int:group_id>/members/", groups.AddMember.as_view(), name="group-member-add"),
    path("access/groups/<int:group_id>/members/<int:user_id>/remove", groups.RemoveMember.as_view(), name="group-member-remove"),

    path("access/roles/", roles.RolesPage.as_view(), name="roles"),
    path("access/roles/new/", roles.NewRolePage.as_view(), name="role-new"),
    path("access/roles/<int:role_id>/edit/", roles.EditRolePage.as_view(), name="role-edit"),
    path("access/roles/<int:role_id>/delete/", roles.DeleteRolePage.as_view(), name="role-delete"),
]
