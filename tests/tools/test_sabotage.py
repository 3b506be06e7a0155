"""The list of patches is honest, and the harness that tries them tells the caught from the rest."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import apsw
import apsw.ext
import msgspec
import psycopg
import pytest

from fairlane.store.postgres.statements import rendered, texts
from fairlane.store.sql_files import named_statements
from fairlane.store.sqlite.migrating import migrate
from fairlane.store.sqlite.statements import VALUES
from tests.servers.postgres import shared_url
from tests.stores import STORES
from tools.sabotage import page, witness
from tools.sabotage.patch import LAYERS, YARDSTICK, MisfitError, Patch, all_patches, judged, read_patches
from tools.sabotage.run import sabotage
from tools.sabotage.scratch import PytestRun
from tools.sabotage.verdict import PatchVerdict, RedTest, judge, unfit
from tools.sabotage.witness import RecordedTest

PATCHES: Final = all_patches()
SEMANTICS: Final = (page.ROOT / "docs" / "reference" / "semantics.md").read_text(encoding="utf-8")

# ── the list ─────────────────────────────────────────────────────────────────


@cache
def source(name: str) -> str:
    """Read a file of the project."""
    return (page.ROOT / name).read_text(encoding="utf-8")


@cache
def names_in(name: str) -> set[str]:
    """Name the tests of a file by its source; nothing is imported."""
    nodes = ast.parse(source(name)).body
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def parse(file: str, text: str) -> None:
    """Parse a source: Python by its grammar, SQL against the schema."""
    if file.endswith(".py"):
        ast.parse(text)
        return
    if "/postgres/" in file:
        parse_for_a_server(file, text)
        return
    db = apsw.Connection(":memory:")
    migrate(db)
    filled = text.replace("{walk}", "true").replace("{list}", "SELECT seq FROM live")
    for statement in vars(named_statements(filled, VALUES)).values():
        apsw.ext.query_info(db, statement)


def parse_for_a_server(file: str, text: str) -> None:
    """Let a server read a migration, functions or statements, in a schema that never comes into being."""
    *_, folder, own = file.removesuffix(".sql").split("/")
    with psycopg.connect(shared_url()) as link:
        link.execute("CREATE SCHEMA sabotage")
        link.execute("SET LOCAL check_function_bodies = off")  # they name each other, whatever their order
        for name, whole in texts("migrations"):
            is_broken = (folder, name) == ("migrations", own)
            link.execute(rendered(text if is_broken else whole, "sabotage").encode())
        for _, whole in texts("functions"):
            link.execute(rendered(whole, "sabotage").encode())
        link.execute("SET LOCAL check_function_bodies = on")
        if "/functions/" in file:
            link.execute(rendered(text, "sabotage").encode())
        if folder == "sql":
            for part in set(text.split("-- name: ")) - set(source(file).split("-- name: ")):
                statement = rendered(part.partition("\n")[2].strip(), "sabotage")
                link.execute(f"PREPARE broken AS {statement}".encode())
        link.rollback()


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name)
def test_a_patch_applies_and_leaves_source_that_can_be_read(patch: Patch) -> None:
    """A patch for what the source was once proves nothing, nor does one that only breaks the grammar."""
    broken = patch.applied(source(patch.file))
    assert broken != source(patch.file)
    parse(patch.file, broken)


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name)
def test_a_patch_names_tests_rules_and_stores_that_exist(patch: Patch) -> None:
    """A patch must name what it breaks."""
    assert patch.file.startswith("src/fairlane/")
    assert patch.concerns in LAYERS | judged(frozenset(STORES))
    assert patch.tests
    for test in patch.tests:
        file, _, name = test.partition("::")
        assert name in names_in(file), test
    assert patch.rules
    for rule in patch.rules:
        assert re.search(rf"\*\*{rule} ", SEMANTICS), rule


def test_every_store_has_patches() -> None:
    """Every store has patches; the oracle, which the others are compared with, has none."""
    assert judged(frozenset(STORES)) <= {patch.concerns for patch in PATCHES}


@pytest.mark.parametrize(
    "text",
    ["[a]\n[a]", '[a]\npromise = "p"', "[a]\nprimise = 1"],
    ids=["a name twice", "a field missing", "a field unknown"],
)
def test_a_list_with_a_slip_in_it_is_refused(text: str) -> None:
    """A patch that is silently left out would count as caught."""
    with pytest.raises((ValueError, msgspec.ValidationError)):
        read_patches(text)


@pytest.mark.parametrize("text", ["gone", "here and here"])
def test_a_patch_whose_place_is_gone_or_not_the_only_one_says_so(text: str) -> None:
    """Instead of changing something else."""
    with pytest.raises(MisfitError, match=r"broken: .* in src/tiny\.py, not once"):
        make("broken", old="here").applied(text)


def test_what_was_published_is_of_these_patches_and_generated() -> None:
    """The page is made of the result, and the result is of the list as it is now."""
    found = page.read()
    assert page.PAGE.read_text(encoding="utf-8") == page.page(found)
    missing = "try what is missing: make sabotage ARGS=--missing"
    tried = [(one.name, one.patch) for one in found.verdicts]
    assert tried == [(patch.name, patch.digest) for patch in PATCHES], missing
    assert [one.name for one in found.verdicts if not one.is_caught] == []


# ── the verdict ──────────────────────────────────────────────────────────────


def make(name: str, **fields: str) -> Patch:
    """Make a patch for the tree below."""
    plain = {"concerns": "model", "old": "used < limit", "new": "used <= limit"}
    test = fields.pop("test", "tests/test_tiny.py::test_the_limit_holds")
    return Patch(
        name=name, promise="", rules=("S1",), file="src/tiny.py", tests=(test,), **{**plain, **fields}
    )


TEST: Final = "tests/test_tiny.py::test_the_limit_holds"


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ([("one", "AssertionError")], ""),
        ([("one", "AssertionError"), ("two", "Failed")], ""),
        ([("one", "AssertionError"), ("one", "")], ""),
        ([("", "TimeoutError")], ""),
        ([("one", "AssertionError"), ("two", "")], "stayed green on two"),
        ([("", "")], "stayed green"),
        ([], "did not run"),
        ([("one", "NameError")], "breaks the source"),
        ([("one", "IndentationError"), ("two", "AssertionError")], "breaks the source"),
    ],
)
def test_a_patch_is_caught_by_a_failure_on_every_store(seen: list[tuple[str, str]], why: str) -> None:
    """At least one case a store; and not because the source does not even run."""
    crippled = {"NameError", "IndentationError"}
    runs = [RecordedTest(TEST, store, (error,) if error else (), error in crippled) for store, error in seen]
    verdict = judge(make("broken"), PytestRun(runs, "", is_hung=False), {TEST}, 1.0)
    assert why in verdict.why
    assert verdict.is_caught is not bool(why)


def test_a_test_that_hangs_or_was_never_green_proves_nothing() -> None:
    """The one has not gone red, the other not because of the patch."""
    red = [RecordedTest(TEST, "one", ("AssertionError",))]
    assert "hung" in judge(make("broken"), PytestRun(red, "", is_hung=True), {TEST}, 1.0).why
    assert "without the patch" in judge(make("broken"), PytestRun(red, "", is_hung=False), (), 1.0).why


# ── the harness ──────────────────────────────────────────────────────────────

TINY: Final = """
import pytest
from tiny import fits

@pytest.mark.parametrize("store", ["oracle", "one", "two"])
def test_the_limit_holds(store):
    assert store != "oracle"
    assert not fits(1, 1)

@pytest.mark.parametrize("store", ["one", "two"])
def test_one_alone_notices(store):
    assert store == "two" or not fits(1, 1)

def test_nothing_much():
    assert not fits(9, 1)

def test_is_red_anyway():
    assert fits(9, 1)
"""

SAME: Final = "limit > used"
ALONE: Final = "tests/test_tiny.py::test_one_alone_notices"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Make a tree with one promise, known to git, and with junk that is not."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "tiny.py").write_text("def fits(used, limit):\n    return used < limit\n", "utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_tiny.py").write_text(TINY, "utf-8")
    (tmp_path / "tools" / "sabotage").mkdir(parents=True)
    shutil.copy(witness.__file__, tmp_path / "tools" / "sabotage")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)  # noqa: S603, S607 (no input of others)
    (tmp_path / "tests" / "conftest.py").write_text("this is no Python", "utf-8")
    return tmp_path


def test_the_harness_tells_the_caught_from_those_that_survive(tiny: Path) -> None:
    """Each patch by itself, the tree as it was afterwards, the verdicts in the order of the list."""
    patches = [
        make("caught"),
        make("survives", new=SAME),
        make("noticed by nobody", test="tests/test_tiny.py::test_nothing_much"),
        make("noticed on one store", test=ALONE),
        make("of that store", test=ALONE, concerns="one"),
        make("of the other store", test=ALONE, concerns="two"),
        make("written for other source", old="used > limit"),
        make("crippled", new="usd < limit"),
        make("red anyway", test="tests/test_tiny.py::test_is_red_anyway"),
    ]
    told: list[PatchVerdict] = []
    known = frozenset({YARDSTICK, "one", "two"})
    verdicts = sabotage(tiny, patches, known, told.append)
    assert {one.name: one.why.partition(": ")[0] for one in verdicts} == {
        "caught": "",
        "survives": "test_the_limit_holds stayed green on one, two",
        "noticed by nobody": "test_nothing_much stayed green",
        "noticed on one store": "test_one_alone_notices stayed green on two",
        "of that store": "",
        "of the other store": "test_one_alone_notices stayed green on two",
        "written for other source": "written for other source",
        "crippled": "test_the_limit_holds met NameError",
        "red anyway": "test_is_red_anyway is not green without the patch either",
    }
    assert verdicts[0].red[0].stores == ("one", "two")
    assert verdicts[0].red[0].errors == ("AssertionError",)
    assert sorted(one.name for one in told) == sorted(patch.name for patch in patches)
    assert "used < limit" in (tiny / "src" / "tiny.py").read_text("utf-8")


def test_a_test_that_is_not_there_is_told_before_anything_is_broken(tiny: Path) -> None:
    """With what pytest says about it."""
    patch = make("without a test", test="tests/test_tiny.py::test_that_is_not_there")
    with pytest.raises(MisfitError, match=r"cannot be run: .*no match"):
        sabotage(tiny, [patch], frozenset(), lambda _: None)


def test_a_run_that_somebody_survived_is_published_as_such() -> None:
    """The page shows what was found, not what was hoped for."""
    lost = PatchVerdict(
        "lost", "a promise", ("S1",), "model", "src/tiny.py", why="nobody noticed", commit="abc"
    )
    red = RedTest("tests/test_tiny.py::test_it", ("two",), ("AssertionError",))
    kept = PatchVerdict("kept", "another", ("S2",), "two", "src/tiny.py", red=(red,), commit="abc")
    text = page.page(page.SabotageResult((run_at("abc"),), (lost, kept)))
    assert "1 of 2 patches were caught" in text
    assert "- Commit abc: Python 3; 2 cores." in text
    assert "| test that went red | two | commit |" in text
    assert "| lost | a promise | S1 | model | **not caught**: nobody noticed | – | abc |" in text
    assert "| kept | another | S2 | two | `tests/test_tiny.py::test_it` | red | abc |" in text


def run_at(commit: str) -> page.SabotageRun:
    """Describe a run of a commit."""
    return page.SabotageRun(commit, {"Python": "3"}, 2)


def test_a_later_run_of_some_patches_keeps_the_verdicts_on_the_others() -> None:
    """Each with the commit that it was tried at, in the order of the list."""
    one, two, three = make("one"), make("two"), make("three")
    nothing = page.SabotageResult((), ())
    first = page.merged(nothing, run_at("abc"), [unfit(one, ""), unfit(two, "survived")], [one, two])
    assert first.caught == {one.digest}
    second = page.merged(first, run_at("def"), [unfit(two, ""), unfit(three, "")], [three, one, two])
    assert [(each.name, each.commit) for each in second.verdicts] == [
        ("three", "def"),
        ("one", "abc"),
        ("two", "def"),
    ]
    assert second.caught == {one.digest, two.digest, three.digest}
    assert second.runs == (run_at("abc"), run_at("def"))


@pytest.mark.parametrize("field", ["old", "new", "test", "concerns"])
def test_a_verdict_on_a_patch_that_has_changed_is_dropped(field: str) -> None:
    """It would show as caught what nobody has tried. A run without a verdict goes with it."""
    before = make("one")
    found = page.merged(page.SabotageResult((), ()), run_at("abc"), [unfit(before, "")], [before])
    after = make("one", **{field: "another"})
    assert page.merged(found, run_at("def"), [], [after]) == page.SabotageResult((), ())
