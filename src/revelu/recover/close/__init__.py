"""One hidden layer whatever its weights: neurons that are nearly one, and bumps (CKM21).

An oracle and its noise floor come in, a :class:`revelu.recover.method.Candidate` goes out, with
what merging has changed in L2.  ``coarsening`` makes one kink of those that no measurable piece
parts (Theorem 4.8); ``candidate`` holds the network of that line against fresh answers;
``clusters`` looks at every hyperplane in rescaled coordinates, which ``zoom`` makes; ``bumps``
looks for what points of N(0, I) find unexplained (Example 1.2); ``merging`` sums the neurons
that ``closeness`` (Definition 3.7) calls one (Lemma 3.12).  ``near_duplicates`` runs them.
"""

from revelu.recover.close.near_duplicates import NearDuplicates

__all__ = ["NearDuplicates"]
