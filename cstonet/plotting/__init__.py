"""Pictures: tables and arrays in, matplotlib Axes out; no network and no analysis is known here.

Users reach them by ``res.plot`` (:class:`cstonet.analyses.plots.Plots`), which asks the results for
the numbers. Every function draws into the Axes it is given, or into a new figure of the width of a
journal's column or page, and changes no setting of matplotlib.
"""
