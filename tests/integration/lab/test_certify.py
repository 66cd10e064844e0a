"""Certify: any worker command through three accidents, told by environment alone and counted from outside."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.integration.lab.stranger import disagreements

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "certify"
SECONDS = 100
CASES = ["T", "K", "L"]
SOON = ("--deadline", "0.1")
"""Enough for workers that wait for nothing."""
SENDS = """
import http.client, os, urllib.parse
def send(path="/nothing/effects"):
    told = urllib.parse.urlsplit(os.environ["COUNTERFOIL_LAB_URL"])
    connection = http.client.HTTPConnection(told.netloc, timeout=20)
    connection.request("POST", path, '{}', {"Authorization": os.environ["COUNTERFOIL_LAB_AUTHORIZATION"]})
    return connection.getresponse().read()
"""
"""How a worker of one line sends."""


def certify(*arguments, command):
    """Run the certifier as a stranger would; its exit code, its last line's object and its words."""
    argv = [sys.executable, "-m", "counterfoil.lab", "certify", *map(str, arguments), "--", *map(str, command)]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    lines = run.stdout.splitlines()
    return run.returncode, json.loads(lines[-1]) if "--json" in arguments else lines, run.stderr


def python(program):
    """The command of a small worker."""
    return [sys.executable, "-c", SENDS + program]


def gone(pid):
    """Whether a process has ended; an orphan may wait for ever for somebody to ask how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """The example with receipts: what it left, its exit code, its result and its JUnit file."""
    top = tmp_path_factory.mktemp("certify")
    command = [sys.executable, EXAMPLES / "guarded.py"]
    code, result, _ = certify("--json", "--keep", top / "kept", "--junit", top / "junit.xml", command=command)
    return top / "kept", code, result, ET.parse(top / "junit.xml").getroot()


@pytest.fixture(scope="module")
def naive(tmp_path_factory):
    """The example without, as people see it."""
    top = tmp_path_factory.mktemp("certify")
    command = [sys.executable, EXAMPLES / "naive.py"]
    code, page, _ = certify("--junit", top / "junit.xml", "--keep", top / "kept", *SOON, command=command)
    return code, page, json.loads((top / "kept" / "result.json").read_text()), ET.parse(top / "junit.xml").getroot()


@pytest.mark.slow
def test_the_guarded_example_has_one_effect_in_every_case(guarded):
    """Reply lost, killed, killed and started much later: one request and one effect, and the worker knows of it."""
    _, code, result, _ = guarded
    assert (code, result["ok"], result["why"]) == (0, True, [])
    assert [row["case"] for row in result["rows"]] == CASES
    fields = ("subject", "runner", "sent", "effects", "outcome")
    assert {tuple(row[f] for f in fields) for row in result["rows"]} == {("guarded.py", "guarded", 1, 1, "succeeded")}
    assert result["rows"][2]["waited_seconds"] >= 2


@pytest.mark.slow
def test_a_certificate_is_recounted_by_a_stranger(guarded, tmp_path):
    """What was kept recounts to the rows, with exports and with the worker's own receipts; one effect more does not."""
    kept, _, _, _ = guarded
    assert disagreements(kept) == (0, [])
    assert [len(list((kept / case / "exports").iterdir())) for case in CASES] == [1, 1, 1]
    changed = tmp_path / "changed"
    shutil.copytree(kept, changed)
    effects = changed / "K" / "effects.jsonl"
    effects.write_text(effects.read_text() * 2)
    code, found = disagreements(changed)
    assert (code, found[0]) == (1, "guarded.py-K-guarded: effects: reported 1, counted 2")
    assert any(line.startswith("ok: reported True") for line in found)


@pytest.mark.slow
def test_the_naive_example_has_more_than_one(naive):
    """A loop with retry repeats the effect in every case: exit code 1, and each case says how many there were."""
    code, page, result, _ = naive
    assert (code, result["ok"]) == (1, False)
    assert [row["runner"] for row in result["rows"]] == ["unguarded"] * 3
    assert all(row["effects"] > 1 for row in result["rows"])
    assert [line for line in page if line.startswith(("T: ", "K: ", "L: "))] == [
        f"{case}: 2 effects for one key" for case in CASES
    ]


@pytest.mark.slow
def test_junit_has_one_case_per_accident(guarded, naive):
    """A test report names the worker and the three accidents, and fails where the certificate does."""
    for suite, failures in ((guarded[3], 0), (naive[3], 3)):
        assert (suite.tag, suite.get("tests"), suite.get("failures")) == ("testsuite", "3", str(failures))
        cases = suite.findall("testcase")
        assert [case.get("name").partition(":")[0] for case in cases] == CASES
        assert len(suite.findall("testcase/failure")) == failures
    assert naive[3].find("testcase").get("classname") == "naive.py"
    assert naive[3].find("testcase/failure").get("message") == "2 effects for one key"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="a worker in sh needs an HTTP client")
def test_a_worker_may_be_in_any_language():
    """Five lines of sh that use the provider's own key, behind another shell, are certified like any other worker."""
    worker = """
        for try in 1 2 3; do
            curl -sf -m 5 -H "Authorization: $COUNTERFOIL_LAB_AUTHORIZATION" \
                -H "Idempotency-Key: $COUNTERFOIL_LAB_KEY" -d '{"amount": 1}' \
                "$COUNTERFOIL_LAB_URL/key/effects" > "$COUNTERFOIL_LAB_STATE/answer" && echo succeeded && exit 0
        done
        exit 1
    """
    command = ["sh", "-c", f"sh -c {shlex.quote(worker)}; exit $?"]
    code, result, _ = certify("--json", *SOON, command=command)
    assert (code, result["why"]) == (0, [])
    rows = [(r["subject"], r["runner"], r["sent"], r["effects"], r["outcome"]) for r in result["rows"]]
    assert rows == [("sh", "unguarded", 2, 1, "succeeded")] * 3


@pytest.mark.slow
def test_a_worker_that_never_sends_is_not_certified():
    """Nothing happened, so nothing is shown: exit code 1, and the reason stands first."""
    code, result, _ = certify("--json", *SOON, command=python("print('succeeded')"))
    assert (code, result["ok"], len(result["rows"])) == (1, False, 3)
    assert result["why"][0].startswith("no effect in any case")
    assert [row["effects"] for row in result["rows"]] == [0, 0, 0]


@pytest.mark.slow
def test_a_worker_that_does_not_end_is_not_certified(tmp_path):
    """Each life is bounded, and what the worker started ends with it, in its own process or in another."""
    pids = tmp_path / "pids"
    program = f"""
import subprocess, sys, threading
child = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
with open({str(pids)!r}, "a") as file:
    print(os.getpid(), child.pid, file=file)
try:
    send()
except OSError:
    pass
threading.Event().wait()
"""
    code, result, _ = certify("--json", "--life", "1.5", *SOON, command=python(program))
    assert (code, [row["outcome"] for row in result["rows"]]) == (1, ["never ended"] * 3)
    assert result["why"] == [f"{case}: the worker did not end within 1.5 seconds" for case in CASES]
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == 10
    assert all(gone(pid) for pid in started)


ONCE = """
import subprocess, sys
def later(program, **how):
    return subprocess.Popen([sys.executable, "-c", program], **how)
def once():
    try:
        open(os.environ["COUNTERFOIL_LAB_STATE"] + "/sent", "x")
        send()
    except OSError:
        pass
"""
"""How a worker sends at most once in all its lives, and starts what may outlive it."""


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"start_new_session": True}])
def test_a_worker_that_sends_after_its_end_is_counted(how):
    """What it leaves running, in a session of its own or not, is waited for as long as the worker may wait."""
    program = f"{ONCE}\nonce()\nlater({SENDS + 'send()'!r}, **{how})"
    code, result, _ = certify("--json", "--deadline", 9, command=python(program))
    assert (code, result["why"]) == (1, [f"{case}: 2 effects for one key" for case in CASES])


@pytest.mark.slow
def test_a_worker_that_leaves_something_running_is_not_certified(tmp_path):
    """It could send when nobody counts any more: it is named, and ended; so is what outlives the worker's kill."""
    pids = tmp_path / "pids"
    program = f"""{ONCE}
child = later("import threading; threading.Event().wait()", start_new_session=True)
print(child.pid, file=open({str(pids)!r}, "a"), flush=True)
once()
"""
    code, result, _ = certify("--json", *SOON, command=python(program))
    assert (code, [row["effects"] for row in result["rows"]]) == (1, [1, 1, 1])
    started = [int(pid) for pid in pids.read_text().split()]
    for case, why, pid in zip(CASES, result["why"], (started[0], started[2], started[4]), strict=True):
        assert why.startswith(f"{case}: the worker left processes behind, which could still send: ")
        assert why.endswith(f" ({pid})")
    assert all(gone(pid) for pid in started)


@pytest.mark.slow
def test_a_worker_may_end_before_what_it_started():
    """What has ended by its deadline, and sent nothing, holds nothing against it."""
    program = f"{ONCE}\nonce()\nlater('import sys; sys.stdin.read()', stdin=subprocess.PIPE)"
    code, result, _ = certify("--json", "--deadline", 5, command=python(program))
    assert (code, result["why"]) == (0, [])


@pytest.mark.slow
def test_what_the_laboratory_waits_for_is_not_the_workers_life():
    """A worker may have as little time as it may wait for: the wait before its last start is not its own."""
    code, result, _ = certify("--json", "--life", "2", "--deadline", "2", command=python("send()"))
    assert (code, [row["case"] for row in result["rows"]]) == (1, CASES)


@pytest.mark.slow
def test_a_worker_may_say_more_than_memory_holds():
    """Only the end of what it said is read."""
    code, result, _ = certify(
        "--json", *SOON, command=python("os.truncate(1, 1 << 40)\nos.lseek(1, 0, 2)\nprint()\nprint('unknown')")
    )
    assert (code, [row["outcome"] for row in result["rows"]]) == (1, ["unknown"] * 3)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda file: file.write_text("text"), "may not be executed"),
        (lambda file: file.mkdir(), "is a folder"),
        (lambda file: (file.write_text("#!/no/such/interpreter\n"), file.chmod(0o700)), "cannot be started"),
    ],
)
def test_what_cannot_be_started_says_why(tmp_path, make, why):
    """There is such a file: that it is no program is said of it."""
    make(tmp_path / "worker")
    code, said, _ = certify("--json", *SOON, command=[tmp_path / "worker"])
    assert (code, said["error"].startswith(f"{tmp_path / 'worker'}: {why}")) == (3, True)


@pytest.mark.slow
def test_a_worker_may_say_as_much_as_it_likes():
    """A worker that writes more than a pipe holds is not held up, and only its last word is taken for its outcome."""
    program = """
print("unknown " * 50_000, flush=True)
try:
    send()
finally:
    print("all is well", flush=True)
"""
    _, result, _ = certify("--json", *SOON, command=python(program))
    assert [row["outcome"] for row in result["rows"]] == ["exit 1", "exit 0", "exit 0"]
    assert [row["effects"] for row in result["rows"]] == [1, 2, 2]


@pytest.mark.slow
def test_a_second_send_on_silence_is_noticed():
    """With the rule off inside the worker the reply that was lost is followed by a second effect: exit code 1."""
    command = [sys.executable, EXAMPLES / "guarded.py"]
    code, result, _ = certify("--json", "--sabotage", "retry_on_timeout", command=command)
    assert (code, result["ok"], [row["effects"] for row in result["rows"]]) == (1, False, [2, 1, 1])


@pytest.mark.slow
def test_a_rule_that_could_not_be_turned_off_says_nothing():
    """A worker without Python keeps every rule it has: the run exits 3 instead of passing for a mutant that lived."""
    code, said, _ = certify("--json", "--sabotage", "retry_on_timeout", *SOON, command=["true"])
    assert code == 3
    assert "runs no Python that has counterfoil.lab" in said["error"]


@pytest.mark.parametrize(
    ("arguments", "command", "problem"),
    [
        ((), ["no-such-program-anywhere"], "no-such-program-anywhere: there is no such program"),
        ((), [], "takes the command to certify after a bare --"),
        (("--junit", "no-such-folder/junit.xml"), ["true"], "is no file in a folder that exists"),
        (("--sabotage", "no_such_rule"), ["true"], "there is no such mutant"),
    ],
)
def test_what_cannot_be_certified_exits_3(arguments, command, problem):
    """A run that cannot be made says so in one sentence, and is no broken rule."""
    code, said, complaint = certify("--json", *arguments, command=command)
    assert code == 3
    assert problem in said["error"]
    assert problem in complaint


def test_only_certify_takes_somebody_elses_command():
    """A command after `--` is refused where nobody would run it, and its options are never read as the laboratory's."""
    argv = [sys.executable, "-m", "counterfoil.lab", "demo", "--", "true", "--json"]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (run.returncode, run.stdout) == (3, "")
    assert "nothing else takes one" in run.stderr


@pytest.mark.slow
def test_a_life_that_is_shorter_than_what_may_be_waited_for_is_refused():
    """No worker could both wait as long as it may and end in time: that is said before one is started."""
    code, _, err = certify("--life", "1", "--deadline", "5", command=python("send()"))
    assert code == 3
    assert "--life 1 is shorter than --deadline 5" in err


@pytest.mark.slow
def test_the_last_words_of_a_worker_that_failed_are_told():
    """What it said on standard error says why, and where all of it may be kept."""
    program = "import sys; print('no such order', file=sys.stderr); sys.exit(7)"
    code, lines, _ = certify(*SOON, command=[sys.executable, "-c", program])
    assert code == 1
    assert "T, its last words: no such order" in lines
    assert lines[-1].startswith("--keep DIR leaves")
