"""How many threads matrix products take.

Fits multiply matrices of some hundreds of rows many thousand times.  Threads that share such a
product wait for each other longer than they multiply, and BLAS waits by spinning: on 16 cores
a network that one thread recovers in 0.7 seconds took 9.8, and 152 seconds of computing.  Nor do
sums come out alike with another number of threads.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

P = ParamSpec("P")
R = TypeVar("R")


def in_one_thread(task: Callable[P, R]) -> Callable[P, R]:
    """Decorate a task whose matrix products take one thread each, and no more, while it runs."""

    @wraps(task)
    def limited(*args: P.args, **options: P.kwargs) -> R:
        # Libraries are looked for at each call: some are loaded after this module.
        with threadpool_limits(1, user_api="blas"):
            return task(*args, **options)

    return limited
