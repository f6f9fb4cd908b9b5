"""The commands of `python -m tensorgrad.experiment`; each parses its arguments and calls the implementation."""
