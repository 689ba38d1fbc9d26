"""The settings of SCIM: whether an identity provider may manage accounts and groups, and the token's hash."""

from django.db import models

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
