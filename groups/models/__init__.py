"""Models of users, groups, roles and tokens."""

from groups.models.custody import Custody
from groups.models.people import Group, GroupMembership, LoginFailure, LoginLink, User
from groups.models.roles import Grant, Role, RolePermission
from groups.models.scim import ScimSettings
from groups.models.sign_up import InviteLink
from groups.models.tokens import ApiToken, ApiTokenProject, StartUpKey
