"""Models of users, groups, roles and tokens."""

from groups.models.people import Custody, Group, GroupMembership, LoginFailure, LoginLink, ScimSettings, User
from groups.models.roles import Grant, PrivateProject, Role, RolePermission
from groups.models.tokens import ApiToken, ApiTokenProject, InviteLink, StartUpKey
