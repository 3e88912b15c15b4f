"""What a target gives away, as it is and under each defence.

A target comes in, a :class:`revelu.Audit` goes out.  ``defences`` changes the answers as an owner
might, ``attack`` recovers from them what it can, ``rows`` says how much that is, and ``advice``
what follows; ``audit`` runs them within its limits.
"""
