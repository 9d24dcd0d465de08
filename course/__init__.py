"""The course around minivit: claims and their verdicts, exercises and their checks."""
