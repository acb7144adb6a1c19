"""Statistics as pure functions on arrays: intervals, resampling, tests, prediction-powered inference, agreement."""
