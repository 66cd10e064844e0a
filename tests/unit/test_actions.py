"""Actions files and modules: what is wrong is named with file, line and key, and nothing wrong is used."""

from __future__ import annotations

import contextlib
import sys

import pytest

from counterfoil.domain.errors import ActionsInvalid, BadValue, ContractInvalid, StoreUnsafe
from counterfoil.domain.intent import Occurrence, Siblings
from counterfoil.runtime import actions
from counterfoil.store.sqlite import SqliteStore

HEAD = "actor: agent:test\ntenant: shop\n"
ENTRY = """actions:
  refund:
    contract: lab.key
    base_url: https://example.invalid/api
    account: acct_1
    owner: payments
    authoriser: payments-lead
    secrets: {/headers/authorization: "env:REFUND_AUTH"}
"""


@pytest.fixture
def write(tmp_path):
    """Write an actions file and return its path."""

    def write(text, name="shop.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def load(tmp_path, write):
    """Load an actions file's text with a store beside the test."""
    opened = []

    def load(text, **options):
        options.setdefault("store", tmp_path / "test.db")
        opened.append(actions.load(write(text), **options))
        return opened[-1]

    yield load
    for ledger in opened:
        ledger.close()


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module into the current folder; it is forgotten with the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_whole_file_is_registered(load):
    """Every key of the file stands in the action, in the words of the library."""
    more = """    effect: refund.money
    occurrence: day
    siblings: held
    effect_by: [/order]
    immaterial: {/note: a note for the shop}
    value: /amount
    floats: refuse
    result: [/id]
    control: order-0
    longest_delivery: {seconds: 900, by: payments, why: measured over a year}
    proxy: http://127.0.0.1:9
"""
    ledger = load(HEAD + ENTRY + more)
    assert (ledger.actor, ledger.tenant) == ("agent:test", "shop")
    action = ledger.registry["refund"].action
    assert (action.effect, action.account, action.owner, action.authoriser) == (
        "refund.money", "acct_1", "payments", "payments-lead",
    )  # fmt: skip
    assert (action.occurrence, action.siblings, action.floats_refused) == (Occurrence.DAY, Siblings.HELD, True)
    assert (action.effect_pointers, action.immaterial, action.result) == (
        ("/order",),
        {"/note": "a note for the shop"},
        ("/id",),
    )
    assert (action.longest_delivery, action.longest_delivery_by) == (900.0, "payments")
    assert action.destination == "https://example.invalid/api"
    order = ledger.registry["refund"].order({"order": "1", "amount": 15}, actor="a", scopes={}, key="k")
    assert (order.value, order.intent.tenant) == (15.0, "shop")


def test_the_key_is_read_from_the_payload(load):
    """A pointer in the actions file is trusted code: it names the occurrence, or says what is missing."""
    registered = load(ENTRY + "    key: /order\n").registry["refund"]
    assert registered.order({"order": "o-1"}, actor="a", scopes={}).intent.key == "o-1"
    with pytest.raises(BadValue, match="'/order': is missing"):
        registered.order({"amount": 1}, actor="a", scopes={})


def test_the_store_stands_beside_the_file_unless_another_is_named(tmp_path, write, monkeypatch):
    """A relative store is relative to its file, an explicit one wins, and nothing named is the current folder's."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "etc"
    folder.mkdir()
    path = write("store: here.db\n" + ENTRY, "etc/shop.yaml")
    for store, expected in ((None, folder / "here.db"), (tmp_path / "x.db", tmp_path / "x.db")):
        with actions.load(path, store=store) as ledger:
            assert ledger.store.path == expected
    assert actions.store_of(path) == folder / "here.db"
    bare = write(ENTRY)
    assert actions.store_of(bare) is None
    with actions.load(bare) as ledger:
        assert ledger.store.path == tmp_path / "receipts.db"


def test_a_store_that_must_be_there_is_not_made(tmp_path, write):
    """Whoever only reads or decides makes no receipts file."""
    with pytest.raises(StoreUnsafe, match="does not exist"):
        actions.load(write(ENTRY), store=tmp_path / "none.db", new=False)
    assert not (tmp_path / "none.db").exists()


def test_files_that_an_action_names_stand_beside_it(tmp_path, write, monkeypatch):
    """Contract and secret files are relative to the actions file, whatever the current folder is."""
    from counterfoil.contracts.loader import CATALOGUE

    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "own.yaml").write_text((CATALOGUE / "lab.key.yaml").read_text("utf-8"), "utf-8")
    (tmp_path / "etc" / "auth").write_text("Bearer x\n", "utf-8")
    text = ENTRY.replace("lab.key", "own.yaml").replace("env:REFUND_AUTH", "file:auth")
    path = write(text, "etc/shop.yaml")
    monkeypatch.chdir("/")
    with actions.load(path, store=tmp_path / "x.db") as ledger:
        registered = ledger.registry["refund"]
        assert registered.action.contract.id == "lab.key"
        registered.check_sendable(registered.order({"n": 1}, actor="a", scopes={}, key="k"))


WRONG = [
    ("", 1, "is empty"),
    ("a: b: c", 1, "is not YAML"),
    ("- a\n", 1, "must be a mapping of keys, and is a list"),
    (ENTRY.replace("actions:", "action:"), 1, "action: unknown key"),
    (HEAD, 1, "actions"),
    ("actions: {}\n", 1, "actions: has 0 entries"),
    ("store: 1\n" + ENTRY, 1, "store: must be text, and is a whole number"),
    ("store: a.db\nstore: b.db\n" + ENTRY, 2, "'store' stands twice (first in line 1)"),
    (ENTRY + "    account: other\n", 9, "'account' stands twice (first in line 5)"),
    (ENTRY + "    acount: other\n", 9, "actions.refund.acount: unknown key"),
    (ENTRY + "    siblings: alone\n", 9, "actions.refund.siblings: must be one of held, independent"),
    (ENTRY + "    effect_by: [/a, 1]\n", 9, "actions.refund.effect_by.1: must be text"),
    (ENTRY + "    effect_by: [/a, b]\n", 9, "actions.refund.effect_by.1: "),
    (ENTRY + "    immaterial: {a: because}\n", 9, "actions.refund.immaterial.a: "),
    (ENTRY + "    key: order\n", 9, "actions.refund.key: "),
    (ENTRY + "    value: order\n", 9, "actions.refund.value: "),
    (ENTRY + "    longest_delivery: 900\n", 9, "actions.refund.longest_delivery: must be a mapping of keys or null"),
    (ENTRY + "    longest_delivery: {seconds: 900}\n", 9, "longest_delivery: object missing required field `by`"),
    (ENTRY + "    longest_delivery: {seconds: -1, by: a, why: b}\n", 9, "must be finite and not negative"),
    (ENTRY + "    longest_delivery: {seconds: .inf, by: a, why: b}\n", 9, "reads as float"),
    (ENTRY + "    occurrence: yes\n", 9, "reads as bool"),
    (ENTRY.replace("    account: acct_1\n", ""), 2, "actions.refund: object missing required field `account`"),
    (ENTRY.replace("acct_1", "007"), 5, "reads as int"),
    (ENTRY.replace("https://", "ftp://"), 2, "actions.refund: base_url"),
    (ENTRY.replace("/headers/authorization", "/headers/cookie"), 2, "actions.refund: "),
    (ENTRY.replace('    secrets: {/headers/authorization: "env:REFUND_AUTH"}\n', ""), 2, "has no reference here"),
    (ENTRY + "    occurrence: &a day\n", 9, "anchors and aliases"),
    ("actions: " + "{a: " * 30 + "1" + "}" * 30, 1, "nested deeper"),
]


@pytest.mark.parametrize(("text", "line", "problem"), WRONG)
def test_a_mistake_is_named_with_its_file_line_and_key(load, text, line, problem):
    """Unknown keys, keys that stand twice, wrong types and wrong values: where, which and why."""
    with pytest.raises(ActionsInvalid) as refused:
        load(text)
    assert f"shop.yaml:{line}: " in str(refused.value), refused.value
    assert problem in str(refused.value)


@pytest.mark.parametrize("value", ["Bearer sk_live_1", "sk_live_1", "env:", "env:a b", "file:", "vault:sk_live_1"])
def test_a_secret_that_was_put_into_the_file_is_not_repeated(load, value):
    """Only a reference is allowed; what stands there instead may be the secret and appears in no error."""
    with pytest.raises(ActionsInvalid, match="must be env:NAME or file:PATH") as refused:
        load(ENTRY.replace("env:REFUND_AUTH", value))
    assert "sk_live" not in str(refused.value)
    assert "shop.yaml:8: actions.refund.secrets./headers/authorization" in str(refused.value)


def test_a_contract_that_is_wrong_names_itself(load):
    """A contract's own mistake is the contract's, with its own file."""
    with pytest.raises(ContractInvalid, match="no contract has that name"):
        load(ENTRY.replace("lab.key", "lab.kye"))


def test_a_file_that_cannot_be_read_is_named(tmp_path, write):
    """Missing, too long, not UTF-8 or a folder: the file and the reason."""
    with pytest.raises(ActionsInvalid, match=r"none\.yaml: cannot be read: No such file"):
        actions.load(tmp_path / "none.yaml")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(ActionsInvalid, match="cannot be read: Is a directory"):
        actions.load(tmp_path / "folder.yaml")
    with pytest.raises(ActionsInvalid, match="longer than"):
        actions.load(write("#" * 300_000))
    path = write("")
    path.write_bytes(b"actor: a\nactions: \xff\n")
    with pytest.raises(ActionsInvalid, match=r"shop\.yaml:2: is not UTF-8"):
        actions.load(path)


@pytest.mark.parametrize("spec", ["", "shop", "shop.yml.txt", "a:b:c", "a b:c", "a:", ":b", "../a:b", "a:b()"])
def test_what_is_neither_a_file_nor_a_module_is_refused(spec):
    """Nothing is imported and nothing is read for a text of another form."""
    with pytest.raises(ActionsInvalid, match=r"neither a FILE\.yaml nor MODULE:LEDGER"):
        actions.load(spec)


def test_a_module_gives_its_ledger_or_makes_one(module, tmp_path):
    """An attribute that is a ledger is taken; one that is called must return one."""
    module(
        "books", "import counterfoil\nbook = counterfoil.open('book.db')\ndef make():\n    return book\nnothing = 1\n"
    )
    for attribute in ("book", "make"):
        assert actions.load(f"books:{attribute}").store.path == tmp_path / "book.db"
    with pytest.raises(ActionsInvalid, match="there is no other in books"):
        actions.load("books:other")
    with pytest.raises(ActionsInvalid, match="nothing is int, not a ledger"):
        actions.load("books:nothing")
    assert actions.load("books:book", store=tmp_path / "book.db").store.path == tmp_path / "book.db"
    with pytest.raises(BadValue, match=r"opens .*book\.db itself"):
        actions.load("books:book", store=tmp_path / "other.db")
    assert not (tmp_path / "other.db").exists()


def test_a_module_that_cannot_be_imported_says_why(module):
    """A module that is not there, or has a mistake, is the deployment's to mend."""
    module("broken", "import no_such_thing_at_all\n")
    module("worse", "def :\n")
    for spec, problem in (
        ("absent_module:x", "No module"),
        ("broken:x", "no_such_thing"),
        ("worse:x", "invalid syntax"),
    ):
        with pytest.raises(ActionsInvalid, match=problem):
            actions.load(spec)


def test_what_fails_half_way_leaves_the_store_closed(load, tmp_path):
    """A file that is refused after its store was opened can be mended and loaded again in the same process."""
    with pytest.raises(ActionsInvalid):
        load(ENTRY.replace("https://", "ftp://"))
    assert not list(tmp_path.glob("*.db-wal"))
    assert "refund" in load(ENTRY).registry


def test_a_call_at_the_top_of_an_actions_module_is_refused(tmp_path, monkeypatch):
    """Naming a module's ledger sends nothing of what stands at its top, and says where the call belongs."""
    (tmp_path / "calls_at_once.py").write_text(
        "import counterfoil\n"
        "sent = []\n"
        "ledger = counterfoil.open('receipts.db')\n"
        "@ledger.action(owner='o', authoriser='x', key=lambda text: text)\n"
        "def post(text):\n"
        "    sent.append(text)\n"
        "post('hello')\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ActionsInvalid, match="__main__"):
        actions.load("calls_at_once:ledger")
    with contextlib.closing(SqliteStore(tmp_path / "receipts.db")) as store:
        assert store.operations(limit=1) == []


def test_production_refuses_what_nobody_owns(load):
    """A developer is warned; a deployment is refused, at the action's own line."""
    entry = "\n".join(line for line in ENTRY.splitlines() if not line.strip().startswith(("owner:", "authoriser:")))
    with pytest.warns(UserWarning, match="no owner and no authoriser"):
        load(HEAD + entry)
    with pytest.raises(ActionsInvalid, match=r"shop.yaml:\d+: actions.refund: .*declares no owner and no authoriser"):
        load("production: true\n" + HEAD + entry)
