"""For all tests: the long ones first, so that both test processes are busy until the end; certificates read once."""

import functools
import ssl

from hypothesis import settings

# Prefect and httpx read the certificates again for each client, 40 to 50 ms, also where an address is plain HTTP.
ssl.create_default_context = functools.cache(ssl.create_default_context)

# Its limit of 200 ms an example is one of the wall clock, which a busy machine passes.
settings.register_profile("prefect-assay", deadline=None)
settings.load_profile("prefect-assay")


def pytest_collection_modifyitems(items):
    """End-to-end files first, in the order of their names; everything else as it was."""
    items.sort(key=lambda item: "/e2e/" not in item.path.as_posix())
