"""Grading of students' notebooks: ``python -m course grade FOLDER``.

``handed_in`` finds the files, ``grade`` grades them, ``tables`` writes what comes of it, ``filled``
puts it into what Moodle and Canvas gave out, and ``similar`` points out answers that look alike.
``notebook`` reads one, ``definitions`` and ``answers`` take out of it the functions asked for, and
``examiner`` checks them in a process shut in by ``isolation``, each call in a copy of that process
(``remote``, ``codec``). ``plain`` is for who grades with other tools.
"""
