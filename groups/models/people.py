"""Models of accounts and groups, and of one-time login links and failed logins.

The settings of SCIM: whether an identity provider may manage accounts and groups, and the token's hash.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, ClassVar, NotRequired, TypedDict

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.crypto import salted_hmac

from groups.permissions import BuiltIn


class UserQuerySet(models.QuerySet["User"]):
    def people(self) -> "UserQuerySet":
        return self.filter(is_service=False)

    def service_accounts(self) -> "UserQuerySet":
        return self.filter(is_service=True)

    def active(self) -> "UserQuerySet":
        return self.filter(is_active=True)

    def admins(self) -> "UserQuerySet":
        """Finds the holders of the Admin role, direct or through a group. A user with both appears twice."""
        return self.filter(models.Q(root_role=BuiltIn.ADMIN) | models.Q(groups__root_role=BuiltIn.ADMIN))

    def known_as(self, name: str) -> "UserQuerySet":
        """Finds users with this user name or email address, ignoring case."""
        return self.filter(models.Q(username__iexact=name) | models.Q(email__iexact=name))

    def named(self, name: str) -> "User | None":
        """The person with this user name or email address, ignoring case. User names take precedence."""
        people = self.people()
        return people.filter(username__iexact=name).first() or people.filter(email__iexact=name).first()

    def get_by_natural_key(self, username: str | None) -> "User":
        """Lets users log in with their user name or email address, ignoring case."""
        user = self.named(username or "")
        if user is None:
            raise self.model.DoesNotExist
        return user


class AccountDocument(TypedDict):
    id: int
    username: str
    name: str
    email: str | None
    rootRole: int | None
    isActive: bool
    externalId: NotRequired[str]


class User(AbstractBaseUser):
    """A person, or a service account (``is_service``), which has tokens but no password and cannot log in.

    The permissions of a user come from its root role, its groups and its grants: see ``groups.access``.
    """

    id = models.BigAutoField(primary_key=True)
    username = models.CharField(max_length=255, unique=True)
    name = models.CharField(max_length=255, blank=True)
    email = models.EmailField(max_length=255, null=True, blank=True)
    is_service = models.BooleanField("service account", default=False)
    is_active = models.BooleanField(default=True)
    root_role = models.ForeignKey(
        "groups.Role", null=True, blank=True, on_delete=models.RESTRICT, related_name="users"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(null=True, blank=True)
    external_id = models.CharField(
        max_length=255, null=True, blank=True, db_index=True, help_text="The identity provider's, by SCIM."
    )
    scim_name = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="Parts of the name, as the identity provider has them.",
    )
    session_generation = models.PositiveIntegerField(
        default=0, editable=False, help_text="Sessions of an earlier generation are over."
    )

    USERNAME_FIELD = "username"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects = UserQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(Lower("email"), name="user_email_unique"),
            models.UniqueConstraint(Lower("username"), name="user_username_unique"),
        ]

    def __str__(self) -> str:
        return self.username

    @property
    def display_name(self) -> str:
        return self.name or self.username

    @property
    def is_root_admin(self) -> bool:
        """Whether this user's own root role, or the root role of one of its groups, is Admin."""
        if not self.is_active:
            return False
        return self.root_role_id == BuiltIn.ADMIN or (
            self.pk is not None and self.groups.filter(root_role_id=BuiltIn.ADMIN).exists()
        )

    def document(self) -> AccountDocument:
        """The account as a JSON document for audit events and edit conflicts."""
        document: AccountDocument = {
            "id": self.pk,
            "username": self.username,
            "name": self.name,
            "email": self.email,
            "rootRole": self.root_role_id,
            "isActive": self.is_active,
        }
        return {**document, "externalId": self.external_id} if self.external_id else document

    def get_session_auth_hash(self) -> str:
        return self._hash_session()

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        for secret in settings.SECRET_KEY_FALLBACKS:
            yield self._hash_session(secret)

    def _hash_session(self, secret: str | bytes | None = None) -> str:
        """The hash stored in sessions. A new password or "log out everywhere" changes it and so ends them."""
        value = f"{self.session_generation} {self.password}"
        return salted_hmac("groups.session", value, secret=secret, algorithm="sha256").hexdigest()

    # Attributes required by the Django admin site, which is only open to users with the Admin root role.

    @property
    def is_staff(self) -> bool:
        return not self.is_service and self.is_root_admin

    @property
    def is_superuser(self) -> bool:
        return self.is_staff

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        return self.is_staff

    def has_module_perms(self, app_label: str) -> bool:
        return self.is_staff


class GroupDocument(TypedDict):
    id: int
    name: str
    description: str
    rootRole: int | None
    mappingsSSO: list[str]
    scimId: str | None
    users: list[int]
    externalId: NotRequired[str]


class Group(models.Model):
    """A group of users who share a root role, roles in projects, or both."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=255, unique=True)
    description = models.TextField(blank=True)
    root_role = models.ForeignKey(
        "groups.Role", null=True, blank=True, on_delete=models.RESTRICT, related_name="groups"
    )
    mappings_sso = models.JSONField("SSO group names", default=list, blank=True)
    scim_id = models.CharField("SCIM id", max_length=255, null=True, blank=True, unique=True)
    external_id = models.CharField(
        max_length=255, null=True, blank=True, help_text="The identity provider's, by SCIM."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=255, blank=True)
    members = models.ManyToManyField(User, through="GroupMembership", related_name="groups")

    class Meta:
        ordering = ["name"]
        constraints = [models.CheckConstraint(condition=~models.Q(name=""), name="group_name_not_empty")]

    def __str__(self) -> str:
        return self.name

    def member_ids(self) -> set[int]:
        return set(self.memberships.values_list("user_id", flat=True))

    def document(self, *, with_members: bool = True) -> GroupDocument:
        """The group as a JSON document for audit events and edit conflicts. Reads its members only if they are
        included.
        """
        document: GroupDocument = {
            "id": self.pk,
            "name": self.name,
            "description": self.description,
            "rootRole": self.root_role_id,
            "mappingsSSO": self.mappings_sso,
            "scimId": self.scim_id,
            "users": sorted(self.member_ids()) if with_members else [],
        }
        return {**document, "externalId": self.external_id} if self.external_id else document


class GroupMembership(models.Model):
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    joined_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=255, blank=True)
    by_provider = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="Given, and taken back, by the groups claim of the identity provider.",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "user"], name="group_membership_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.group}"


class LoginLink(models.Model):
    """A one-time link for logging in or, without a user, for creating the first account. Stored as a hash."""

    token_hash = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(User, null=True, blank=True, on_delete=models.CASCADE)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    next_path = models.CharField(max_length=2000, blank=True)

    def __str__(self) -> str:
        return f"login link for {self.user or 'set-up'}"


class LoginFailure(models.Model):
    """A failed login attempt, counted per account and per IP address to throttle password guessing."""

    account = models.CharField(max_length=255)
    address = models.CharField(max_length=64)
    failed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["account", "failed_at"], name="login_failure_account"),
            models.Index(fields=["address", "failed_at"], name="login_failure_address"),
        ]

    def __str__(self) -> str:
        return f"{self.account} from {self.address}"


class CustodyQuerySet(models.QuerySet["Custody"]):
    def open(self) -> "CustodyQuerySet":
        """The records that count: unconfirmed and, for people, not older than the setting."""
        since = timezone.now() - timedelta(days=settings.NEW_ACCOUNT_DAYS)
        return self.filter(Q(since__gt=since) | Q(account__is_service=True), confirmed_at=None)


class Custody(models.Model):
    """Another account (``keeper``) could act as this one since then, having created it or set its login.

    It counts until another admin confirms that the account belongs to another person. Accounts have no record if they
    are older than this table, or if the identity provider, SCIM or a command created them.
    """

    class How(models.TextChoices):
        CREATED = "created", "created"
        INVITED = "invited", "invited"
        SIGNED_UP = "signedUp", "let in with an invite link"
        PASSWORD = "password", "given a password or login link"
        EMAIL = "email", "given another email address"
        TOKEN = "token", "given a token"

    account = models.ForeignKey(User, models.CASCADE, related_name="custodies")
    keeper = models.ForeignKey(User, models.CASCADE, related_name="+")
    how = models.CharField(max_length=16, choices=How.choices)
    since = models.DateTimeField(auto_now_add=True)
    confirmed_at = models.DateTimeField(null=True, blank=True)
    confirmed_by = models.CharField(max_length=255, blank=True)

    objects: Any = CustodyQuerySet.as_manager()

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.account} was {self.words}"

    @property
    def words(self) -> str:
        """``invited by Ada on 3 Mar 2026``"""
        return f"{self.How(self.how).label} by {self.keeper.display_name} on {_say_day(self.since)}"

    @property
    def until(self) -> datetime | None:
        """The time until which it counts; None for service accounts, for which it always counts."""
        return None if self.account.is_service else self.since + timedelta(days=settings.NEW_ACCOUNT_DAYS)


def _say_day(moment: datetime) -> str:
    return f"{moment.day} {moment:%b %Y}"


ROW = 1


class ScimSettings(models.Model):
    """The only row of its table. The token is stored as a hash; None if there is none yet."""

    id = models.SmallIntegerField(primary_key=True, default=ROW)
    is_enabled = models.BooleanField("enabled", default=False)
    finds_by_email = models.BooleanField(
        "finds accounts by email address",
        default=False,
        db_default=False,
        help_text="Accounts whose email address is the provider's user name are its own from then on.",
    )
    token_hash = models.CharField(max_length=64, null=True, editable=False)
    token_created_at = models.DateTimeField(null=True, editable=False)
    seen_at = models.DateTimeField("last used", null=True, editable=False)

    class Meta:
        verbose_name_plural = "SCIM settings"
        constraints = [models.CheckConstraint(condition=models.Q(id=ROW), name="scim_settings_one_row")]

    def __str__(self) -> str:
        return "SCIM"

    def document(self) -> dict[str, bool]:
        """The settings as in audit events and the API, with Unleash's names."""
        return {"enabled": self.is_enabled, "assumeControlOfExisting": self.finds_by_email}

    @property
    def has_token(self) -> bool:
        return self.token_hash is not None
