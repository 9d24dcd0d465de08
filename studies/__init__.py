"""The trainings and measurements behind ``book/results``; a chapter repeats a slice of them live.

Each module here is a study, with a ``STUDY`` in it, named as its file of results. Three modules
hold several, each under its name: ``small_trainings.py``, ``inversions.py``, ``unwinding.py``.

- ``python -m studies NAME --list`` lists its rows, and which of them are missing;
- ``python -m studies NAME`` computes what is missing; interrupted, the same command resumes;
- ``python -m studies NAME --rows ROW ...`` computes these rows again;
- ``python -m studies NAME --recheck [RUN or ROW]`` computes one again and compares;
- ``python -m studies NAME --publish ROW MODEL`` publishes a finished run with the package.

A study that trains is a :class:`studies.runner.study.Study`: it says for each row of its table
which runs compete, and which runs, one a seed, follow the best of them. One that measures what
exists is a :class:`studies.runner.survey.Survey`. What several use is in ``shared``;
``tests/studies/test_every_study.py`` has what makes each of them short, and must know a new one.

Parts are taken out by :func:`minivit.remove` before training. Results stored before that were of
models created without the parts. Without attention, MLPs or positions these drew fewer random
numbers, so training them again starts from other weights, and ``--recheck`` finds other figures.
The studies with such rows name them.
"""
