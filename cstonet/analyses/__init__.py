"""Analyses: treatments with levels, doses, mediation, behind one interface."""
