"""What stops a lab from starting or answering, as its user can correct it."""


class ConfigurationError(Exception):
    """A setting, file or package is missing or wrong; the message names it and the next step."""
