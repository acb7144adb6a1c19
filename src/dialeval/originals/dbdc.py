"""The names of the challenge's eval.py (DBDC), for one turn; see `dialeval.breakdown` for whole files."""

from dialeval.suites.breakdown.plain import calc_distribution, jsd, kld, majority_label, majority_label_lenient, mse

__all__ = ["calc_distribution", "jsd", "kld", "majority_label", "majority_label_lenient", "mse"]
