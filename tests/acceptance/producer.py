"""A process that enqueues batches of ten until it is killed, and says the number of each acknowledged one.

python -m tests.acceptance.producer sqlite:///FILE
"""

from __future__ import annotations

import sys
from itertools import count

from fairlane import Fairlane
from tests.acceptance.presets import work


def main(url: str) -> None:
    """Enqueue and tell, for ever."""
    app = Fairlane(url)
    task = app.task(name="work")(work)
    for batch in count():
        app.enqueue_many([task.using(tags=[f"batch={batch}"]).bind(number) for number in range(10)])
        print(batch, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
