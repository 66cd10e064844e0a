"""What surrounds an exchange does not reach into it: no environment, no earlier connection, no later one."""

from __future__ import annotations

import threading

import pytest
from tests.integration.wire.conversation import PATIENT, converse, request_to
from tests.integration.wire.servers import CERTIFICATE, Peer, Server, answering, dead_port

from counterfoil.domain.answer import Silent
from counterfoil.providers.wire import Limits, exchange, trusted

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


def test_two_exchanges_use_two_connections():
    """A connection the server would keep is closed by us, so that none is ever used twice."""
    closed: list[bytes] = []

    def script(peer: Peer) -> None:
        peer.take()
        peer.say(b"HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n")
        closed.append(peer.sock.recv(1))  # an orderly end; it would wait as long as the connection stood

    with Server(script) as server:
        for _ in range(2):
            assert exchange(request_to(server.url()), deadline_seconds=PATIENT).complete is True
    assert server.connections == 2
    assert closed == [b"", b""]
    assert [seen.headers["connection"] for seen in server.requests] == ["close", "close"]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_proxies_of_the_environment_are_ignored(monkeypatch, scheme):
    """Variables that send every other client elsewhere send nothing of ours anywhere."""
    with Server(answering(OK)) as trap:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, trap.url(""))
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        conversation = converse(answering(OK), scheme=scheme)
    assert conversation.answer.complete is True
    assert trap.connections == 0


def test_credentials_of_the_environment_are_ignored(monkeypatch, tmp_path):
    """A netrc entry for the very host adds nothing to the request."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password canary-of-netrc\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text(netrc.read_text())
    conversation = converse(answering(OK))
    assert "authorization" not in conversation.server.requests[0].headers


def test_trust_of_the_environment_is_ignored(monkeypatch):
    """A variable that makes OpenSSL trust another authority does not make us."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    monkeypatch.setenv("SSL_CERT_DIR", str(CERTIFICATE.parent))
    conversation = converse(answering(OK), scheme="https", verify=True)
    assert conversation.answer == Silent(may_have_left=False, reason="tls_failed")


def test_session_keys_are_not_written_for_the_environment(monkeypatch, tmp_path):
    """A variable that makes other clients write down their session keys makes us write nothing."""
    keys = tmp_path / "keys.log"
    monkeypatch.setenv("SSLKEYLOGFILE", str(keys))
    assert converse(answering(OK), scheme="https").answer.complete is True
    assert not keys.exists()


def test_trust_can_be_shared():
    """One context serves many exchanges, and a folder of certificates is as good as a file."""
    trust = trusted(str(CERTIFICATE))
    with Server(answering(OK), scheme="https") as server:
        request = request_to(server.url(), verify=True)
        answers = [exchange(request, deadline_seconds=PATIENT, trust=trust) for _ in range(2)]
    assert [answer.complete for answer in answers] == [True, True]
    with pytest.raises(ValueError, match="cannot be read"):
        trusted(str(CERTIFICATE.with_name("nothing.pem")))


def test_tls_below_1_2_is_not_spoken():
    """The context refuses what RFC 8996 retired, verifies names, and offers HTTP/1.1 alone."""
    trust = trusted(verify=True)
    assert trust.minimum_version.name == "TLSv1_2"
    assert trust.check_hostname is True
    assert trust.verify_mode.name == "CERT_REQUIRED"


def test_the_other_attempts_of_a_host_are_not_ours():
    """Nothing is tried again after a refused connection: the deadline is far away and the answer comes at once."""
    with dead_port() as port:
        before = threading.active_count()
        answer = exchange(request_to(f"http://127.0.0.1:{port}/"), deadline_seconds=PATIENT)
        assert threading.active_count() == before
    assert answer.reason == "connect_failed"


@pytest.mark.parametrize("field", ["head_bytes_max", "body_bytes_max", "setup_seconds_max"])
def test_a_limit_below_zero_is_refused(field):
    """Zero is a limit; less than zero is a mistake, and so is what is no number."""
    assert getattr(Limits(**{field: 0}), field) == 0
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError, match="limit"):
            Limits(**{field: wrong})
