"""Stand-ins for the modules of the original programs: a script of theirs runs after a change of one import.

    from lsdscc import HypothesisSet           from dialeval.originals.lsdscc import HypothesisSet
    from mwzeval.metrics import Evaluator      from dialeval.originals.multiwoz_evaluation.metrics import Evaluator
    from ADEM import ADEM                      from dialeval.originals.adem import ADEM
    from eval import jsd                       from dialeval.originals.dbdc import jsd

They have the names and signatures of the originals and compute nothing themselves. docs/migrate.md has the tables.
"""
