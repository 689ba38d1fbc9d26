from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models.functions import Lower

from groups.permissions import BuiltIn


class UserManager(BaseUserManager["User"]):
    def get_by_natural_key(self, username: str | None) -> "User":
        """People log in with their user name or their email address, in any case."""
        return self.get(
            models.Q(username__iexact=username) | models.Q(email__iexact=username), is_service=False
        )


class User(AbstractBaseUser):
    """A person, or a service account (``is_service``): it has tokens and no password, and cannot log in.

    What a user may do follows from its root role, its groups and its grants: see ``groups.access``.
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

    USERNAME_FIELD = "username"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects = UserManager()

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
        """Whether this user's own root role, or that of one of its groups, is Admin."""
        if not self.is_active:
            return False
        return self.root_role_id == BuiltIn.ADMIN or (
            self.pk is not None and self.groups.filter(root_role_id=BuiltIn.ADMIN).exists()
        )

    # What the Django admin site asks. Only people with the Admin root role enter it.

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


class Group(models.Model):
    """Users who hold a root role, or roles in projects, together."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=255, unique=True)
    description = models.TextField(blank=True)
    root_role = models.ForeignKey(
        "groups.Role", null=True, blank=True, on_delete=models.RESTRICT, related_name="groups"
    )
    mappings_sso = models.JSONField("SSO group names", default=list, blank=True)
    scim_id = models.CharField("SCIM id", max_length=255, null=True, blank=True, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=255, blank=True)
    members = models.ManyToManyField(User, through="GroupMembership", related_name="groups")

    class Meta:
        ordering = ["name"]
        constraints = [models.CheckConstraint(condition=~models.Q(name=""), name="group_name_not_empty")]

    def __str__(self) -> str:
        return self.name


class GroupMembership(models.Model):
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    joined_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=255, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "user"], name="group_membership_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.group}"


class LoginLink(models.Model):
    """A one-time link to log in (or, without a user, to set up the first account). Only its hash is kept."""

    token_hash = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(User, null=True, blank=True, on_delete=models.CASCADE)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    next_path = models.CharField(max_length=2000, blank=True)

    def __str__(self) -> str:
        return f"login link for {self.user or 'set-up'}"


class LoginFailure(models.Model):
    """A failed try to log in, counted per account and per address to throttle guessing."""

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
