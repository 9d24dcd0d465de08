"""The trainings and measurements behind ``book/results``; a chapter repeats a slice of them live.

Each module here is a study, with a ``STUDY`` in it, named as its file of results. Three modules
hold several, each under its name: ``small_trainings.py``, ``inversions.py``, ``unwinding.py``.

- ``python -m studies NAME --list`` lists its rows, and which of them are missing;
- ``python -m studies NAME`` computes what is missing; interrupted, the same command resumes;
- ``python -m studies NAME --rows ROW ...`` computes these rows again;
- ``python -m studies NAME --recheck [RUN or ROW]`` computes one again and compares;
- ``python -m studies NAME --publish ROW MODEL`` publishes a finished run with the package.

One that trains is a :class:`studies.runner.study.Study`, one that measures what exists a
:class:`studies.runner.survey.Survey`. ``tests/studies/test_every_study.py`` makes each of them
short, and must know a new one.

Parts are taken out by :func:`minivit.remove` before training. Models of some stored rows were
created without attention, MLPs or positions, which drew fewer random numbers: ``--recheck`` finds
other figures for rows without these in ``ablations`` (digits), ``families``, ``positions``,
``inversion_and_training`` and ``width``.
"""
