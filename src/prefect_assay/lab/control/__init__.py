"""The control surface `/_sim`, and the handle on it that tests use."""
