"""The book's claims asked of any model."""
