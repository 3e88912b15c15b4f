"""Spends queries: lines and their kinks, pieces and their Jacobians, hyperplanes."""
