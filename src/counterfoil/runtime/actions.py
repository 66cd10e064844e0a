"""The actions a deployment names: an actions file, or a ledger made in Python, ready to look and to send."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

import msgspec

from counterfoil.contracts.document import Document, Tokens, read_text
from counterfoil.contracts.refusal import in_words
from counterfoil.domain import pointer
from counterfoil.domain.action import Consequence
from counterfoil.domain.errors import ActionsInvalid, BadValue, CallerError, SecretMissing, StoreUnsafe
from counterfoil.domain.event import ORDINARY
from counterfoil.domain.intent import Occurrence, Siblings
from counterfoil.runtime.given import checked_name
from counterfoil.runtime.importing import importing
from counterfoil.runtime.ledger import Ledger
from counterfoil.store import choosing

DEFAULT_STORE = "receipts.db"
"""In the current folder, where nothing else is named."""
ACTIONS_MAX = 500
"""More actions than one person can own."""

_SPEC = re.compile(r"([A-Za-z_][\w]*(?:\.[A-Za-z_][\w]*)*):([A-Za-z_][\w]*(?:\.[A-Za-z_][\w]*)*)")
_SECRET = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]{0,127}|file:[^\0]{1,4096}")
_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]")


T = TypeVar("T")


class LongestDelivery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The deployment's named assumption: how late a request may still be applied."""

    seconds: float
    by: str
    why: str


class HttpAction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One action of an actions file: an API under its contract."""

    contract: str
    """A name of the catalogue, or the path of a contract file beside the actions file."""
    base_url: str
    account: str
    secrets: dict[str, str] = {}
    """By the contract's pointers: `env:NAME`, or `file:PATH` beside the actions file; never the secret itself."""
    effect: str = ""
    destination: str = ""
    tenant: str = ""
    owner: str = ""
    authoriser: str = ""
    consequence: Consequence = Consequence.SOME
    key: str | None = None
    """Pointer to the business id in the payload, for lines that name no key."""
    occurrence: Occurrence | None = None
    siblings: Siblings = Siblings.HELD
    effect_by: tuple[str, ...] = ()
    material: tuple[str, ...] = ()
    immaterial: dict[str, str] = {}
    """By pointer, the reason why it cannot alter the effect."""
    value: str | None = None
    """Pointer to the value at risk in the payload."""
    floats: Literal["keep", "refuse"] = "keep"
    result: tuple[str, ...] = ()
    confirm: bool = False
    """Look once after a success, and record what the look says."""
    control: str = ""
    """A reference in the account that a look always finds."""
    sensitivity: str = ORDINARY
    """The class its retention follows."""
    longest_delivery: LongestDelivery | None = None
    proxy: str | None = None
    """An http:// proxy; the environment is never asked."""
    verify: str | None = None
    """A file or folder of trusted certificates beside the actions file; default: the public authorities."""


class ActionsFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole actions file; its actions are read one by one, so that a mistake is named with its action."""

    store: str = ""
    """A file beside the actions file, or the URL of a database, without a password."""
    actor: str = ""
    tenant: str = "default"
    production: bool = False
    """Refuse actions that name no owner and authoriser, where a developer is only warned."""
    actions: dict[str, Any]


def load(spec: str | Path, *, store: str | os.PathLike[str] | None = None, new: bool = True) -> Ledger:
    """Open the ledger of an actions file or of `MODULE:LEDGER`, with every action registered.

    Args:
        spec: a path that ends in .yaml or .yml; or a module and the name of a ledger in it, or of what returns one.
        store: the receipts file, or the URL of a database; default: the file's own `store`, or `receipts.db` in the
            current folder.
        new: the receipts file, or the tables of a database, may be made.

    Raises:
        ActionsInvalid: which file, line and key are wrong, or why the module holds no ledger.
        ContractInvalid: a contract that an action names is wrong.
        StoreUnsafe: the receipts file is missing or cannot be trusted.
        BadValue: the module opens another receipts file than `store`.
    """
    text = str(spec)
    if text.endswith((".yaml", ".yml")):
        return _from_file(Path(text), None if store is None else choosing.named(store), new=new)
    named = _SPEC.fullmatch(text)
    if named is None:
        raise ActionsInvalid(text, "is neither a FILE.yaml nor MODULE:LEDGER")
    ledger = _from_module(text, named[1], named[2])
    if store is not None and _shown(store) != ledger.store.name:
        opened = ledger.store.name
        ledger.close()
        raise BadValue("store", _shown(store), wanted=f"{text} opens {opened} itself; name that one or none")
    return ledger


def _shown(store: str | os.PathLike[str]) -> str:
    return choosing.shown(str(store)) if choosing.is_url(store) else str(Path(store).absolute())


def store_of(path: Path) -> str | Path | None:
    """Where an actions file keeps its receipts; None where it does not say."""
    return _store(path, _File(path).head)


def contracts_of(path: Path) -> tuple[str, ...]:
    """The contracts that an actions file names: names of the catalogue, and paths as they are found from here."""
    named = (action.contract for action in _File(path).actions().values())
    return tuple(dict.fromkeys(_beside(path.parent, contract) for contract in named))


# -- files -------------------------------------------------------------------------------------------------------------


class _File:
    """One actions file, checked as far as it can be without contracts, secrets and the network."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._document = Document(read_text(path, self.refused), self.refused)
        self.head = self._converted(self._document.values, ActionsFile, ())
        try:
            checked_name("actor", self.head.actor, empty=True)
        except BadValue as error:
            self.refuse(("actor",), str(error))

    def actions(self) -> dict[str, HttpAction]:
        """Every action by name."""
        found = self.head.actions
        if not 1 <= len(found) <= ACTIONS_MAX:
            self.refuse(("actions",), f"has {len(found)} entries; from 1 to {ACTIONS_MAX} are wanted")
        read = {name: self._converted(raw, HttpAction, ("actions", name)) for name, raw in found.items()}
        for name, action in read.items():
            self._check(action, ("actions", name))
        return read

    def refused(self, line: int, problem: str) -> ActionsInvalid:
        """The error of one line; 0 is the file itself."""
        return ActionsInvalid(f"{self.path}:{line}" if line else str(self.path), problem)

    def refuse(self, at: Tokens, problem: str) -> NoReturn:
        """Refuse the file for what stands at a key."""
        raise self.refused(self._document.line_of(at), f"{'.'.join(at)}: {problem}" if at else problem)

    def _check(self, action: HttpAction, at: Tokens) -> None:
        for where, reference in action.secrets.items():
            if not _SECRET.fullmatch(reference):
                # It may be the secret itself, put there by mistake: it is not repeated.
                self.refuse((*at, "secrets", where), "must be env:NAME or file:PATH; the value stays out of this file")
        for name, named in _pointers_of(action):
            try:
                pointer.parse(named)
            except ValueError as error:
                self.refuse((*at, *name), str(error))
        seconds = action.longest_delivery.seconds if action.longest_delivery else 0.0
        if not 0 <= seconds < float("inf"):
            self.refuse((*at, "longest_delivery", "seconds"), "must be finite and not negative")

    def _converted(self, raw: object, model: type[T], at: Tokens) -> T:
        try:
            return msgspec.convert(raw, model)
        except msgspec.ValidationError as error:
            self._explain(str(error), at, model)

    def _explain(self, message: str, at: Tokens, model: type[Any]) -> NoReturn:
        """Turn the model's refusal into a file, a line and a key; values are not quoted by it."""
        problem, _, path = message.partition(" - at `$")
        steps = tuple(name or index for name, index in _STEP.findall(path.removesuffix("`")))
        unknown = re.search(r"unknown field `([^`]*)`", problem)
        wrong = (*at, *steps, *((unknown[1],) if unknown else ()))
        self.refuse(wrong, in_words(model, problem, steps))


def _pointers_of(action: HttpAction) -> Iterator[tuple[Tokens, str]]:
    """Every pointer of an action, with its place."""
    for name in ("key", "value"):
        if getattr(action, name) is not None:
            yield (name,), getattr(action, name)
    for name in ("effect_by", "material", "result"):
        for index, named in enumerate(getattr(action, name)):
            yield (name, str(index)), named
    for named in action.immaterial:
        yield ("immaterial", named), named


def _from_file(path: Path, store: str | Path | None, *, new: bool) -> Ledger:
    file = _File(path)
    actions = file.actions()
    where = store or _store(path, file.head) or Path(DEFAULT_STORE)
    if not new and isinstance(where, Path) and not where.exists():
        raise StoreUnsafe(str(where), "does not exist")
    head = file.head
    opened = choosing.open_store(where, new=new)
    ledger = Ledger(opened, actor=head.actor, tenant=head.tenant, production=head.production)
    try:
        for name, action in actions.items():
            _register(ledger, file, name, action)
    except BaseException:
        ledger.close()
        raise
    return ledger


def _store(path: Path, head: ActionsFile) -> str | Path | None:
    return choosing.named(head.store, path.parent) if head.store else None


def _register(ledger: Ledger, file: _File, name: str, action: HttpAction) -> None:
    folder = file.path.parent
    said = {key: getattr(action, key) for key in _AS_THEY_ARE}
    if action.longest_delivery is not None:
        assumed = action.longest_delivery
        said |= {
            "longest_delivery": assumed.seconds, "longest_delivery_by": assumed.by, "longest_delivery_why": assumed.why
        }  # fmt: skip
    way = {"proxy": action.proxy, "verify": None if action.verify is None else str(folder / action.verify)}
    said |= {name: value for name, value in way.items() if value is not None}
    try:
        ledger.http(
            name,
            contract=_beside(folder, action.contract),
            secrets={where: _reference(folder, reference) for where, reference in action.secrets.items()},
            key=_reader(action.key),
            value=_reader(action.value),
            **said,
        )
    except (CallerError, SecretMissing) as error:
        file.refuse(("actions", name), str(error))


_AS_THEY_ARE = (
    "base_url", "account", "effect", "destination", "tenant", "owner", "authoriser", "consequence", "occurrence",
    "siblings", "effect_by", "material", "immaterial", "floats", "result", "confirm", "control", "sensitivity",
)  # fmt: skip
"""Keys that mean the same in an actions file and in `ledger.http`."""


def _beside(folder: Path, contract: str) -> str:
    """A contract's file stands beside the actions file; a name of the catalogue is no path."""
    return str(folder / contract) if contract.endswith((".yaml", ".yml")) else contract


def _reference(folder: Path, reference: str) -> str:
    kind, _, name = reference.partition(":")
    return f"file:{folder / name}" if kind == "file" else reference


def _reader(where: str | None) -> Callable[..., object] | None:
    """A function of the payload's fields that reads what stands at a pointer."""
    if where is None:
        return None
    tokens = pointer.parse(where)

    def read(**payload: object) -> object:
        found = pointer.get(payload, tokens)
        if found is pointer.MISSING:
            raise BadValue("payload", where, wanted="is missing, and the actions file reads the key or value there")
        return found

    return read


# -- modules -----------------------------------------------------------------------------------------------------------


def _from_module(spec: str, module: str, attribute: str) -> Ledger:
    import importlib

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    with importing(spec):
        try:
            found: Any = importlib.import_module(module)
        except (ImportError, SyntaxError) as error:
            raise ActionsInvalid(spec, f"cannot be imported: {error}") from error
        for step in attribute.split("."):
            if not hasattr(found, step):
                raise ActionsInvalid(spec, f"there is no {attribute} in {module}")
            found = getattr(found, step)
        made = found() if callable(found) and not isinstance(found, Ledger) else found
    if not isinstance(made, Ledger):
        raise ActionsInvalid(spec, f"{attribute} is {type(made).__name__}, not a ledger or what returns one")
    return made
