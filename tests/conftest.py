"""For all tests: the long ones first, so that both test processes are busy until the end."""


def pytest_collection_modifyitems(items):
    """End-to-end files first, in the order of their names; everything else as it was."""
    items.sort(key=lambda item: "/e2e/" not in item.path.as_posix())
