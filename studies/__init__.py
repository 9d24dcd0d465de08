"""The trainings behind the figures in ``book/results``; a chapter repeats a slice of them live.

A study is a module with a :class:`studies.command.Study` and, at its end,
``if __name__ == "__main__": sys.exit(main(STUDY))``:

- ``python -m studies.NAME --list`` says what it would train, and about how long that takes;
- ``python -m studies.NAME`` trains what is missing and writes ``book/results/NAME.json``; stopped
  or killed, the same command goes on;
- ``--recheck [HASH]`` trains one of its runs again and compares the scores with those stored;
- ``--smoke`` runs all of its code in seconds, outside the repository.

A study that trains nothing is a :class:`studies.survey.Survey`, with ``SURVEY`` in place of
``STUDY`` and its own ``main``; it rechecks a row, by name, and keeps each row as it comes.

To add a training study, say for each row of its table which runs compete for it, and which runs,
one a seed, follow the best of them: ``studies/digits.py`` is the shortest example. A test runs each
module that has one with ``--smoke``. ``python -m studies.ship`` makes a finished run a model that
travels with the package.
"""
