"""What can go wrong in a way that the person at the keyboard can do something about."""


class LabError(Exception):
    """One line: what was tried and why it failed. Printed without a traceback."""
