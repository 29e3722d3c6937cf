"""Questions to a person in the Prefect UI: spending, and payments whose outcome is unknown."""
