"""The commands that keep something running or set it up."""
