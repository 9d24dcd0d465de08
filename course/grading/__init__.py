"""Grading of students' notebooks: ``python -m course grade FOLDER``.

``command`` finds the notebooks, ``grade`` grades them, ``tables`` writes what comes of it.
``notebook`` reads one, ``definitions`` and ``answers`` take out of it the functions asked for, and
``examiner`` checks them in a process shut in by ``isolation``, each call in a copy of that process
(``remote``, ``codec``). ``plain`` is for who grades with other tools.
"""
