"""The network behind a target: recovered, verified on fresh queries, repaired, polished.

A target comes in, a :class:`revelu.Recovery` goes out.  ``extract`` measures the noise floor
(``precision`` says what that alone rules out) and lets :func:`revelu.select_methods` choose;
``chain`` runs the methods one after another, ``attempt`` one of them until its network is
certified or it gives up; ``job`` asks the checks, ``l2_bound`` adds to a certificate what holds
in L2, and ``polish`` refines what is certified.
"""
