"""Grading of students' notebooks: ``python -m course grade FOLDER``.

The steps, each in a file: ``submissions`` finds the notebooks, ``notebook`` reads one,
``definitions`` and ``answers`` take out of it the functions that are asked for, ``examiner`` checks
them in a process shut in by ``isolation``, each call of them in a copy of that process (``remote``,
``effects``, ``codec``). ``grade`` starts all this, ``points`` counts, and ``tables`` and ``page``
write what comes of it. ``plain`` is for who grades with other tools.

This file imports nothing: an examiner shuts itself in before torch is loaded.
"""
