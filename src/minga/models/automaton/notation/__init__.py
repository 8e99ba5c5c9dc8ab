"""Notations of rules: one small file for each; `minga.models.automaton.rules` tells them apart."""
