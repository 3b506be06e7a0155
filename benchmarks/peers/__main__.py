"""`python -m benchmarks.peers`, which is `make peers`: read the arguments, compare, print."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import msgspec

from benchmarks.peers.compare import Comparison, Sizes
from benchmarks.peers.page import text
from benchmarks.peers.roster import ROSTER, STORES, Store, choose

_USUAL = Sizes()


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        message = f"{text!r} is no whole number from 1 on"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _parser() -> argparse.ArgumentParser:
    theirs = [peer.name for peer in ROSTER if not peer.is_ours]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description="Measure other Python job queues beside Fairlane, in turn, and print one table.",
        epilog="See docs/how-to/compare-with-other-job-queues.md.",
    )
    names = [peer.name for peer in ROSTER]
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"of {', '.join(theirs)}; default: all")
    parser.add_argument("--store", action="append", choices=STORES, help="only on this one; may be repeated")
    parser.add_argument(
        "--jobs", type=_positive, default=_USUAL.jobs, help="of the fastest; slow ones get a share"
    )
    parser.add_argument("--singles", type=_positive, default=_USUAL.singles, help="brought to an idle worker")
    parser.add_argument("--rounds", type=_positive, default=_USUAL.rounds, help="each plays every peer once")
    parser.add_argument("--floods", type=int, default=_USUAL.floods, help="rounds of fairness; 0 for none")
    parser.add_argument("--flood-jobs", type=_positive, default=_USUAL.flood_jobs, help="of 10 ms each")
    parser.add_argument("--quiet-seconds", type=float, default=_USUAL.quiet_seconds, help="of quiet load")
    parser.add_argument("--seed", type=int, default=_USUAL.seed, help="of the quiet tenants' arrivals")
    parser.add_argument("--folder", type=Path, help="where the data goes; a real disk counts")
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")
    parser.add_argument("--postgres-url", help="instead of a private server; gets a database of our own")
    parser.add_argument(
        "--redis-url", help="instead of a private server; the database it names must be empty"
    )
    parser.set_defaults(names=names)
    return parser


def main() -> int:
    """Compare; return 1 if a run failed its check."""
    parser = _parser()
    arguments = parser.parse_args()
    if unknown := set(arguments.peers) - set(arguments.names):
        parser.error(f"no peer is called {', '.join(sorted(unknown))}")
    peers = choose(arguments.peers, arguments.store or STORES)
    sizes = Sizes(**{name: getattr(arguments, name) for name in Sizes.__struct_fields__})
    given = {"postgres": arguments.postgres_url, "redis": arguments.redis_url}
    urls: dict[Store, str] = {store: url for store in STORES if (url := given.get(store))}
    # Leave by the usual way, so that servers and workers end with us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = Path(tempfile.mkdtemp(prefix="fairlane-peers-", dir=arguments.folder)).resolve()
    try:
        report = Comparison(peers, sizes, folder, lambda said: print(said, file=sys.stderr, flush=True)).run(
            urls
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(msgspec.json.encode(report).decode() if arguments.json else text(report), flush=True)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
