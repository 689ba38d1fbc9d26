"""The settings of SCIM: whether an identity provider may manage accounts and groups, and with which token."""

from django.db import models

ROW = 1


class ScimSettings(models.Model):
    """The only row of its table. The token is stored as a hash; None: there is none yet."""

    id = models.SmallIntegerField(primary_key=True, default=ROW)
    is_enabled = models.BooleanField("enabled", default=False)
    token_hash = models.CharField(max_length=64, null=True, editable=False)
    token_created_at = models.DateTimeField(null=True, editable=False)
    seen_at = models.DateTimeField("last used", null=True, editable=False)

    class Meta:
        verbose_name_plural = "SCIM settings"
        constraints = [models.CheckConstraint(condition=models.Q(id=ROW), name="scim_settings_one_row")]

    def __str__(self) -> str:
        return "SCIM"

    @property
    def has_token(self) -> bool:
        return self.token_hash is not None
