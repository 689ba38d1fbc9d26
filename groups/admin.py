"""Registers the admin site's pages for users, groups, roles, logins and invite links."""

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth.models import Group as DjangoGroup

from groups.groups import admin as groups
from groups.login import admin as login
from groups.people import admin as people
from groups.roles import admin as roles
from groups.sign_up import admin as sign_up

# Unused, or not to be changed without their audit events.
UNUSED = (DjangoGroup, EmailAddress, SocialApp, SocialToken)
admin.site.unregister([*UNUSED, Authenticator, SocialAccount, UserSession])
