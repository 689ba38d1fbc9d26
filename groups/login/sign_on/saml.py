"""Logging in with a SAML 2.0 identity provider: a provider of allauth, and what its answers prove.

signxml checks a signature and returns the signed bytes, parsed anew. The assertion is read from there, never from the
answer as it came: an attacker gains nothing by moving what is signed and putting something else in its place.
"""

import base64
import logging
import secrets
import zlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from allauth.socialaccount.helpers import complete_social_login
from allauth.socialaccount.providers.base import Provider
from cryptography.exceptions import UnsupportedAlgorithm
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from lxml import etree
from signxml import DigestAlgorithm, SignatureConfiguration, SignatureMethod, XMLVerifier
from signxml.exceptions import SignXMLException

from flagadmin.core.errors import NoAccess, ValidationError
from groups.login.links import make_absolute_url
from groups.login.sign_on.provider import EXPIRED, MAX_SUBJECT_LENGTH, IdentityLogin, require_provider
from groups.login.sign_on.settings import SamlSettings

log = logging.getLogger("flagadmin.login")

SAML, SAMLP = "{urn:oasis:names:tc:SAML:2.0:assertion}", "{urn:oasis:names:tc:SAML:2.0:protocol}"
SIGNATURE = "{http://www.w3.org/2000/09/xmldsig#}Signature"
BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
LEEWAY = timedelta(seconds=60)  # of tolerance between clocks
MAX_LENGTH = 250_000  # characters of an answer in base64
# SHA-1 can be forged, and MACs have keys that both sides share.
WEAK = ("SHA1", "224", "HMAC")
# What signxml does not handle of hostile answers.
NONSENSE = (ValueError, TypeError, LookupError, AttributeError, NotImplementedError)
STRONG = SignatureConfiguration(
    signature_methods=frozenset(m for m in SignatureMethod if not any(weak in m.name for weak in WEAK)),
    digest_algorithms=frozenset(d for d in DigestAlgorithm if not any(weak in d.name for weak in WEAK)),
    ignore_ambiguous_key_info=True,  # the key is that of the settings
)


class AnswerError(Exception):
    """Why an answer of the identity provider is not valid: the end of a sentence about it, for the log."""


def read_answer(
    encoded: str, saml: SamlSettings, *, entity_id: str, answer_to: str
) -> tuple[str, dict[str, Any]]:
    """The id of the request that an answer (SAMLResponse) is to, "" for none, and the claims that it proves.

    `sub`, `preferred_username` and `name` are texts; `attributes` has a list for each. ``entity_id`` and ``answer_to``
    are ours.
    Raises AnswerError, or NoAccess if the provider let nobody in.
    """
    root = _parse(encoded)
    assertion = _verify(root, _find_assertion(root, answer_to), saml)
    _expect("issuer", assertion.findtext(f"{SAML}Issuer"), saml.issuer)
    [conditions], [subject] = _all(assertion, "Conditions", 1), _all(assertion, "Subject", 1)
    for restriction in _all(conditions, "AudienceRestriction"):
        audiences = [_text(audience) for audience in restriction.iterfind(f"{SAML}Audience")]
        if entity_id not in audiences:
            raise AnswerError(f"it is for {audiences!r}, not {entity_id!r}")
    [confirmation] = _all(subject, f"SubjectConfirmation[@Method='{BEARER}']", 1)
    [data] = _all(confirmation, "SubjectConfirmationData", 1)
    _expect("recipient", data.get("Recipient"), answer_to)
    for element in (conditions, data, *_all(assertion, "AuthnStatement")):
        _check_times(element)
    if not all(element.get("NotOnOrAfter") for element in (conditions, data)):
        raise AnswerError("it has no NotOnOrAfter")
    request_id = data.get("InResponseTo", "")
    _expect("request", root.get("InResponseTo", request_id), request_id)
    return request_id, _read_claims(assertion, subject, saml)


def _parse(encoded: str) -> etree._Element:
    """The answer. What attacks are made of and no provider sends is refused before it is parsed."""
    if len(encoded) > MAX_LENGTH:
        raise AnswerError(f"it has more than {MAX_LENGTH:,} characters")
    try:
        text = base64.b64decode("".join(encoded.split()), validate=True).decode("utf-8-sig")
        if "<!" in text or "<?" in text[1:]:
            raise AnswerError("it has a document type, entity, comment, CDATA or processing instruction")
        # With the encoding given, a declaration cannot hide these in another one.
        parser = etree.XMLParser(encoding="utf-8", resolve_entities=False, no_network=True)
        return etree.fromstring(text.encode(), parser)
    except (ValueError, etree.XMLSyntaxError) as error:
        raise AnswerError(f"it is not XML in base64: {error}") from error


def _find_assertion(root: etree._Element, answer_to: str) -> etree._Element:
    """The only assertion, which nothing has proven yet."""
    _expect("element", root.tag, f"{SAMLP}Response")
    _expect("destination", root.get("Destination"), answer_to)
    codes = [code.get("Value", "") for code in root.iter(f"{SAMLP}StatusCode")]
    if not codes or not codes[0].endswith(":status:Success"):
        log.warning("The identity provider: %r %r", codes, root.findtext(f".//{SAMLP}StatusMessage"))
        raise NoAccess("The identity provider did not let you in, or you canceled.")
    if any(element.tag.startswith(f"{SAML}Encrypted") for element in root.iter()):
        raise AnswerError("it is encrypted: turn encryption off for flagadmin at the provider")
    assertions = list(root.iter(f"{SAML}Assertion"))
    if len(assertions) != 1 or assertions[0].getparent() is not root:
        raise AnswerError(f"it must have one assertion as its child, not {len(assertions)}")
    return assertions[0]


def _verify(root: etree._Element, assertion: etree._Element, saml: SamlSettings) -> etree._Element:
    """The assertion as it was signed, by itself or with the whole answer."""
    places = {"./": root, f"./{SAML}Assertion/": assertion}
    signed = {place: element for place, element in places.items() if element.find(SIGNATURE) is not None}
    if not signed or len(list(root.iter(SIGNATURE))) != len(signed):
        raise AnswerError("the answer or its assertion must be signed, each by one signature within it")
    for place, element in signed.items():
        verified = _verify_signature(root, place, saml)
        _expect("signed element", (verified.tag, verified.get("ID")), (element.tag, element.get("ID")))
    return _all(verified, "Assertion", 1)[0] if verified.tag == root.tag else verified


def _verify_signature(root: etree._Element, place: str, saml: SamlSettings) -> etree._Element:
    """The signed element, parsed from the bytes that were signed."""
    config, faults = replace(STRONG, location=place), []
    verify = partial(XMLVerifier().verify, root, id_attribute="ID", expect_config=config)
    for certificate in saml.certificates:
        try:
            result: Any = verify(x509_cert=certificate)
            if result.signed_xml is None:
                raise ValueError("what was signed is not XML")
            return result.signed_xml
        except (SignXMLException, UnsupportedAlgorithm, etree.LxmlError, *NONSENSE) as error:
            faults.append(f"{type(error).__name__}: {str(error)[:200]}")
    raise AnswerError(f"its signature is not valid: {'; '.join(faults)}")


def _read_claims(assertion: etree._Element, subject: etree._Element, saml: SamlSettings) -> dict[str, Any]:
    [name_id] = _all(subject, "NameID", 1)
    if name_id.get("Format", "").endswith(":transient"):
        raise AnswerError("its name id changes at every login (transient): choose persistent at the provider")
    if not 0 < len(_text(name_id)) <= MAX_SUBJECT_LENGTH or len(name_id):
        raise AnswerError(f"its name id must have 1 to {MAX_SUBJECT_LENGTH} characters")
    sent: dict[str, list[str]] = {}
    for attribute in assertion.iterfind(f"{SAML}AttributeStatement/{SAML}Attribute"):
        values = [_text(value) for value in attribute.iterfind(f"{SAML}AttributeValue")]
        sent.setdefault(attribute.get("Name", ""), []).extend(values)
    firsts = {name: next(iter(values), "") for name, values in sent.items()}
    username, name = firsts.get(saml.username_attribute, ""), firsts.get(saml.name_attribute, "")
    # Apart, because a provider's attributes may have these names too, with other values.
    return {"sub": _text(name_id), "preferred_username": username, "name": name, "attributes": sent}


def _expect(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise AnswerError(f"its {what} is {found!r}, not {expected!r}")


def _all(parent: etree._Element, path: str, count: int | None = None) -> list[etree._Element]:
    """The children: so many, or any number of them but none."""
    found = parent.findall(f"{SAML}{path}")
    if not found or count not in (None, len(found)):
        raise AnswerError(f"it must have one {path}, not {len(found)}")
    return found


def _text(element: etree._Element) -> str:
    return (element.text or "").strip()


def _check_times(element: etree._Element) -> None:
    """Times are in UTC, with or without saying so."""
    now = datetime.now(UTC)
    for name in {"NotBefore", "NotOnOrAfter", "SessionNotOnOrAfter"} & set(element.keys()):
        try:
            time = datetime.fromisoformat(element.attrib[name])
        except ValueError as error:
            raise AnswerError(f"its {name} is no time: {error}") from error
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        if time > now + LEEWAY if name == "NotBefore" else time <= now - LEEWAY:
            raise AnswerError(f"its {name} is {time}, and it is {now} here")


class SamlProvider(Provider):
    """Identified by the provider's entity id, so that another provider's subjects are other people."""

    name = "SAML"
    uses_apps = False

    def __init__(self, request: HttpRequest | None) -> None:
        super().__init__(request)
        self.id = require_provider(SamlSettings).issuer

    def redirect_to(self, request: HttpRequest, *, process: str, next_url: str) -> HttpResponse:
        """Sends the browser to the provider (HTTP-Redirect). ``process`` is "login" or "connect"."""
        request_id, url = f"_{secrets.token_hex(20)}", require_provider(SamlSettings).url
        self.stash_redirect_state(request, process, next_url, state_id=request_id, user_id=request.user.pk)
        values = {"id": request_id, "url": url, "now": f"{timezone.now():%Y-%m-%dT%H:%M:%SZ}"}
        asked = render_to_string("login/saml_request.xml", values | describe_ourselves(request))
        deflate = zlib.compressobj(wbits=-15)
        packed = base64.b64encode(deflate.compress(asked.encode()) + deflate.flush()).decode()
        query = urlencode({"SAMLRequest": packed, "RelayState": request_id})
        return HttpResponseRedirect(f"{url}{'&' if '?' in url else '?'}{query}")


def describe_ourselves(request: HttpRequest) -> dict[str, str]:
    """``entity_id``, and the URL ``answer_to``, as the provider knows them."""
    names = {"entity_id": "sign-on-metadata", "answer_to": "sign-on-callback"}
    return {key: make_absolute_url(request, reverse(name)) for key, name in names.items()}


def take_answer(request: HttpRequest) -> HttpResponse:
    """Logs in the browser whose session made the request, once. Raises AnswerError, NoAccess, ValidationError.

    The answer comes as a form from another site, so without the session's cookie: the browser gets it back as a form of
    ours, and sends it again. An answer to no request, as when somebody clicks on flagadmin at the provider, logs nobody
    in: it could be an attacker's. It begins a login here, for which the provider asks nothing again.
    """
    encoded, relay_state = request.POST.get("SAMLResponse", ""), request.POST.get("RelayState", "")
    request_id, claims = read_answer(encoded, require_provider(SamlSettings), **describe_ourselves(request))
    if not request_id and not relay_state.startswith("_"):
        return HttpResponseRedirect(reverse("sign-on"))
    if not request_id:  # a provider that forgets requests would send browsers round for ever
        raise AnswerError("it answers no request")
    provider = SamlProvider(request)
    try:
        state = provider.unstash_redirect_state(request, request_id)
    except PermissionDenied as error:
        if "again" in request.POST:
            raise ValidationError(EXPIRED) from error
        context = {"title": "Log in", "answer": encoded, "relay_state": relay_state}
        return render(request, "login/saml_answer.html", context)
    login = IdentityLogin(provider, claims)
    login.state = state
    response: HttpResponse = complete_social_login(request, login)
    return response
