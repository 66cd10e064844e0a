"""Every command when it cannot do what was asked: one sentence with its code, an exit code that says who must act."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys

import pytest

from counterfoil.cli import exits
from counterfoil.cli.parser import VERBS

SECRET = "sk_live_do_not_show"

pytestmark = pytest.mark.slow  # each test starts at least one interpreter

CPU_SECONDS_MAX = 0.15
"""What a command line may cost above bare Python before it does anything."""

NAMED = ("--as", "Front Desk", "--reason", "because")
ID = "op_0000000000000000000000000000"

NEED_A_STORE = [
    ("attempt", ID, *NAMED),
    ("reconcile", ID),
    ("reconcile", "--all"),
    ("resolve", ID, "--outcome", "succeeded", "--evidence", "a=b", *NAMED),
]


def write_actions(folder):
    """An actions file that is right, for a provider that nobody asks."""
    (folder / "shop.yaml").write_text(
        "actions: {pay: {contract: lab.key, base_url: 'http://127.0.0.1:1', account: a, owner: o, authoriser: p,"
        " secrets: {/headers/authorization: 'env:PAY_AUTH'}}}\n",
        "utf-8",
    )


def test_the_words_of_help(commands):
    """Every verb and every exit code is in the help; every verb has a help of its own."""
    said = commands("--help")
    assert (said.code, said.err) == (0, "")
    for verb, line in VERBS:
        assert verb in said.out
        assert line.split()[0] in said.out
    for code, meaning in exits.EXITS:
        assert f"  {code:<4} {meaning}" in said.out
    for verb, _ in VERBS:
        told = commands(verb, "--help")
        assert (told.code, told.err) == (0, "")
        assert "--json" in told.out
        assert "exit codes:" in told.out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "VERB"),
        (("frobnicate",), "invalid choice: 'frobnicate'"),
        (("run",), "FILE.jsonl"),
        (("run", "a", "b"), "unrecognized arguments: b"),
        (("run", "a", "--frob"), "unrecognized arguments: --frob"),
        (("run", "a", "--conc", "1"), "unrecognized arguments"),
        (("run", "a", "--concurrency"), "expected one argument"),
    ],
)
def test_a_command_line_that_cannot_be_read(commands, words, problem):
    """The fault is named with its code, on standard error or as the one JSON object; nothing is made."""
    said = commands(*words)
    assert (said.code, said.out) == (2, "")
    assert problem in said.err
    assert said.err.rstrip().endswith("(CF-109)")
    told = commands(*words, "--json")
    assert (told.code, told.err) == (2, "")
    assert told.json["error"]["code"] == "CF-109"
    assert problem in told.json["error"]["message"]
    assert list(commands.folder.iterdir()) == []


@pytest.mark.parametrize("words", NEED_A_STORE, ids=lambda words: " ".join(words[:2]))
def test_no_verb_but_those_that_send_makes_a_store(commands, words):
    """A receipts file that is not there is the deployment's to mend, and is not made by looking for it."""
    write_actions(commands.folder)
    said = commands(*words, "--actions", "shop.yaml", "--store", "none.db")
    assert said.code == 4, said
    assert "none.db: does not exist" in said.err
    assert "Traceback" not in said.err
    assert [path.name for path in commands.folder.iterdir()] == ["shop.yaml"]


@pytest.mark.parametrize(
    ("actions", "code", "problem"),
    [
        ("none.yaml", "CF-205", "cannot be read"),
        ("no_module:ledger", "CF-205", "No module named"),
        ("what is this", "CF-205", "MODULE:LEDGER"),
        ("wrong.yaml", "CF-205", "wrong.yaml:1: action: unknown key"),
    ],
)
def test_actions_that_are_wrong(commands, actions, code, problem):
    """The file, line and key are named; nothing is sent and no store is made."""
    commands.write("a.jsonl", {"action": "a", "key": "k", "payload": {}})
    (commands.folder / "wrong.yaml").write_text("action: {}\n", "utf-8")
    said = commands("run", "a.jsonl", "--actions", actions, "--json")
    assert (said.code, said.err) == (4, "")
    assert said.json["error"]["code"] == code
    assert problem in said.json["error"]["message"]
    assert not (commands.folder / "receipts.db").exists()


def store_text(path):
    """No database."""
    path.write_text("not a database at all, but long enough to look like one" * 20, "utf-8")


def store_folder(path):
    """No file."""
    path.mkdir()


def store_foreign(path):
    """Another program's database."""
    import sqlite3

    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t (a)")
    db.close()


@pytest.mark.parametrize("make", [store_text, store_folder, store_foreign])
def test_a_store_that_is_none(commands, make):
    """Text, a folder and another program's database are refused as unsafe, and left as they are."""
    write_actions(commands.folder)
    make(commands.folder / "receipts.db")
    commands.write("a.jsonl", {"action": "pay", "key": "k", "payload": {}})
    said = commands("run", "a.jsonl", "--actions", "shop.yaml", env={"PAY_AUTH": SECRET})
    assert said.code == 4, said
    assert "CF-201" in said.err
    assert "Traceback" not in said.err


def test_a_store_in_a_folder_that_is_not_there(commands):
    """The folder is named, and not made."""
    write_actions(commands.folder)
    commands.write("a.jsonl", {"action": "pay", "key": "k", "payload": {}})
    said = commands("run", "a.jsonl", "--actions", "shop.yaml", "--store", "no/such/receipts.db")
    assert said.code == 4
    assert "does not exist" in said.err
    assert not (commands.folder / "no").exists()


def without_privilege():
    """Give up the root user's right to write what is read-only; another user has none to give up."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH (capabilities(7))
            if libc.prctl(24, capability, 0, 0, 0) != 0:  # PR_CAPBSET_DROP
                raise OSError(ctypes.get_errno(), "prctl")


def test_a_read_only_store_sends_nothing(commands):
    """A store that this user cannot write is refused before anything is asked."""
    write_actions(commands.folder)
    commands.write("a.jsonl", {"action": "pay", "key": "k", "payload": {}})
    run = ("run", "a.jsonl", "--actions", "shop.yaml", "--store", "books/receipts.db", "--json")
    (commands.folder / "books").mkdir()
    assert commands(*run, env={"PAY_AUTH": "x"}).json["not_sent"] == 1
    (commands.folder / "books" / "receipts.db").chmod(0o400)
    for mode in (0o700, 0o500):
        (commands.folder / "books").chmod(mode)
        said = commands(*run, env={"PAY_AUTH": "x"}, preexec_fn=without_privilege)
        assert (said.code, said.json["error"]["code"]) == (4, "CF-201"), said
    (commands.folder / "books").chmod(0o700)


def test_a_defect_shows_its_place_and_not_its_text(commands):
    """What no error of ours describes keeps its traceback; its text may quote a secret and is only shown when asked."""
    commands.write("a.jsonl", {"action": "pay", "key": "k", "payload": {}})
    (commands.folder / "secret.py").write_text("import os\ndef ledger():\n    raise ValueError(os.environ['PAY'])\n")
    run = ("run", "a.jsonl", "--actions", "secret:ledger")
    said = commands(*run, env={"PAY": SECRET})
    assert said.code == 3
    assert "Traceback" in said.err
    assert "secret.py" in said.err
    assert "ValueError" in said.err
    assert SECRET not in said.err + said.out
    assert SECRET in commands(*run, env={"PAY": SECRET, "COUNTERFOIL_TRACEBACK": "full"}).err


def test_an_action_that_nobody_owns_is_warned_of_in_one_line(commands):
    """A warning is a sentence on standard error, without a place in the code, and stops nothing."""
    (commands.folder / "shop.py").write_text(
        "import counterfoil\nledger = counterfoil.open('receipts.db')\n"
        "@ledger.action(key=lambda n: n)\ndef pay(n):\n    return n\n",
        "utf-8",
    )
    commands.write("a.jsonl", {"action": "pay", "payload": {"n": 1}})
    said = commands("run", "a.jsonl", "--actions", "shop:ledger")
    assert said.code == 0
    assert said.err.startswith("counterfoil: warning: action 'pay' declares no owner and no authoriser")
    assert [line.split(":")[0] for line in said.err.splitlines()] == ["counterfoil", "next"]


def cpu_seconds(argv, folder):
    """The processor time of one child process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, cwd=folder, capture_output=True, check=False, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("resolve",)])
def test_the_command_line_starts_fast(commands, words):
    """What is not needed is not imported: the best of five starts costs little more than Python itself."""
    bare = min(cpu_seconds([sys.executable, "-c", "pass"], commands.folder) for _ in range(5))
    argv = [sys.executable, "-m", "counterfoil.cli", *words]
    assert min(cpu_seconds(argv, commands.folder) for _ in range(5)) - bare < CPU_SECONDS_MAX


HEAVY = ("asyncio", "httpx", "jsonschema", "rich", "sqlite3", "yaml")


@pytest.mark.parametrize("verb", [None, "run", "worker", "attempt", "reconcile", "resolve", "policy"])
def test_help_imports_nothing_heavy(commands, verb):
    """Neither the table of verbs nor a verb's arguments need what only the verb's work needs."""
    words = ["--help"] if verb is None else [verb, "--help"]
    program = (
        f"import sys; from counterfoil.cli import main; main({words!r}); print(sorted(sys.modules), file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert [name for name in HEAVY if f"'{name}'" in found.stderr] == []


def test_a_bare_command_names_its_verbs(commands):
    """Whoever says nothing yet is told what there is, and that nothing was done."""
    said = commands()
    assert said.code == 2
    assert "send a file of intents" in said.err


def test_a_policy_for_a_store_that_is_not_there_yet(commands):
    """The option that makes it is named."""
    (commands.folder / "policy.yaml").write_text("name: p\notherwise: allow\nrules: []\n", "utf-8")
    said = commands("policy", "adopt", "policy.yaml", "--as", "dana", "--reason", "agreed")
    assert (said.code, "or let --new make it" in said.err) == (4, True)
