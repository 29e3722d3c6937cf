"""Loops: the log of rounds in the archive, stop rules, design files and designers. Knows neither orders nor the wire."""
