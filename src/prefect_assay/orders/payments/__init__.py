"""Paying an invoice once by machine: `settle` reads, asks the guard, records and sends (docs/ordering.md).

Knows neither Prefect nor where its record is kept. What differs between rails is in `rails`, a module for each.
"""
