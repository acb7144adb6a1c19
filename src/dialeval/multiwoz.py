"""Task dialogues in the form of the MultiWOZ evaluation: public names for Inform, Success, BLEU, richness, tracking.

    from dialeval.multiwoz import Evaluator

    results = Evaluator(bleu=True, success=True, richness=True).evaluate(predictions)

gives the documented output of the original for a dictionary of predictions (or the path of a file), and leaves the
input as it was. `Evaluator.run` gives the same figures as a `Run`, with intervals, one value per dialogue or turn and
signatures; `explain` and `failures` say why dialogues were lost. The data is the installed pack `multiwoz`, unless
`data` names a folder, or `"town"` for the invented town that ships with dialeval.

Nothing is computed here; see `dialeval.suites.multiwoz.evaluation`.
"""

from dialeval.suites.multiwoz.data import add_slot_domains, load_task
from dialeval.suites.multiwoz.evaluation import Evaluator, evaluate, list_dialogue_rows

__all__ = ["Evaluator", "add_slot_domains", "evaluate", "list_dialogue_rows", "load_task"]
