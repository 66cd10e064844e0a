"""Bodies: what may be erased, and the digest that stays."""

from __future__ import annotations

import hashlib

from tests.crash.stepping import PAYLOAD, claimed, erased, held

from counterfoil.domain.payload import SALT_BYTES, content, frozen_payload, salted_digest, seal


def test_a_body_is_salt_and_content():
    """The content comes back whole, whatever it holds; the digest covers the salt too."""
    salt = b"s" * SALT_BYTES
    for text in (b"", b"{}", b"\x00" * 40):
        body = seal(salt, text)
        assert content(body) == text
        assert salted_digest(body) == "sd1:" + hashlib.sha256(salt + text).hexdigest()
    assert salted_digest(seal(b"t" * SALT_BYTES, b"{}")) != salted_digest(seal(salt, b"{}"))


def test_the_payload_is_the_one_first_proposed():
    """A claim and a proposal both freeze it; once erased it is gone, and nothing else takes its place."""
    for history in (claimed(), held()):
        assert frozen_payload(history) == PAYLOAD
        assert frozen_payload(erased(history)) is None
