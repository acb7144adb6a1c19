"""Human evaluation: sample rows, collect ratings, merge them, estimate means, rank systems."""
