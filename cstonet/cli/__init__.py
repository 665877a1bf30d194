"""The command line: ``cstonet demo``, ``cstonet fit``, ``cstonet simulate``."""

from cstonet.cli.commands import main

__all__ = ["main"]
