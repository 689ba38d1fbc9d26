"""Accounts and groups as SCIM resources, and the deviations of providers that are tolerated.

Attributes that are not declared are accepted and dropped: Entra and Okta send what they are configured to send.
"""

from typing import Annotated, Any, ClassVar

from scim2_models import (
    URN,
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    ETag,
    Filter,
    Mutability,
    Patch,
    Required,
    Resource,
    ResourceType,
    Schema,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
)

MAX_RESULTS = 1_000


class Name(ComplexAttribute):
    formatted: str | None = None
    given_name: str | None = None
    family_name: str | None = None


class Email(ComplexAttribute):
    """An account has one. No EmailStr: companies have domains that it refuses, such as .local."""

    value: str | None = None
    type: str | None = None
    primary: bool | None = None


class User(Resource):
    __schema__: ClassVar[URN] = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    name: Name | None = None
    display_name: str | None = None
    emails: list[Email] | None = None
    active: bool | None = None


class Member(ComplexAttribute):
    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    type: Annotated[str | None, Mutability.immutable] = None
    display: Annotated[str | None, Mutability.read_only] = None


class Group(Resource):
    __schema__: ClassVar[URN] = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    members: list[Member] | None = None


POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)


def _make_config() -> ServiceProviderConfig:
    return ServiceProviderConfig(
        patch=Patch(supported=True),
        bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
        filter=Filter(supported=True, max_results=MAX_RESULTS),
        change_password=ChangePassword(supported=False),
        sort=Sort(supported=False),
        etag=ETag(supported=False),
        authentication_schemes=[
            AuthenticationScheme(
                type=AuthenticationScheme.Type.oauthbearertoken,
                name="Bearer token",
                description="The token from the page Provisioning, in the header Authorization.",
                primary=True,
            )
        ],
    )


PROVIDER = ScimProvider(models=[User, Group], config=_make_config(), policy=POLICY)


def find_described(documents: tuple[Any, ...], key: str) -> Schema | ResourceType | None:
    """The schema or resource type with this id."""
    return next((each for each in documents if str(each.id) == key), None)
