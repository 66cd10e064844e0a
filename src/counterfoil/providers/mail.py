"""One mail: the fields of a payload, its envelope, and the bytes that stand for both; composed the same every time."""

from __future__ import annotations

import hashlib
import re
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

import msgspec

from counterfoil.domain.errors import PayloadRefused
from counterfoil.domain.template import document_of

RECIPIENTS_MAX = 100
"""What every server takes in one transaction (RFC 5321 section 4.5.3.1.8)."""
ADDRESS_CHARS_MAX = 254
"""A path may have 256 octets, its angle brackets included (RFC 5321 section 4.5.3.1.3)."""
SUBJECT_CHARS_MAX = 900

_SPEC = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_PARTY = re.compile(
    rf'(?:(?P<name>[^\s<>@",;:\\](?:[^<>@",;:\\\x00-\x1f\x7f]*)) <(?P<spec>{_SPEC})>|(?P<bare>{_SPEC}))'
)
_LINE = re.compile(r"[^\x00-\x1f\x7f]*")
_POLICY = SMTP.clone(cte_type="7bit", max_line_length=78)
"""Every line short and of seven bits: no server has to convert anything, and none may read two mails in one."""


class Mail(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"sender": "from"}):
    """The payload of a mail; an address is `ann@example.org` or `Ann <ann@example.org>`."""

    sender: str
    to: tuple[str, ...]
    cc: tuple[str, ...] = ()
    bcc: tuple[str, ...] = ()
    reply_to: tuple[str, ...] = ()
    subject: str = ""
    text: str
    html: str = ""


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a mail is from and for, as the server is told."""

    sender: str
    recipients: tuple[str, ...]
    message_id: str


def read(payload: bytes) -> Mail:
    """Read a payload as a mail.

    Raises:
        PayloadRefused: it has other fields, or an address or a line that no mail can carry as it is written.
    """
    try:
        mail = msgspec.convert(document_of(payload), Mail)
    except msgspec.ValidationError as error:
        raise PayloadRefused("", f"is no mail: {error}") from None
    for field in ("to", "cc", "bcc", "reply_to"):
        for place, party in enumerate(getattr(mail, field)):
            _party(f"/{field}/{place}", party)
    _party("/from", mail.sender)
    if not _LINE.fullmatch(mail.subject) or len(mail.subject) > SUBJECT_CHARS_MAX:
        raise PayloadRefused("/subject", f"is not one line of at most {SUBJECT_CHARS_MAX} characters")
    if not 0 < len(_recipients(mail)) <= RECIPIENTS_MAX:
        raise PayloadRefused("/to", f"with cc and bcc names none, or more than {RECIPIENTS_MAX} recipients")
    return mail


def envelope_of(mail: Mail, key: str) -> Envelope:
    """Whom it is from and for; the Message-ID is made of the operation's own key, so that it never changes."""
    sender = _party("/from", mail.sender).addr_spec
    return Envelope(sender=sender, recipients=_recipients(mail), message_id=f"<{key}@{sender.rpartition('@')[2]}>")


def compose(mail: Mail, envelope: Envelope, date: str = "") -> bytes:
    """Write the message, without those it is blind-copied to.

    Args:
        mail: its fields.
        envelope: of the same mail.
        date: when it is sent; the one thing that differs from one attempt to the next.
    """
    message = EmailMessage(policy=_POLICY)
    message["Message-ID"] = envelope.message_id
    if date:
        message["Date"] = date
    message["From"] = _party("/from", mail.sender)
    for name, parties in (("To", mail.to), ("Cc", mail.cc), ("Reply-To", mail.reply_to)):
        if parties:
            message[name] = [_party(name, party) for party in parties]
    message["Subject"] = mail.subject
    message.set_content(mail.text, charset="utf-8")
    if mail.html:
        message.add_alternative(mail.html, subtype="html", charset="utf-8")
        # The library would draw one by lot, and nobody could approve the bytes.
        message.set_boundary("=_" + hashlib.sha256(envelope.message_id.encode()).hexdigest()[:32])
    return message.as_bytes()


def dotted(message: bytes) -> bytes:
    """The message as DATA carries it (RFC 5321 section 4.5.2), its last line ended and the final dot left out."""
    lines = message.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return b"".join((b"." if line.startswith(b".") else b"") + line + b"\r\n" for line in lines)


def _party(place: str, said: str) -> Address:
    parts = _PARTY.fullmatch(said)
    spec = "" if parts is None else parts["spec"] or parts["bare"]
    if parts is None or len(spec) > ADDRESS_CHARS_MAX or ".." in spec or spec.startswith(".") or ".@" in spec:
        raise PayloadRefused(place, "is no address of the form ann@example.org or Ann <ann@example.org>, in ASCII")
    return Address(display_name=(parts["name"] or "").strip(), addr_spec=spec)


def _recipients(mail: Mail) -> tuple[str, ...]:
    """Each of them once, however often and in whatever field it is named."""
    parties: Any = (*mail.to, *mail.cc, *mail.bcc)
    return tuple(dict.fromkeys(_party("/to", party).addr_spec for party in parties))
