"""Fits in files: ``res.save("fit.cst")`` and ``cs.load("fit.cst")``.

A file is a zip of two members: arrays in the safetensors format, everything else as JSON. Nothing
of it is code, and nothing in it names what to import: classes are those of a list
(:mod:`cstonet.files.registry`).
"""
