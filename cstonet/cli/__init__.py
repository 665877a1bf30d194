"""The command line: ``cstonet fit``, ``predict``, ``report``, ``plan``, ``demo``, ``simulate``."""

from cstonet.cli.commands import main

__all__ = ["main"]
