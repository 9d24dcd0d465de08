"""Commands around the course: ``python -m course grade FOLDER``."""

import pkgutil
import sys

COMMANDS = {
    "grade": "course.grading.command:main",
    **{name: f"course.grading.edges:{name}" for name in ("otter", "gradescope", "nbgrader")},
    "quiz": "course.quiz.export:main",
    "exam": "course.exam:main",
}

if __name__ == "__main__":
    command, arguments = "".join(sys.argv[1:2]), sys.argv[2:]
    if command not in COMMANDS:
        sys.exit(
            f"python -m course was given {command or 'nothing'}, expected one of "
            f"{', '.join(COMMANDS)} (--help after it says more). "
            "Claims are asked for with python -m course.claims."
        )
    sys.exit(pkgutil.resolve_name(COMMANDS[command])(arguments))  # here: grading forks this file
