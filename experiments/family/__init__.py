"""Relatives of the paper's problem that were compared with it: see the pages of their results."""
