"""Grading of students' notebooks: ``python -m course grade FOLDER``.

``command`` finds the notebooks and ``grade`` grades them: ``notebook`` reads one, ``definitions``
and ``answers`` take out of it the functions that are asked for, and ``examiner`` checks them in a
process shut in by ``isolation``, each call of them in a copy of that process (``remote``,
``codec``). ``tables`` writes what comes of it. ``plain`` is for who grades with other tools.
"""
