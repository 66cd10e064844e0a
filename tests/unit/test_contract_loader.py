"""Contract files: every mistake is named with its file, line and key, and the schema agrees with the loader."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from counterfoil import contracts
from counterfoil.contracts import document, loader
from counterfoil.domain.contract import Contract, digest
from counterfoil.domain.errors import ContractInvalid

GOOD = """\
id: a.b
version: 1
provider: p
effect: e
sources:
  s:
    says: so
    confidence: documented
    document: d
protection:
  kind: none
  source: s
repeat:
  source: s
answers:
  - status: ["200"]
    finding: succeeded
    source: s
"""
SCHEMA = Path(loader.__file__).parent / "schema.json"


def written(folder, text):
    """A contract file with this text."""
    path = folder / "c.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(folder, text):
    """What the loader says of it: line and problem."""
    path = written(folder, text)
    with pytest.raises(ContractInvalid) as error:
        contracts.load(path)
    assert error.value.path == str(path)
    assert str(error.value) == f"{path}:{error.value.line}: {error.value.problem}"
    return error.value.line, error.value.problem


def test_a_contract_is_read_by_path(tmp_path):
    """A file of one's own loads like the catalogue's."""
    path = written(tmp_path, GOOD)
    assert contracts.load(path) == contracts.load(str(path))
    assert contracts.load(path).id == "a.b"


def test_the_catalogue_is_read_by_name():
    """Each name loads, the same each time."""
    kinds = ("eventual", "key", "lookup", "natural", "nothing", "one_shot")
    assert {"caldav.put_event", "function.plain", *(f"lab.{kind}" for kind in kinds)} <= set(contracts.names())
    assert contracts.names() == sorted(contracts.names())
    for name in contracts.names():
        assert isinstance(contracts.load(name), Contract)
        assert digest(contracts.load(name)) == digest(contracts.load(name))


def test_an_unknown_name_is_answered_with_the_known_ones():
    """A typing mistake names what there is."""
    with pytest.raises(ContractInvalid, match=r"there is lab\.key or lab\.lookup"):
        contracts.load("lab.kye")


@pytest.mark.parametrize("name", ["missing.yaml", "folder.yaml", "a\0b.yaml"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    """Missing, a folder or no path at all: a contract error, not a bare one."""
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(ContractInvalid, match="cannot be read"):
        contracts.load(str(tmp_path / name))


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("effect: e\n", "effect: e\neffct: f\n", 5, "effct: unknown key; known are id, "),
        (
            "  kind: none\n",
            "  kind: none\n  carier: none\n",
            12,
            "$.protection: carier: unknown key; known are source, kind, carrier, ",
        ),
        ("    says: so\n", "    says: so\n    sais: so\n", 8, "$.sources[...]: sais: unknown key; known are says, "),
        ("    source: s\n", "    sorce: s\n", 18, "sorce: unknown key; known are source, "),
        ("    finding: succeeded\n", "    finding: done\n", 17, "$.answers[0].finding"),
        ("    finding: succeeded\n", "", 16, "missing required field `finding`"),
        ("version: 1\n", "", 1, "missing required field `version`"),
        ("version: 1\n", "version: one\n", 2, "$.version: must be a whole number, and is text"),
        ("version: 1\n", "version: 0\n", 2, "$.version"),
        ("version: 1\n", "version: 1\nversion: 2\n", 3, "key 'version' stands twice (first in line 2)"),
        ('["200"]', "[200]", 16, "$.answers[0].status[0]: must be text, and is a whole number"),
        ('["200"]', '["20"]', 16, "$.answers[0].status[0]"),
        ("    source: s\n", "    where: {a: 1}\n    source: s\n", 18, "$.answers[0].where"),
        ("    source: s\n", "    where: {/a: [1]}\n    source: s\n", 18, "$.answers[0].where[...]"),
        ("  source: s\nrepeat", "  source: t\nrepeat", 12, "$.protection.source: 't' names no entry of sources"),
        ("  kind: none\n", "  kind: no\n", 11, "reads as bool"),
        ("    says: so\n", "    says: 2026-01-01\n", 7, "reads as timestamp"),
        ("version: 1\n", "version: 0x1\n", 2, "reads as int"),
        ("version: 1\n", "version: 1:30\n", 2, "reads as int"),
        ("    says: so\n", "    says: .inf\n", 7, "reads as float"),
        ("    says: so\n", "    says: ~\n", 7, "reads as null"),
        ("    says: so\n", "    says: !!binary aGk=\n", 7, "reads as binary"),
        ("    says: so\n", "    says: !x so\n", 7, "reads as !x"),
        ("effect: e\n", "effect: &a e\n", 4, "anchors and aliases"),
        ("effect: e\n", "effect: *a\n", 4, "anchors and aliases"),
        ("effect: e\n", "effect: e\n1: x\n", 5, "a key is not text"),
        ("effect: e\n", "effect: e\n? [a]\n: x\n", 5, "a key is not text"),
        ("effect: e\n", "effect: {\n", 6, "is not YAML"),
        ("effect: e\n", "effect: \x01\n", 1, "is not YAML"),
        ("effect: e\n", "effect: " + "[" * 40 + "]" * 40 + "\n", 4, "nested deeper"),
    ],
)
def test_each_mistake_is_named_with_its_line(tmp_path, old, new, line, words):
    """File, line and key of whatever is wrong; nothing wrong is used."""
    assert old in GOOD
    found, problem = refused(tmp_path, GOOD.replace(old, new, 1))
    assert words in problem
    assert found == line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("# nothing\n", "is empty"),
        ("- a\n", "must be a mapping of keys, and is "),
        ("text\n", "must be a mapping of keys, and is "),
        (GOOD + "---\n" + GOOD, "is not YAML"),
        (b"id: \xff\n", "is not UTF-8"),
        ("#" * (document.BYTES_MAX + 1), "longer"),
        ("[" * 5000, "nest"),
        ("[" * 5000 + "]" * 5000, "nest"),
    ],
    ids=["nothing", "a comment", "a list", "a text", "two documents", "not UTF-8", "too long", "cut", "deep"],
)
def test_what_is_no_contract_at_all(tmp_path, text, words):
    """Whatever the bytes are, the answer is a contract error."""
    assert words in refused(tmp_path, text)[1]


def test_all_problems_are_counted(tmp_path):
    """The first is named with its line, the rest by their number."""
    text = GOOD.replace("source: s", "source: t")
    assert refused(tmp_path, text)[1].endswith("(and 2 more)")


def test_a_problem_with_what_is_not_there_is_named_at_its_parent(tmp_path):
    """A missing budget has no line of its own."""
    look = (
        "reconcile: allowed\nlooks: [{by: list, request: {path: /x}, match: {reference: /r}, items: /i, source: s}]\n"
    )
    assert refused(tmp_path, GOOD + look) == (1, "$.read_budget: looks are allowed and none is budgeted")


def test_the_culprit_among_several_members_is_found(tmp_path):
    """Where the model does not say which member is wrong, the line does."""
    text = GOOD.replace("sources:\n", "sources:\n  r:\n    says: so\n    confidence: inferred\n    url: u\n")
    line, problem = refused(tmp_path, text.replace("confidence: documented", "confidence: sure"))
    assert (line, "$.sources[...].confidence" in problem) == (12, True)


def test_values_are_read_as_they_are_written(tmp_path):
    """true, false, null, whole numbers and decimals; everything else is text."""
    where = "    where: {/a: true, /b: false, /c: null, /d: -7, /e: 1.5, /f: on the way}\n"
    contract = contracts.load(written(tmp_path, GOOD.replace("    source: s\n", where + "    source: s\n")))
    assert list(contract.answers[0].where.items()) == [
        ("/a", True), ("/b", False), ("/c", None), ("/d", -7), ("/e", 1.5), ("/f", "on the way"),
    ]  # fmt: skip


def test_the_schema_is_up_to_date():
    """schema.json is what the model says."""
    assert json.loads(SCHEMA.read_text()) == contracts.schema()


def agrees(document):
    """Whether the JSON Schema takes the document."""
    return jsonschema.Draft202012Validator(contracts.schema()).is_valid(document)


@pytest.mark.parametrize("name", contracts.names())
def test_the_schema_takes_what_the_loader_takes(name):
    """A JSON Schema validator finds nothing wrong with the catalogue."""
    jsonschema.Draft202012Validator.check_schema(contracts.schema())
    assert agrees(yaml.safe_load((loader.CATALOGUE / f"{name}.yaml").read_text()))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("effect: e\n", "effct: e\n"),
        ("  kind: none\n", "  kind: none\n  carier: none\n"),
        ("  kind: none\n", "  kind: some\n"),
        ("  kind: none\n", "  kind: none\n  retention_seconds: 0\n"),
        ("  kind: none\n", "  kind: none\n  retention_seconds: forever\n"),
        ("  kind: none\n", "  kind: none\n  carrier: cookie\n"),
        ("version: 1\n", 'version: "1"\n'),
        ("version: 1\n", "version: 0\n"),
        ("version: 1\n", "version: true\n"),
        ("id: a.b\n", "id: A b\n"),
        ('["200"]', "[200]"),
        ('["200"]', "[]"),
        ('["200"]', '["2x0"]'),
        ("    source: s\n", "    where: {a: 1}\n    source: s\n"),
        ("    source: s\n", "    where: {/a: [1]}\n    source: s\n"),
        ("    source: s\n", '    source: ""\n'),
        ("repeat:\n  source: s\n", ""),
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(tmp_path, old, new):
    """An editor that knows only the schema shows the same mistakes."""
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    assert not agrees(yaml.safe_load(text))
    refused(tmp_path, text)


def test_yaml_is_imported_only_to_read_a_file():
    """Importing the catalogue costs no YAML reader."""
    program = "import sys, counterfoil.contracts; print('yaml' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == "False"


def test_no_citation_copies_its_source():
    """Sources say it in our own words: no quotation marks around sentences of others."""
    for name in contracts.names():
        for citation in contracts.load(name).sources.values():
            assert not re.search(r"[\"“”«»]", citation.says)


def test_the_linter_names_every_flaw(tmp_path):
    """Each with its line and its clause, where a load names the first; what is no contract is one flaw."""
    two = GOOD.replace("source: s\n", "source: t\n")
    assert two.count("source: t") > 1
    flaws = contracts.lint(written(tmp_path, two))
    assert len(flaws) == two.count("source: t")
    assert [two.splitlines()[flaw.line - 1].strip() for flaw in flaws] == ["source: t"] * len(flaws)
    assert all(flaw.clause.endswith(".source") and flaw.problem for flaw in flaws)
    (flaw,) = contracts.lint(written(tmp_path, GOOD + "nobody: knows\n"))
    assert (flaw.line, "nobody" in flaw.problem) == (GOOD.count("\n") + 1, True)
    assert contracts.lint(written(tmp_path, GOOD)) == ()
