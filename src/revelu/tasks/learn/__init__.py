"""The network behind samples, without a query.

Samples come in, from memory or from files (``samples``), a :class:`revelu.Recovery` goes out:
``learn`` fits, ``verdict`` certifies on the samples kept apart, and ``regressor`` is the same as
a scikit-learn estimator.
"""
