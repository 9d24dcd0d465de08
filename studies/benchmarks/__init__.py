"""Speed, measured: run by ``make bench``; no test asserts a time."""
