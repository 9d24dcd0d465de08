"""Other books from the same sources: for students, without solutions; of some chapters alone."""
