"""Which assumptions of the theorems hold of a target, measured.

A target comes in, a diagnosis goes out: ``diagnose`` asks along the axes, and ``diagnosis`` says
what that shows of regularity, of digits and of queries.
"""
