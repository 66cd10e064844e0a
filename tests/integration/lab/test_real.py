"""Real servers, and a relay that loses, delays or outlives their answers: one effect each, counted where it stands."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest
from tests.integration.mailing import exim_or_skip

import counterfoil
from counterfoil import contracts
from counterfoil.domain.contract import Controls, Match
from counterfoil.lab import commands
from counterfoil.lab.processes import Child, free_port, module, wait_until_listening
from counterfoil.lab.real import servers
from counterfoil.lab.real.relay import Fate
from counterfoil.lab.real.servers import SERVERS, SIGNED

ROOT = Path(__file__).parents[3]
RECOUNT = ROOT / "scripts" / "recount.py"
SECONDS = 110
SETTLED = {"moto": "succeeded", "postgres": "succeeded", "radicale": "succeeded"}
"""What a look finds; the others give nothing to stand on."""


def certify(*arguments):
    """Run the command; its exit code and its last line."""
    argv = [sys.executable, "-m", "counterfoil.lab", "certify", *map(str, arguments), "--json"]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    return run.returncode, json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    """What the command says of one server, and the folder it keeps; made when it is first asked for."""
    made = {}

    def of(server):
        if server not in made:
            kept = tmp_path_factory.mktemp(server) / "kept"
            made[server] = (*certify("--real", server, "--deadline", "1.5", "--keep", kept), kept)
        return made[server]

    return of


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
def test_every_fate_of_an_answer_leaves_one_effect(server, certified):
    """Lost, late or outlived: one send, one effect, and what the receipt says is found or a person's; recounted."""
    if server == "exim":
        exim_or_skip()
    code, result, kept = certified(server)
    assert (code, result["why"], result["automatic_second_sends"]) == (0, [], 0)
    assert [row["case"] for row in result["rows"]] == [fate.value for fate in Fate]
    for row in result["rows"]:
        assert (row["server"], row["runner"], row["sent"], row["effects"]) == (server, "guarded", 1, 1)
        stands = SETTLED.get(server, "manual_review")
        assert (row["outcome"], row["lifecycle"]) == ("succeeded" if server in SETTLED else "unknown", stands)
    counted = subprocess.run(
        [sys.executable, "-I", RECOUNT, kept, "--json"], capture_output=True, text=True, check=False
    )
    counts = json.loads(counted.stdout)
    assert (counted.returncode, counts["disagreements"]) == (0, [])
    assert (counts["effects"], counts["sends"], counts["automatic_second_sends"]) == (3, 3, 0)


@pytest.mark.slow
def test_a_rule_that_is_off_is_noticed():
    """A worker that repeats what timed out sends a second mail: exit code 1, and the row says so."""
    code, result = certify("--real", "smtp", "--deadline", "1", "--sabotage", "retry_on_timeout")
    assert (code, result["ok"]) == (1, False)
    assert result["automatic_second_sends"] > 0
    assert any(row["effects"] > 1 for row in result["rows"])


@pytest.mark.slow
def test_a_report_that_was_edited_is_found_out(certified, tmp_path):
    """Another number of second sends, and another of effects."""
    kept = shutil.copytree(certified("smtp")[-1], tmp_path / "kept")
    path = kept / "result.json"
    result = json.loads(path.read_text())
    result["automatic_second_sends"] = 1
    result["rows"][0]["effects"] = 2
    path.write_text(json.dumps(result))
    counted = subprocess.run([sys.executable, "-I", RECOUNT, kept], capture_output=True, text=True, check=False)
    assert counted.returncode == 1
    assert "automatic_second_sends: reported 1, counted 0" in counted.stdout
    assert "effects: reported 2, counted 1" in counted.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--real", "nobody"), "takes some of"),
        (("--real", ""), "takes some of"),
        (("--real", "smtp", "--", "true"), "takes the command to certify after a bare --, or --real"),
        (("--real", "smtp", "--junit", "x.xml"), "--real has none"),
    ],
)
def test_what_cannot_be_asked_is_said(arguments, said):
    """Exit code 3, and why."""
    argv = [sys.executable, "-m", "counterfoil.lab", "certify", "--json", *arguments]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert run.returncode == 3
    assert said in json.loads(run.stdout.splitlines()[-1])["error"]


@pytest.mark.parametrize(
    ("server", "missing"), [("exim", "exim4-daemon-light"), ("git", "git"), ("smtp,exim", "exim4-daemon-light")]
)
def test_a_program_that_is_not_installed_is_named_with_what_brings_it(server, missing, monkeypatch, tmp_path, capsys):
    """Exit code 3 before anything is started, as for a library that is missing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(servers, "DAEMONS", str(tmp_path))
    assert commands.run(["certify", "--real", server, "--json"]) == 3
    said = json.loads(capsys.readouterr().out.splitlines()[-1])["error"]
    assert said.endswith(f"is not installed; the system's package {missing} brings it")


# -- a server that breaks its own contract -----------------------------------------------------------------------------


class Instances:
    """Moto's EC2, which takes a ClientToken and looks at none: the same token twice is two instances."""

    def __init__(self, port):
        self._url = f"http://127.0.0.1:{port}/"

    def ask(self, action, **fields):
        """One request of the query protocol."""
        body = urllib.parse.urlencode({"Action": action, "Version": "2016-11-15", **fields}).encode()
        request = urllib.request.Request(self._url, body, {"Authorization": SIGNED.replace("/s3/", "/ec2/")})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return ET.fromstring(answer.read())

    def run(self, token):
        """Start one instance under a token, marked with it as careful callers do."""
        tags = {"TagSpecification.1.ResourceType": "instance", "TagSpecification.1.Tag.1.Key": "operation"}
        self.ask(
            "RunInstances", ImageId="ami-12c6146b", MinCount="1", MaxCount="1", ClientToken=token,
            **tags, **{"TagSpecification.1.Tag.1.Value": token},
        )  # fmt: skip

    def found(self, *tokens):
        """Every instance that carries one of these marks."""
        filters = {f"Filter.1.Value.{n}": token for n, token in enumerate(tokens, start=1)}
        listed = self.ask("DescribeInstances", **{"Filter.1.Name": "tag:operation"}, **filters)
        name = listed.tag.partition("}")[0] + "}"
        return [
            {
                "id": one.findtext(f"{name}instanceId"),
                "operation": one.findtext(f"{name}tagSet/{name}item/{name}value"),
                "image": one.findtext(f"{name}imageId"),
                "account": "shop",
            }
            for one in listed.iter()
            if one.tag == f"{name}item" and one.find(f"{name}instanceId") is not None
        ]


LOOKUP = contracts.load("lab.lookup")
LOOK = msgspec.structs.replace(
    LOOKUP.looks[0],
    items="/items", complete=True, external_id="/id", result={},
    match=Match(account="/account", reference="/operation", material={"/image": "/image"}),
    controls=Controls(positive="none", negative="inline"),
)  # fmt: skip
EC2 = msgspec.structs.replace(LOOKUP, id="ec2.run_instances", request=None, looks=(LOOK,), result={}, secrets=())


@pytest.mark.slow
def test_two_instances_of_one_token_open_a_discrepancy_and_are_no_success(tmp_path):
    """The answer is lost, the token protects nothing, and an override starts a second one: a look finds both."""
    port = free_port()
    with Child(module("moto.server", "-H", "127.0.0.1", "-p", str(port)), ready_seconds=None) as child:
        wait_until_listening(child, port)
        instances = Instances(port)
        with counterfoil.open(tmp_path / "receipts.db", actor="robot") as ledger:

            def launch(image):
                instances.run(counterfoil.provider_key())
                raise TimeoutError  # the answer is lost

            def seen(question):
                return {"items": instances.found(question.provider_key, question.negative)}

            act = ledger.action(
                launch,
                account="shop",
                owner="ann",
                authoriser="ben",
                key=lambda image: "web-1",
                contract=EC2,
                look=seen,
            )
            receipt = act("ami-12c6146b")
            assert receipt.outcome == "unknown"
            ledger.decisions.override(receipt.id, by="dana", reason="nothing is to be seen", how="test")
            ledger.attempt(receipt.id, basis="operator_override")
            assert len(instances.found(receipt.id)) == 2
            found = ledger.reconcile(receipt.id)
            assert (found.discrepancy, found.lifecycle) == ("open", "manual_review")
            assert found.operation.unresolved
            assert act("ami-12c6146b").id == receipt.id
            assert len(instances.found(receipt.id)) == 2
            with pytest.raises(counterfoil.CounterfoilError):
                ledger.get(receipt.id).expect()
