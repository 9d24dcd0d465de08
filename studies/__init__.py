"""The trainings and measurements behind ``book/results``; a chapter repeats a slice of them live.

Each module here is one study, with a ``STUDY`` in it, and is named as its file of results:

- ``python -m studies NAME --list`` says what it computes, and about how long a training takes;
- ``python -m studies NAME`` computes what is missing; interrupted, the same command resumes;
- ``python -m studies NAME --recheck [RUN or ROW]`` computes one again and compares;
- ``python -m studies NAME --smoke`` runs all of its code in seconds, outside the repository.

A study that trains is a :class:`studies.runner.study.Study`: it says for each row of its table
which runs compete, and which runs, one a seed, follow the best of them; ``digits.py`` is the
shortest example. One that measures what exists is a :class:`studies.runner.survey.Survey`. What
several use is in ``shared``. ``python -m studies.runner.ship`` ships a finished run with the
package.

Parts are taken out by :func:`minivit.remove` before training. Results stored before that were of
models created without the parts. Without attention, MLPs or positions these drew fewer random
numbers, so training them again starts from other weights, and ``--recheck`` finds other figures.
The studies with such rows name them.
"""
