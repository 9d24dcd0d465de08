"""Commands around the course: ``python -m course grade FOLDER``."""

import importlib
import sys

COMMANDS = {"grade": "course.grading.command", "quiz": "course.quiz.export", "exam": "course.exam"}

if __name__ == "__main__":
    command, arguments = "".join(sys.argv[1:2]), sys.argv[2:]
    if command not in COMMANDS:
        sys.exit(
            f"python -m course was given {command or 'nothing'}, expected one of "
            f"{', '.join(COMMANDS)} (--help after it says more). "
            "Claims are asked for with python -m course.claims."
        )
    # Here alone: processes that grading starts import this file.
    sys.exit(importlib.import_module(COMMANDS[command]).main(arguments))
