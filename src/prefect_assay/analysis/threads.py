"""One thread for linear algebra: with matrices of these sizes a second one only waits, at full load."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_find_libraries = cache(ThreadpoolController)  # looking for the loaded libraries takes milliseconds


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Run the fits of this block, or of the function that this decorates, on one core."""
    with _find_libraries().limit(limits=1, user_api="blas"):
        yield
