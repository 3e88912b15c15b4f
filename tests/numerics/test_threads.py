"""How many threads matrix products take while a task runs."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import revelu
from revelu.network import zoo
from revelu.numerics.threads import in_one_thread

TRUTH = zoo.random_network([4, 3, 2], seed=0)


def blas_threads():
    found = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
    assert found  # or nothing here says anything
    return set(found)


@pytest.mark.parametrize(
    "task", [revelu.extract, revelu.recover_span, revelu.audit, revelu.diagnose]
)
def test_tasks_take_one_thread_and_give_the_others_back(task):
    seen = set()

    def answer(X):
        if not seen:
            seen.update(blas_threads())
        return TRUTH(X)

    with threadpool_limits(2, user_api="blas"):
        task(answer, dim_in=4, budget=400)
        assert blas_threads() == {2}
    assert seen == {1}


def test_threads_are_given_back_when_a_task_fails():
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError):
            in_one_thread(lambda: 1 // 0)()
        assert blas_threads() == {2}


def test_a_task_keeps_its_name_and_its_arguments():
    assert in_one_thread(np.linalg.norm).__name__ == "norm"
    assert in_one_thread(np.linalg.norm)([3.0, 4.0], ord=1) == 7.0
