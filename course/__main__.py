"""Commands around the course: ``python -m course grade FOLDER``."""

import sys

if __name__ == "__main__":
    if sys.argv[1:2] != ["grade"]:
        asked = " ".join(sys.argv[1:]) or "nothing"
        sys.exit(
            f"python -m course was given {asked}, expected: grade FILE|FOLDER (--help says more). "
            "Claims are asked for with python -m course.claims."
        )
    from course.grading import command  # here alone: processes that it starts import this file

    sys.exit(command.main(sys.argv[2:]))
