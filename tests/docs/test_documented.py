"""Every documented command and example is run: a page that lies fails here."""

from __future__ import annotations

import contextlib
import http.client
import inspect
import io
import json
import os
import re
import runpy
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")]
)
_CONSOLE_CODES = {
    "worker": {0, 1},
    "attempt": {1, 2},
    "show": {0, 1},
    "list": {0, 1},
    "override": {0, 1},
    "release": {0, 1},
    "run": {0, 1},
    "verify": {0, 4},
}
"""Verbs that answer with something else than 0 where the page has an unresolved operation, or shows a refusal."""


_HELD = """
said = {"account": "acct_shop", "owner": "payments", "authoriser": "payments-lead", "key": "hand-1"}
by_hand = ledger.action(
    lambda order_id, amount, lose_the_answer: {}, name="refund_by_hand", effect="refund", **said
)
OPEN = refund("order-3003", 40, lose_the_answer=True).id
HELD = by_hand("order-3003", 40, True).id
"""
"""What the pages call `$OPEN` and `$HELD`: one operation that only a person settles, and another that waits for it."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """The fenced blocks of a page, with their languages."""
    return [(m.group(1), m.group(2)) for m in _BLOCK.finditer(page.read_text(encoding="utf-8"))]


class Page:
    """A page that is read by running it: one namespace, one folder."""

    def __init__(self, folder: Path, given: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "page", **(given or {})}
        self.printed = ""
        self.source = ""

    def python(self, text: str) -> None:
        """Run a Python block in the folder."""
        out = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out):
            exec(compile(text, "page", "exec"), self.names)
        self.printed = out.getvalue()

    def console(self, text: str) -> None:
        """Run each `$` line with the installed command and the page's own variables."""
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
        environment |= {k: v for k, v in self.names.items() if k.isupper() and isinstance(v, str)}
        for line in text.splitlines():
            if not line.startswith("$ "):
                continue
            words = [re.sub(r"\$([A-Z]+)", lambda m: environment[m[1]], w) for w in shlex.split(line[2:])]
            run = subprocess.run(
                words, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60, check=False
            )
            allowed = _CONSOLE_CODES.get(words[1], {0})
            assert run.returncode in allowed, (line, run.returncode, run.stdout, run.stderr)


def test_the_tutorial_runs_as_printed(folder: Path) -> None:
    """Every block of the tutorial runs, prints what the page says, and its commands work on its store."""
    page = Page(folder)
    for language, text in blocks(ROOT / "docs/tutorial.md"):
        if language == "python" and text.startswith("# payments.py\n"):
            (folder / "payments.py").write_text(text, encoding="utf-8")
        elif language == "python":
            page.python(text)
        elif language == "text":
            assert page.printed == text
        elif language == "console":
            page.console(text)
    page.names["ledger"].close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The reader's folder: what stands in it can be imported, and is forgotten with the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("payments", None)
    yield tmp_path
    sys.modules.pop("payments", None)


def test_the_how_to_runs_as_printed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example of the how-to pages declares what it says, and their commands work."""
    monkeypatch.setenv("CALENDAR_AUTH", "Basic ZGVtbzpkZW1v")
    monkeypatch.setenv("LAB_AUTH", "Bearer lab-secret")
    (module,) = [t for _, t in blocks(ROOT / "docs/tutorial.md") if t.startswith("# payments.py\n")]
    (folder / "payments.py").write_text(module, encoding="utf-8")
    shutil.copytree(ROOT / "examples", folder / "examples")
    page = Page(folder, {"notify": lambda order_id, trace_id: {}})
    page.python("from payments import ledger, refund\nID = refund('order-3001', 100, lose_the_answer=True).id")
    page.python(_HELD)
    page.names["notify"].__name__ = "notify"
    for language, text in blocks(ROOT / "docs/how-to.md"):
        if language == "python":
            page.python(text)
        elif language == "text":
            assert page.printed == text
        elif language == "console":
            page.console(text)
        elif language == "yaml" and text.startswith("# policy.yaml\n"):
            (folder / "policy.yaml").write_text(text, encoding="utf-8")
        elif language == "yaml" and text.startswith("# also in policy.yaml\n"):
            with (folder / "policy.yaml").open("a", encoding="utf-8") as policy:
                policy.write(text)
        elif language == "yaml":
            (folder / "appointments.yaml").write_text(text, encoding="utf-8")
            from counterfoil.runtime import actions

            actions.load(folder / "appointments.yaml").close()
    assert (folder / "receipt.json").stat().st_mode & 0o777 == 0o600
    page.names["ledger"].close()


def _standing(store: Path) -> dict[str, str]:
    """The outcome of every key in a store, and what settled it."""
    with contextlib.closing(sqlite3.connect(store)) as db:
        rows = db.execute("SELECT key, outcome, settled_by FROM operation").fetchall()
    return {key: f"{outcome}:{settled_by.partition(':')[2]}" for key, outcome, settled_by in rows}


def _keys(store: Path) -> list[str]:
    """The key by which the provider knows each operation."""
    import counterfoil
    from counterfoil.domain.event import first_begun

    with contextlib.closing(sqlite3.connect(store)) as db:
        ids = [row[0] for row in db.execute("SELECT id FROM operation")]
    with counterfoil.open(store) as ledger:
        begun = [first_begun(ledger.store.load(operation).events) for operation in ids]
    return [found.provider_key for found in begun if found]


def _asked(port: str, path: str, *, parsed: bool = True) -> Any:
    """What the service of the example says."""
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"authorization": "Bearer demo-token"})
        said = connection.getresponse().read().decode()
    return json.loads(said) if parsed else said


def test_a_contract_from_a_page_settles_a_lost_answer_as_printed(folder: Path) -> None:
    """The second tutorial, command by command, at the very service it speaks of: its contract settles what was lost."""
    from counterfoil.lab.processes import Child

    with Child([sys.executable, str(ROOT / "examples/rooms_server.py"), "--port", "0"]) as service:
        port, page, known = service.ready.rpartition(":")[2], Page(folder), []
        for language, text in blocks(ROOT / "docs/tutorial-contract.md"):
            here = text.replace("5234", port).replace("/path/to/counterfoil", str(ROOT))
            if language in {"yaml", "json"}:
                name = here.split()[1] if language == "yaml" else "bookings.jsonl"
                (folder / name).write_text(here, encoding="utf-8")
            for line in here.splitlines() if language == "console" else ():
                exported = re.fullmatch(r'\$ export (\w+)="(.+)"', line)
                if exported:
                    page.names[exported[1]] = exported[2]
                elif line != "$ python examples/rooms_server.py":  # it runs already, on a port of its own
                    page.console(line)
                if line.startswith(("$ counterfoil run", "$ counterfoil reconcile")):
                    known.append(_standing(folder / "bookings.db"))
        made = _asked(port, "/v1/bookings?" + "&".join(f"key={key}" for key in _keys(folder / "bookings.db")))
    assert len((folder / "rooms.book.yaml").read_text(encoding="utf-8").splitlines()) < 30
    assert known == [
        {"order-1": "succeeded:answer", "order-2": "unknown:"},
        {"order-1": "succeeded:answer", "order-2": "succeeded:look"},
        {"order-1": "succeeded:answer", "order-2": "succeeded:look"},
    ]
    assert [booking["id"] for booking in made["data"]] == ["bk_1", "bk_2"]


def test_the_page_of_the_tutorial_is_the_one_that_its_service_shows() -> None:
    """What the reader turns into a contract is what the service says of itself."""
    from counterfoil.lab.processes import Child

    with Child([sys.executable, str(ROOT / "examples/rooms_server.py"), "--port", "0"]) as service:
        shown = _asked(service.ready.rpartition(":")[2], "/docs", parsed=False)
    assert shown == (ROOT / "examples/rooms_api.md").read_text(encoding="utf-8")


def test_the_database_page_runs_as_printed(folder: Path, postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of ours works on an empty database, in the order of the page; what it is piped to is another's."""
    import counterfoil

    counterfoil.open(folder / "receipts.db").close()
    url, page, ran = postgres.book(), Page(folder), 0
    monkeypatch.setenv("COUNTERFOIL_STORE", url)
    for language, text in blocks(ROOT / "docs/postgresql.md"):
        assert language == "console"
        ours = [line.partition(" | ")[0] for line in text.splitlines() if line.startswith("$ counterfoil ")]
        page.console("\n".join(line.replace('"$COUNTERFOIL_STORE"', url) for line in ours))
        ran += len(ours)
    assert ran == 4


def test_the_how_to_names_all_that_a_certified_worker_is_told(tmp_path: Path) -> None:
    """The page has every variable that certify sets, and no other."""
    from counterfoil.lab.certify import told

    page = (ROOT / "docs/how-to.md").read_text(encoding="utf-8")
    wanted = told(1, "order-1", tmp_path, 2.0)
    assert set(re.findall(r"^\| `(COUNTERFOIL_LAB_[A-Z_]+)`", page, re.MULTILINE)) == set(wanted)


def test_the_readme_guards_a_function_as_printed(tmp_path: Path) -> None:
    """Pasted as it stands it runs, twice with one effect, and the command line imports it without calling anything."""
    (source,) = [text for language, text in blocks(ROOT / "README.md") if language == "python"]
    (tmp_path / "refunds.py").write_text(source, encoding="utf-8")
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "refunds.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert (run.stdout.split(), run.stderr) == (["succeeded", "re_order-1042"], "")
    verify = ["verify", "--deep", "--store", "receipts.db", "--actions", "refunds:ledger"]
    run = subprocess.run(
        [sys.executable, "-m", "counterfoil.cli", *verify], cwd=tmp_path, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    assert "1 operation," in run.stdout


def test_the_readme_leads_to_every_page() -> None:
    """Each page of the documentation is linked there, but for what only belongs to another: the words of a world."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md") if f"](docs/{page.name})" not in text}
    assert pages == {"worlds.md"}
    assert "(worlds.md)" in (ROOT / "docs/proof.md").read_text(encoding="utf-8")


def test_the_contract_of_the_page_is_loaded_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example contract is sound as printed, and an actions file beside it may name it."""
    from counterfoil import contracts
    from counterfoil.runtime import actions

    monkeypatch.setenv("SHOP_AUTH", "Bearer x")
    (text,) = [text for language, text in blocks(ROOT / "docs/contracts.md") if language == "yaml"]
    (tmp_path / "shop-refund.yaml").write_text(text, encoding="utf-8")
    assert contracts.load(tmp_path / "shop-refund.yaml").id == "shop.refund"
    (tmp_path / "shop.yaml").write_text(
        "store: shop.db\nactions: {refund: {contract: shop-refund.yaml, base_url: 'http://127.0.0.1:1', account: a,"
        " owner: o, authoriser: p, secrets: {/headers/authorization: 'env:SHOP_AUTH'}}}\n",
        encoding="utf-8",
    )
    with actions.load(tmp_path / "shop.yaml") as ledger:
        assert ledger.registry["refund"].action.contract.id == "shop.refund"


def test_every_contract_stands_in_the_table() -> None:
    """The contracts page names each contract of the catalogue, and no other."""
    from counterfoil.contracts.loader import names

    told = re.findall(
        r"^\| `([a-z0-9_]+(?:\.[a-z0-9_]+)+)` \|",
        (ROOT / "docs/contracts.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert sorted(told) == names()


def test_every_error_stands_in_the_table() -> None:
    """The reference has each error with its code, its exit code and what its docstring says, and no other."""
    from counterfoil.domain import errors

    every = [e for _, e in inspect.getmembers(errors, inspect.isclass) if issubclass(e, errors.CounterfoilError)]
    leaves = sorted((e for e in every if not e.__subclasses__() or e.code != "CF-000"), key=lambda e: e.code)
    wanted = [
        f"| {e.code} | `{e.__name__}` | {e.exit_code} | {inspect.getdoc(e).splitlines()[0]} |"
        for e in leaves
        if e.code != "CF-000"
    ]
    lines = (ROOT / "docs/reference.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("| CF-")] == wanted


def test_the_bounds_of_attempts_are_those_of_the_pages() -> None:
    """How many attempts machines make is what the reference says; a receipt has room for people's events too."""
    from counterfoil.domain import patience
    from counterfoil.domain.event import SEQ_MAX

    text = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    assert f"after {patience.IN_A_ROW_MAX} in a row a person is next" in text
    assert f"without a person | {patience.ATTEMPTS_MAX:,};" in text
    assert 4 * patience.ATTEMPTS_MAX < SEQ_MAX


def test_every_key_of_the_files_is_documented() -> None:
    """The reference names every key of an actions file and every field of a line of intents."""
    from counterfoil.cli.intents import FIELDS
    from counterfoil.runtime.actions import ActionsFile, HttpAction, LongestDelivery

    keys = {*ActionsFile.__struct_fields__, *HttpAction.__struct_fields__, *LongestDelivery.__struct_fields__, *FIELDS}
    assert keys <= set(re.findall(r"\w+", (ROOT / "docs/reference.md").read_text(encoding="utf-8")))


def test_every_key_of_a_policy_is_documented() -> None:
    """The reference names every key of a policy file in its own section."""
    from counterfoil.domain.policy import Override, When
    from counterfoil.runtime import policy_entries as entries

    structs = [Override, When, *(kind for name, kind in inspect.getmembers(entries) if name.endswith("Entry"))]
    keys = {key for struct in [*structs, entries.PolicyFile] for key in struct.__struct_fields__}
    text = (ROOT / "docs/reference.md").read_text(encoding="utf-8").split("## Policies\n")[1].split("\n## ")[0]
    assert keys <= set(re.findall(r"\w+", text))


def test_the_readme_shows_what_the_demo_prints() -> None:
    """The picture asks as often as the demonstration's agent does before it looks."""
    picture = blocks(ROOT / "README.md")[0][1]
    guarded = [line[42:] for line in picture.splitlines() if line[42:].startswith("model")]
    assert len(guarded) == 4
    assert [line.split("(")[0] for line in guarded] == ["model  refund"] * 3 + ["model  get_outcome"]


def test_every_word_of_a_world_has_its_page() -> None:
    """Options, faults and fates of a simulation stand in the page of its words."""
    from counterfoil.lab.world.options import FAULTS, Options
    from counterfoil.lab.world.provider import KINDS, LOOKS, SENDS

    told = set(re.findall(r"`(\w+)`", (ROOT / "docs/worlds.md").read_text(encoding="utf-8")))
    assert {*Options.__struct_fields__, *FAULTS, *KINDS, *LOOKS, *SENDS} - told == set()


def test_every_command_of_the_laboratory_is_proven_somewhere() -> None:
    """The page of proofs shows each command that can hold or break, and every law by which a mutant is noticed."""
    from counterfoil.lab.mutants.catalogue import CATALOGUE
    from counterfoil.lab.sabotage import NOTICED

    text = (ROOT / "docs/proof.md").read_text(encoding="utf-8")
    assert [name for name in NOTICED if f"counterfoil-lab {name}" not in text] == []
    laws = {law for mutant in CATALOGUE for law in mutant.laws}
    assert sorted(law for law in laws if not re.search(rf"\b{law}\b", text)) == []


def test_figures_that_are_cheap_to_count_are_those_of_the_page() -> None:
    """Situations, mutants, cells, scripts of images and places of change: counted here, and told there."""
    from counterfoil.lab.images.scripts import SCRIPTS
    from counterfoil.lab.matrix.cells import CELLS
    from counterfoil.lab.mutants.catalogue import BAR, CATALOGUE
    from counterfoil.lab.world.situations import SITUATIONS

    text = (ROOT / "docs/proof.md").read_text(encoding="utf-8")
    assert re.search(r"measured at commit `[0-9a-f]{7,40}`", text)
    assert {int(total) for total in re.findall(r"\d+ of (\d+) \| \d+ \|", text)} == {len(SITUATIONS)}
    assert f"turns each of {BAR} safety rules off" in text
    awaited = [cell for cell in CELLS.values() if cell.row.awaits]
    assert f"{len(CELLS) - len(awaited)} of {len(CELLS)} pass" in text
    assert f"| pending | {len(awaited)}:" in text
    assert sum(bool(mutant.awaits) for mutant in CATALOGUE) == 3
    assert "three await what is not built" in text
    assert len(SCRIPTS) == 18
    assert "Eighteen scripts" in text
    mutate = runpy.run_path(str(ROOT / "scripts" / "mutate.py"))
    places = sum(len(mutate["changes_of"](path, name)) for name, path in mutate["modules"]().items())
    (about,) = re.findall(r"it draws from some ([0-9,]+) places", text)
    assert places == pytest.approx(int(about.replace(",", "")), rel=0.1)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file that exists."""
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_verb_and_exit_code_is_documented() -> None:
    """The reference names every verb and every exit code the command line has."""
    from counterfoil.cli import exits, parser

    text = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", text))
    assert {name for name, _ in parser.VERBS} <= words
    assert {str(code) for code, _ in exits.EXITS} <= words


def test_everything_that_may_be_declared_is_documented() -> None:
    """The reference names every declaration an action takes."""
    from counterfoil.runtime.declared import Declared

    text = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    assert set(Declared.__struct_fields__) <= set(re.findall(r"\w+", text))
