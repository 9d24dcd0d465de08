"""Tools of the repository: executing notebooks, checking the site."""
