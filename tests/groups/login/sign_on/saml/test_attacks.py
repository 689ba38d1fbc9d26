"""The known attacks on SAML, each on a true answer of the provider to the browser that sends it: nobody gets in.

``anna`` has an account, and so does ``eve``, who attacks: what she sends is the provider's answer about herself.
"""

import base64
import copy
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client
from lxml import etree
from signxml import DigestAlgorithm, SignatureMethod, XMLSigner, methods

from tests.groups.login.sign_on.saml.conftest import CALLBACK, is_in, read_form
from tests.support.cast import make_user
from tests.support.saml_provider import SamlProvider, Signer

pytestmark = pytest.mark.processes
SAML, SAMLP = "urn:oasis:names:tc:SAML:2.0:assertion", "urn:oasis:names:tc:SAML:2.0:protocol"
NS = {"saml": SAML, "samlp": SAMLP, "ds": "http://www.w3.org/2000/09/xmldsig#"}
Tree = Any
Change = Callable[[Tree], Any]


@pytest.fixture
def people(provider: SamlProvider, saml: Any) -> None:
    for name in ("anna", "eve"):
        SocialAccount.objects.create(user=make_user(name), provider=provider.issuer, uid=name)
    provider.know("eve", username="eve")
    provider.know("eve.anna", username="eve")


def opened(form: dict[str, str]) -> Tree:
    return etree.fromstring(base64.b64decode(form["SAMLResponse"]))


def closed(answer: Any) -> str:
    data = answer if isinstance(answer, bytes) else etree.tostring(answer)
    return base64.b64encode(data).decode()


def find(tree: Tree, path: str) -> Tree:
    found = tree.find(path, NS)
    assert found is not None, path
    return found


def evil(tree: Tree, **attributes: str) -> Tree:
    """A copy of the assertion, without its signature, about anna."""
    made = copy.deepcopy(find(tree, "saml:Assertion"))
    made.remove(find(made, "ds:Signature"))
    find(made, ".//saml:NameID").text = "anna"
    made.set("ID", attributes.get("ID", "_evil"))
    return made


def refused(login: Any, answer: Any, caplog: Any, reason: str = "") -> None:
    page = login.send(SAMLResponse=answer if isinstance(answer, str) else closed(answer))
    assert (page.status_code, "sessionid" in page.cookies) == (400, False)
    assert not is_in(login.browser)
    assert reason in caplog.text, caplog.text


# Signature wrapping (Somorovsky et al., 2012, and later ones): the signed element is still there, somewhere.


def before(tree: Tree) -> None:
    tree.insert(0, evil(tree))


def after(tree: Tree) -> None:
    tree.append(evil(tree))


def in_its_place(tree: Tree) -> Tree:
    """The signed assertion becomes a child of the other one."""
    made, signed = evil(tree), find(tree, "saml:Assertion")
    tree.replace(signed, made)
    made.append(signed)
    return made


def with_its_signature(tree: Tree) -> None:
    """The signature moves to the other assertion, and has the signed one as an object."""
    signature, signed = find(tree, ".//ds:Signature"), find(tree, "saml:Assertion")
    made = in_its_place(tree)
    made.remove(signed)
    signed.remove(signature)
    etree.SubElement(signature, f"{{{NS['ds']}}}Object").append(signed)
    made.insert(1, signature)


def with_its_id(tree: Tree) -> None:
    identifier = find(tree, "saml:Assertion").get("ID")
    tree.insert(0, evil(tree, ID=identifier))


def in_extensions(tree: Tree) -> None:
    """The signature stays with the signed assertion, which is no longer where assertions are read."""
    signed = find(tree, "saml:Assertion")
    tree.replace(signed, evil(tree))
    etree.SubElement(tree, f"{{{SAMLP}}}Extensions").append(signed)


def detached(tree: Tree) -> None:
    """The signature of the signed one, elsewhere, is taken for that of the other one."""
    made, signature = in_its_place(tree), find(tree, ".//ds:Signature")
    made.insert(1, copy.deepcopy(signature))


def by_another_attribute(tree: Tree) -> None:
    """The reference finds the signed assertion by an attribute that is no SAML id."""
    signed = find(tree, "saml:Assertion")
    identifier = signed.get("ID")
    made = in_its_place(tree)
    made.set("ID", identifier)
    made.insert(1, find(signed, "ds:Signature"))
    signed.set("Id", identifier)


def answer_in_answer(tree: Tree) -> None:
    """A whole answer wraps the true one."""
    true = copy.deepcopy(tree)
    made = evil(tree)
    for element in list(tree.iterfind("saml:Assertion", NS)):
        tree.remove(element)
    tree.set("ID", "_evil_answer")
    etree.SubElement(tree, f"{{{SAMLP}}}Extensions").append(true)
    tree.append(made)


WRAPPED = [before, after, in_its_place, with_its_signature, with_its_id, in_extensions, detached, by_another_attribute, answer_in_answer]  # fmt: skip


@pytest.mark.parametrize("wrap", WRAPPED)
def test_signature_wrapping(people, begin, caplog, wrap):
    login = begin("eve")
    answer = opened(login.form)
    wrap(answer)
    refused(login, answer, caplog)


def test_wrapping_of_a_signed_answer(people, provider, begin, caplog):
    """Only the answer is signed: its signature moves to another answer, with the true one as an object."""
    provider.behave(signResponse=True, signAssertion=False)
    login = begin("eve")
    true = opened(login.form)
    made, signature = copy.deepcopy(true), find(true, "ds:Signature")
    made.set("ID", "_evil")
    find(made, ".//saml:NameID").text = "anna"
    made.remove(find(made, "ds:Signature"))
    true.remove(signature)
    etree.SubElement(signature, f"{{{NS['ds']}}}Object").append(true)
    made.insert(1, signature)
    refused(login, made, caplog, "it must have one assertion as its child, not 2")
    signature.find("ds:Object", NS).clear()
    refused(login, made, caplog, "its signature is not valid")


# What is signed is changed, or not signed.


def unsigned(tree: Tree) -> None:
    for signature in list(tree.iterfind(".//ds:Signature", NS)):
        signature.getparent().remove(signature)


def renamed(tree: Tree) -> None:
    find(tree, ".//saml:NameID").text = "anna"


def with_an_attribute(tree: Tree) -> None:
    find(tree, ".//saml:AttributeValue").text = "anna"


def emptied_signature(tree: Tree) -> None:
    find(tree, ".//ds:SignatureValue").text = ""


def no_reference(tree: Tree) -> None:
    info = find(tree, ".//ds:SignedInfo")
    info.remove(find(info, "ds:Reference"))


def shared_key(tree: Tree) -> None:
    """As if the certificate were the secret of a MAC."""
    find(tree, ".//ds:SignatureMethod").set("Algorithm", "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256")


def stylesheet(tree: Tree) -> None:
    transform = find(tree, ".//ds:Transform")
    transform.set("Algorithm", "http://www.w3.org/TR/1999/REC-xslt-19991116")
    style = etree.SubElement(transform, "{http://www.w3.org/1999/XSL/Transform}stylesheet", version="1.0")
    etree.SubElement(style, "{http://www.w3.org/1999/XSL/Transform}include", href="file:///etc/passwd")


def elsewhere(tree: Tree) -> None:
    find(tree, ".//ds:Reference").set("URI", "http://127.0.0.1:1/assertion")


TAMPERED = {
    unsigned: "must be signed",
    renamed: "InvalidDigest",
    with_an_attribute: "InvalidDigest",
    emptied_signature: "its signature is not valid",
    no_reference: "its signature is not valid",
    shared_key: "HMAC_SHA256 forbidden",
    stylesheet: "its signature is not valid",
    elsewhere: "its signature is not valid",
}


@pytest.mark.parametrize(("change", "reason"), TAMPERED.items())
def test_what_is_not_signed_as_it_is(people, begin, caplog, change, reason):
    login = begin("eve")
    answer = opened(login.form)
    change(answer)
    refused(login, answer, caplog, reason)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"signAssertion": False}, "must be signed"),
        ({"signatureAlgorithm": "rsa-sha1"}, "RSA_SHA1 forbidden"),
        ({"digestAlgorithm": "sha1"}, "SHA1 forbidden"),
        ({"signResponse": True, "signatureAlgorithm": "rsa-sha1"}, "RSA_SHA1 forbidden"),
        ({"audience": "https://other.example/metadata"}, "it is for ['https://other.example/metadata']"),
        ({"recipient": "https://other.example/acs"}, "its recipient is 'https://other.example/acs'"),
        ({"destination": "https://other.example/acs"}, "its destination is 'https://other.example/acs'"),
        ({"inResponseTo": "_" + "0" * 40}, "This login started in another browser"),
        ({"inResponseTo": "x" * 5_000}, "This login started in another browser"),
        ({"issuer": "https://other.example"}, "its issuer is 'https://other.example'"),
        ({"nameIdentifierFormat": "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"}, "transient"),
    ],
    ids=str,
)
def test_answers_that_the_provider_made_so(people, provider, begin, caplog, options, reason):
    """Among them those for other services, which an administrator of one of them could send here."""
    provider.behave(**options)
    login = begin("eve")
    refused(login, login.form["SAMLResponse"], caplog, reason)


def test_the_request_of_another_browser(people, provider, begin):
    """Somebody is sent here with an attacker's answer, to enter what the attacker then reads."""
    form = read_form(Client().post(CALLBACK, begin("eve").form))
    victim = begin("eve").browser
    assert "This login started in another browser" in victim.post(CALLBACK, form).text
    assert not is_in(victim)


def test_encrypted_assertions_are_refused_in_words(people, provider, begin, caplog):
    certificate = provider.signer.certificate.decode()
    public = {"encryptionCert": certificate, "encryptionPublicKey": certificate}
    provider.behave(**public, encryptionAlgorithm="http://www.w3.org/2009/xmlenc11#aes256-gcm")
    login = begin("eve")
    refused(login, login.form["SAMLResponse"], caplog, "turn encryption off for flagadmin")


# What the provider never sends, but its key could have signed.


def resigned(tree: Tree, signer: Signer, *, element: str = "saml:Assertion") -> Tree:
    unsigned(tree)
    signing = XMLSigner(
        method=methods.enveloped,
        signature_algorithm=SignatureMethod.RSA_SHA256,
        digest_algorithm=DigestAlgorithm.SHA256,
        c14n_algorithm="http://www.w3.org/2001/10/xml-exc-c14n#",
    )
    old = find(tree, element)
    new = signing.sign(old, key=signer.key, cert=signer.certificate.decode(), reference_uri=old.get("ID"))
    old.getparent().replace(old, new)
    return tree


def at(seconds: int) -> str:
    return f"{datetime.now(UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S.%fZ}"


def put(path: str, name: str, value: str | int) -> Change:
    """A number is of seconds from now."""
    return lambda tree: find(tree, path).set(name, at(value) if isinstance(value, int) else value)


def drop(path: str, name: str = "") -> Change:
    def change(tree: Tree) -> None:
        element = find(tree, path)
        if name:
            del element.attrib[name]
        else:
            element.getparent().remove(element)

    return change


def twice(path: str) -> Change:
    def change(tree: Tree) -> None:
        element = find(tree, path)
        element.addnext(copy.deepcopy(element))

    return change


CONDITIONS, DATA = ".//saml:Conditions", ".//saml:SubjectConfirmationData"
SIGNED: dict[str, tuple[Change, str]] = {
    "expired": (put(CONDITIONS, "NotOnOrAfter", -61), "its NotOnOrAfter is "),
    "expired as proof of who sends it": (put(DATA, "NotOnOrAfter", -61), "its NotOnOrAfter is "),
    "not yet valid": (put(CONDITIONS, "NotBefore", 65), "its NotBefore is "),
    "without an end": (drop(CONDITIONS, "NotOnOrAfter"), "it has no NotOnOrAfter"),
    "without an end for its sender": (drop(DATA, "NotOnOrAfter"), "it has no NotOnOrAfter"),
    "at no time": (put(CONDITIONS, "NotOnOrAfter", "tomorrow"), "its NotOnOrAfter is no time"),
    "for everybody": (drop(".//saml:AudienceRestriction"), "it must have one AudienceRestriction, not 0"),
    "without conditions": (drop(CONDITIONS), "it must have one Conditions, not 0"),
    "without a recipient": (drop(DATA, "Recipient"), "its recipient is None"),
    "without a confirmation": (drop(".//saml:SubjectConfirmation"), "it must have one SubjectConfirmation"),
    "with a key of the subject": (
        put(".//saml:SubjectConfirmation", "Method", "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key"),
        "it must have one SubjectConfirmation",
    ),
    "without a login": (drop(".//saml:AuthnStatement"), "it must have one AuthnStatement, not 0"),
    "of an ended session": (
        put(".//saml:AuthnStatement", "SessionNotOnOrAfter", -61),
        "its SessionNotOnOrAfter is ",
    ),
    "about nobody": (drop(".//saml:NameID"), "it must have one NameID, not 0"),
    "about two": (twice(".//saml:NameID"), "it must have one NameID, not 2"),
    "with a name in the name": (
        lambda tree: etree.SubElement(find(tree, ".//saml:NameID"), "x"),
        "its name id must have 1 to 191 characters",
    ),
    "about a name that is too long": (
        lambda tree: setattr(find(tree, ".//saml:NameID"), "text", "x" * 192),
        "its name id must have 1 to 191 characters",
    ),
    "from nobody": (drop("saml:Assertion/saml:Issuer"), "its issuer is None"),
    "to another request in the answer": (lambda tree: tree.set("InResponseTo", "_other"), "its request is '_other'"),
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNED)
def test_signed_but_not_valid(people, provider, begin, caplog, name):
    change, reason = SIGNED[name]
    login = begin("eve")
    answer = opened(login.form)
    change(answer)
    refused(login, resigned(answer, provider.signer), caplog, reason)


@pytest.mark.parametrize("change", [put(CONDITIONS, "NotOnOrAfter", -50), put(CONDITIONS, "NotBefore", 50),
                                    put(CONDITIONS, "NotOnOrAfter", "9999-12-31T23:59:59")])  # fmt: skip
def test_clocks_may_differ_by_a_minute(people, provider, begin, change):
    login = begin("eve")
    answer = opened(login.form)
    change(answer)
    assert login.send(SAMLResponse=closed(resigned(answer, provider.signer))).status_code == 302
    assert is_in(login.browser)


def test_a_key_of_the_attackers_own(people, begin, caplog):
    """Its certificate is in the signature, and looks the same."""
    login = begin("eve")
    answer = opened(login.form)
    renamed(answer)
    refused(login, resigned(answer, Signer.new()), caplog, "its signature is not valid")


def test_a_signature_of_something_else(people, provider, begin, caplog):
    """The provider's key has signed part of the assertion."""
    login = begin("eve")
    answer = opened(login.form)
    renamed(answer)
    subject = find(answer, ".//saml:Subject")
    subject.set("ID", "_part")
    resigned(answer, provider.signer, element=".//saml:Subject")
    refused(login, answer, caplog, "each by one signature within it")
    find(answer, "saml:Assertion").insert(1, find(answer, ".//ds:Signature"))
    refused(login, answer, caplog)


def test_two_signed_assertions(people, provider, begin, caplog):
    login, other = begin("eve"), begin("eve.anna")
    answer = opened(login.form)
    answer.append(find(opened(other.form), "saml:Assertion"))
    refused(login, answer, caplog, "it must have one assertion as its child, not 2")


def test_an_expired_certificate(people, provider, saml, begin, caplog):
    from cryptography.x509 import load_pem_x509_certificate

    old = Signer.new(days=-1)
    saml(certificates=(load_pem_x509_certificate(old.certificate),))
    login = begin("eve")
    refused(login, resigned(opened(login.form), old), caplog, "certificate has expired")


# What is no answer. ``{}`` is a true one.

FORBIDDEN = "it has a document type, entity, comment, CDATA or processing instruction"
BOMB = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
BYTES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a comment in the name id": (lambda d: d.replace(b"eve.anna<", b"eve.<!---->anna<"), FORBIDDEN),
    "an instruction in the name id": (lambda d: d.replace(b"eve.anna<", b"eve.<?x?>anna<"), FORBIDDEN),
    "CDATA in the name id": (lambda d: d.replace(b"eve.anna<", b"<![CDATA[eve.anna]]><"), FORBIDDEN),
    "an entity bomb": (lambda d: f'<!DOCTYPE x [<!ENTITY a "ha">{BOMB}]><x>&i;</x>'.encode(), FORBIDDEN),
    "a file as an entity": (
        lambda d: b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + d.replace(b"eve.anna<", b"&a;<"),
        FORBIDDEN,
    ),
    "a file as a document type": (lambda d: b'<!DOCTYPE x SYSTEM "http://127.0.0.1:1/x">' + d, FORBIDDEN),
    "a document type in UTF-7": (
        lambda d: b'<?xml version="1.0" encoding="UTF-7"?>+ADw-+ACE-DOCTYPE x+AD4-<x/>',
        "it is not XML in base64",
    ),
    "UTF-16": (lambda d: d.decode().encode("utf-16"), "it is not XML in base64"),
    "a page": (lambda d: b"<html></html>", "its element is 'html'"),
    "nothing": (lambda d: b"", "it is not XML in base64"),
    "a thousand levels": (lambda d: b"<a>" * 1_000 + b"</a>" * 1_000, "it is not XML in base64"),
    "an assertion without an answer": (lambda d: d[d.index(b"<saml:Assertion") : d.index(b"</samlp:Response")],
                                       "its element is"),
}  # fmt: skip


@pytest.mark.parametrize("name", BYTES)
def test_what_is_no_answer(people, begin, caplog, name):
    change, reason = BYTES[name]
    login = begin("eve.anna")
    made = change(base64.b64decode(login.form["SAMLResponse"]))
    refused(login, made, caplog, reason)


@pytest.mark.parametrize("sent", ["", "é", "%%%", "x" * 250_001, "\0"])
def test_what_is_not_even_base64(people, begin, caplog, sent):
    refused(
        begin("eve"), sent, caplog, "it has more than 250,000" if len(sent) > 9 else "it is not XML in base64"
    )


def test_a_body_above_a_megabyte(people, begin):
    answer = Client().post(CALLBACK, begin("eve").form | {"more": "x" * 1_000_001})
    assert answer.status_code == 413


def test_the_largest_nonsense_is_refused_quickly(people, begin, caplog):
    """Anyone can send it, so it must not keep a thread busy: 0.4 s when this was written."""
    login = begin("eve")
    stuffed = "".join(f' a{number}=""' for number in range(17_000))
    answer = base64.b64decode(login.form["SAMLResponse"]).replace(
        b"<saml:Subject>", f"<saml:Subject{stuffed}>".encode()
    )
    assert 200_000 < len(closed(answer)) < 250_000
    began = time.process_time()
    refused(login, answer, caplog, "InvalidDigest")
    assert time.process_time() - began < 4
