"""The pages of the benchmarks' report, one module each.

A page's module has ``page(records, folder)``, with one list of records per results file, which
writes the page's pictures into the folder and returns its Markdown.
"""
