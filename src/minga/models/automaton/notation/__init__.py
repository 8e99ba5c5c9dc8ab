"""How rules are written: a small file for each notation, and `minga.models.automaton.rules`, which tells them apart."""
