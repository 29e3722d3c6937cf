"""The lab's fixtures: `local_lab` starts a process for one test, `shared_lab` an organization in one process."""

pytest_plugins = ["assay_lab.fixture"]
