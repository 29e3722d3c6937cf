"""Handlers of experiments, orders, sequences, records, custom targets."""
