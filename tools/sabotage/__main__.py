"""`make sabotage`: try all patches, or those whose name contains a word; exit with 1 if any was not caught.

Prints a line for each patch as it ends, then a table. A run of all patches writes docs/proofs/sabotage.md.
So does one with `--missing`, which leaves the other verdicts as they are.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser

from tests.stores import STORES
from tools.sabotage.page import PAGE, ROOT, merged, read, this_run, write
from tools.sabotage.patch import MisfitError, all_patches
from tools.sabotage.run import sabotage
from tools.sabotage.verdict import PatchVerdict


def main() -> int:
    """Try the patches; return exit code 0 if every one was caught."""
    parser = ArgumentParser(prog="make sabotage", description=__doc__.partition("\n")[0])
    parser.add_argument("-k", metavar="WORD", default="", help="only patches whose name contains this")
    parser.add_argument("--at-once", type=int, default=2, help="how many to try at a time (2)")
    only = "only patches that the page does not show as caught: new, changed or survived"
    parser.add_argument("--missing", action="store_true", help=only)
    given = parser.parse_args()
    every = all_patches()
    named = [patch for patch in every if given.k in patch.name]
    if not named:
        parser.error(f"no patch is named like {given.k!r}")
    before = read()
    patches = [patch for patch in named if not (given.missing and patch.digest in before.caught)]
    # Named before the run: what changes in the tree meanwhile is not what is tried.
    run = this_run()
    started = time.monotonic()
    try:
        verdicts = sabotage(ROOT, patches, frozenset(STORES), _tell, given.at_once)
    except MisfitError as error:
        print(error, file=sys.stderr)
        return 1
    seconds = time.monotonic() - started
    _table(verdicts)
    survived = [one for one in verdicts if not one.is_caught]
    print(f"{len(verdicts) - len(survived)} of {len(verdicts)} patches caught in {seconds:.0f} s")
    if given.missing or not given.k:
        write(merged(before, run, verdicts, every))
        print(f"written: {PAGE.relative_to(ROOT)}")
    return 1 if survived else 0


def _tell(verdict: PatchVerdict) -> None:
    word = "caught" if verdict.is_caught else "SURVIVED"
    print(f"{word:8}  {verdict.seconds:5.1f} s  {verdict.name}  {verdict.why}".rstrip(), flush=True)


def _table(verdicts: list[PatchVerdict]) -> None:
    width = max((len(one.name) for one in verdicts), default=0)
    print(f"\n{'PATCH':{width}}  {'RULES':12}  {'OF':8}  TEST THAT WENT RED")
    for one in verdicts:
        told = [f"{red.test} {' '.join(red.stores)}".rstrip() for red in one.red]
        told += [f"not caught: {one.why}"] * bool(one.why)
        for line, test in enumerate(told):
            name, rules, of = ("", "", "") if line else (one.name, ", ".join(one.rules), one.concerns)
            print(f"{name:{width}}  {rules:12}  {of:8}  {test}")
    print()


if __name__ == "__main__":
    sys.exit(main())
